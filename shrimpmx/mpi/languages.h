/* What libmpichfort and libmpichcxx, the libraries of Fortran and C++ in MPICH 4, call beside MPI's
 * functions. A proxy is a function of theirs that calls one of the program's. front.c has it. */
#ifndef SHRIMPMX_MPI_LANGUAGES_H
#define SHRIMPMX_MPI_LANGUAGES_H

/* Fortran's library has these as well, without a value, and its own come first. */
EXPORTED int *MPIR_C_MPI_UNWEIGHTED, *MPIR_C_MPI_WEIGHTS_EMPTY;
__attribute__((constructor)) static void give_weights(void) {
    MPIR_C_MPI_UNWEIGHTED = UNWEIGHTED;
    MPIR_C_MPI_WEIGHTS_EMPTY = WEIGHTS_EMPTY;
}

/* KeyKind of attribute.pxd. */
enum { OF_COMMUNICATORS, OF_DATATYPES, OF_WINDOWS };

/* The last argument is 1 where Fortran has a value as wide as addresses, 3 where it is an INTEGER.
 * The keys of predefined attributes are C's + 1 there, and stand for the value, not for a place
 * that has it. */
EXPORTED int MPII_Comm_get_attr(MPI_Comm comm, int key, void *value, int *flag, int width) {
    enum { PREDEFINED = 0x64400000, NUMBER = 0xF };
    called = MPI_FUNCTION_Comm_get_attr;
    if ((key & ~NUMBER) != PREDEFINED)
        return table->Fortran_get_attr(OF_COMMUNICATORS, comm, key, value, flag);
    int *place;
    const int code = table->Comm_get_attr(comm, key - 1, &place, flag);
    if (code == SUCCESS && *flag)
        *(MPI_Aint *)value = *place;
    return code;
}

EXPORTED int MPII_Comm_set_attr(MPI_Comm comm, int key, void *value, int width) {
    called = MPI_FUNCTION_Comm_set_attr;
    return table->Fortran_set_attr(OF_COMMUNICATORS, comm, key, (MPI_Aint)value, width);
}

EXPORTED int MPII_Type_get_attr(MPI_Datatype datatype, int key, void *value, int *flag, int width) {
    called = MPI_FUNCTION_Type_get_attr;
    return table->Fortran_get_attr(OF_DATATYPES, datatype, key, value, flag);
}

EXPORTED int MPII_Type_set_attr(MPI_Datatype datatype, int key, void *value, int width) {
    called = MPI_FUNCTION_Type_set_attr;
    return table->Fortran_set_attr(OF_DATATYPES, datatype, key, (MPI_Aint)value, width);
}

EXPORTED int MPII_Win_get_attr(MPI_Win win, int key, void *value, int *flag, int width) {
    enum { BASE = 0x66000001, SIZE = 0x66000003, PREDEFINED = 0x66000000, NUMBER = 0xF };
    called = MPI_FUNCTION_Win_get_attr;
    if ((key & ~NUMBER) != PREDEFINED)
        return table->Fortran_get_attr(OF_WINDOWS, win, key, value, flag);
    void *place;
    const int code = table->Win_get_attr(win, key - 1, &place, flag);
    if (code == SUCCESS && *flag)
        *(MPI_Aint *)value = key - 1 == BASE   ? (MPI_Aint)place
                             : key - 1 == SIZE ? *(MPI_Aint *)place
                                               : *(int *)place;
    return code;
}

EXPORTED int MPII_Win_set_attr(MPI_Win win, int key, void *value, int width) {
    called = MPI_FUNCTION_Win_set_attr;
    return table->Fortran_set_attr(OF_WINDOWS, win, key, (MPI_Aint)value, width);
}

EXPORTED void MPII_Keyval_set_proxy(int key, void *copies, void *deletes) {
    table->Keyval_set_proxy(key, copies, deletes);
}

EXPORTED void MPII_Grequest_set_lang_f77(MPI_Request request) {
    table->Grequest_set_fortran(request);
}

EXPORTED void MPII_Op_set_cxx(MPI_Op op, void *calls) {
    table->Op_set_proxy(op, calls);
}

EXPORTED void MPII_Errhandler_set_cxx(MPI_Errhandler errhandler, void *calls) {
    table->Errhandler_set_proxy(errhandler, calls);
}

#endif
