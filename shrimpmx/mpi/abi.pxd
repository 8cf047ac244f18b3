"""The MPICH ABI: types, handles and numbers that programs were compiled with (see abi.h)."""

from libc.stdint cimport intptr_t

from shrimpmx.mpi.table cimport (
    MPI_Aint, MPI_Comm, MPI_Count, MPI_Datatype, MPI_Errhandler, MPI_Group, MPI_Info, MPI_Message,
    MPI_Op, MPI_Request, MPI_Status, MPI_User_function,
)

cdef enum:
    MPI_ANY_SOURCE = -2
    MPI_PROC_NULL = -1
    MPI_ANY_TAG = -1
    MPI_UNDEFINED = -32766
    MPI_IDENT = 0
    MPI_CONGRUENT = 1
    MPI_SIMILAR = 2
    MPI_UNEQUAL = 3
    MPI_THREAD_SERIALIZED = 2
    MPI_THREAD_MULTIPLE = 3
    MPI_MAX_PROCESSOR_NAME = 128
    MPI_MAX_OBJECT_NAME = 128
    MPI_MAX_ERROR_STRING = 512

# Handles: two bits of kind, four of what it is, and a number.
cdef enum:
    MPI_COMM_NULL = 0x04000000
    MPI_COMM_WORLD = 0x44000000
    MPI_COMM_SELF = 0x44000001
    MPI_GROUP_NULL = 0x08000000
    MPI_GROUP_EMPTY = 0x48000000
    MPI_DATATYPE_NULL = 0x0C000000
    MPI_ERRHANDLER_NULL = 0x14000000
    MPI_ERRORS_ARE_FATAL = 0x54000000
    MPI_ERRORS_RETURN = 0x54000001
    MPI_ERRORS_ABORT = 0x54000003
    MPI_INFO_NULL = 0x1C000000
    MPI_INFO_ENV = 0x5C000001
    MPI_KEYVAL_INVALID = 0x24000000
    MPI_REQUEST_NULL = 0x2C000000
    MPI_MESSAGE_NULL = 0x2C000000
    MPI_MESSAGE_NO_PROC = 0x6C000000
    MPI_TAG_UB = 0x64400001
    MPI_HOST = 0x64400003
    MPI_IO = 0x64400005
    MPI_WTIME_IS_GLOBAL = 0x64400007
    MPI_UNIVERSE_SIZE = 0x64400009
    MPI_LASTUSEDCODE = 0x6440000B
    MPI_APPNUM = 0x6440000D

# Classes of errors.
cdef enum:
    MPI_SUCCESS = 0
    MPI_ERR_BUFFER
    MPI_ERR_COUNT
    MPI_ERR_TYPE
    MPI_ERR_TAG
    MPI_ERR_COMM
    MPI_ERR_RANK
    MPI_ERR_ROOT
    MPI_ERR_GROUP
    MPI_ERR_OP
    MPI_ERR_TOPOLOGY
    MPI_ERR_DIMS
    MPI_ERR_ARG
    MPI_ERR_UNKNOWN
    MPI_ERR_TRUNCATE
    MPI_ERR_OTHER
    MPI_ERR_INTERN
    MPI_ERR_IN_STATUS
    MPI_ERR_PENDING
    MPI_ERR_REQUEST
    MPI_ERR_FILE = 27
    MPI_ERR_INFO = 28
    MPI_ERR_INFO_KEY
    MPI_ERR_INFO_VALUE
    MPI_ERR_INFO_NOKEY
    MPI_ERR_NO_MEM = 34
    MPI_ERR_UNSUPPORTED_OPERATION = 44
    MPI_ERR_KEYVAL = 48
    MPI_ERR_LASTCODE = 0x3FFFFFFF


cdef inline MPI_Status *no_status() noexcept nogil:
    """MPI_STATUS_IGNORE and MPI_STATUSES_IGNORE."""
    return <MPI_Status *><intptr_t>1


cdef inline bint in_place(const void *data) noexcept nogil:
    """Whether it is MPI_IN_PLACE."""
    return data == <const void *><intptr_t>-1
