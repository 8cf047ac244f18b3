"""What a function does that is not implemented: it raises an error that names it."""

from cpython.pycapsule cimport PyCapsule_New

from shrimpmx.mpi.table cimport MPI_FUNCTIONS, mpi_table


cdef extern from "mpi/refused.h" nogil:
    const mpi_table refused_table
    const char *const *function_names
    const char *const *function_advice
    refuse_function refusal_raise


cdef mpi_table only_refusals


cdef void refuse_all(mpi_table *table, refuse_function raises) noexcept nogil:
    global refusal_raise
    refusal_raise = raises
    table[0] = refused_table


cdef const char *function_name(int number) noexcept nogil:
    return function_names[number] if 0 <= number < MPI_FUNCTIONS else NULL


cdef const char *function_advised(int number) noexcept nogil:
    return function_advice[number]


def name_of(int code) -> str:
    """The function whose refusal is the error code, e.g. "MPI_Comm_spawn"; "" of another code."""
    cdef const char *name = function_name((code >> 8) - 1)
    return "" if name == NULL else name.decode()


def refusals() -> object:
    """A table of refusals as `shrimpmx.mpi.world.start` returns one: for tests of the front."""
    refuse_all(&only_refusals, NULL)
    return PyCapsule_New(&only_refusals, "shrimpmx.mpi.world.table", NULL)
