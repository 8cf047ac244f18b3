/* Types of the MPICH ABI, which programs for libmpi.so.12 are compiled against: handles are
 * integers, but for files (https://www.mpich.org/abi). Values of handles are in abi.pxd. */
#ifndef SHRIMPMX_MPI_ABI_H
#define SHRIMPMX_MPI_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef int MPI_Comm, MPI_Group, MPI_Datatype, MPI_Request, MPI_Op, MPI_Errhandler, MPI_Info,
    MPI_Win, MPI_Message, MPI_Session, MPI_Fint;
typedef struct mpi_file *MPI_File;
typedef intptr_t MPI_Aint;
typedef long long MPI_Count, MPI_Offset;
typedef struct {
    int count_lo;
    int count_hi_and_cancelled; /* bit 0: cancelled; above it the count's high part */
    int MPI_SOURCE;
    int MPI_TAG;
    int MPI_ERROR;
} MPI_Status;
typedef MPI_Status MPI_F08_status;

typedef void MPI_User_function(void *, void *, int *, MPI_Datatype *);
typedef void MPI_User_function_c(void *, void *, MPI_Count *, MPI_Datatype *);
typedef int MPI_Comm_copy_attr_function(MPI_Comm, int, void *, void *, void *, int *);
typedef int MPI_Comm_delete_attr_function(MPI_Comm, int, void *, void *);
typedef int MPI_Type_copy_attr_function(MPI_Datatype, int, void *, void *, void *, int *);
typedef int MPI_Type_delete_attr_function(MPI_Datatype, int, void *, void *);
typedef int MPI_Win_copy_attr_function(MPI_Win, int, void *, void *, void *, int *);
typedef int MPI_Win_delete_attr_function(MPI_Win, int, void *, void *);
typedef void MPI_Comm_errhandler_function(MPI_Comm *, int *, ...);
typedef void MPI_Win_errhandler_function(MPI_Win *, int *, ...);
typedef void MPI_File_errhandler_function(MPI_File *, int *, ...);
typedef void MPI_Session_errhandler_function(MPI_Session *, int *, ...);
typedef int MPI_Grequest_query_function(void *, MPI_Status *);
typedef int MPI_Grequest_free_function(void *);
typedef int MPI_Grequest_cancel_function(void *, int);
typedef int MPI_Datarep_conversion_function(void *, MPI_Datatype, int, void *, MPI_Offset, void *);
typedef int MPI_Datarep_conversion_function_c(void *, MPI_Datatype, MPI_Count, void *, MPI_Offset,
                                              void *);
typedef int MPI_Datarep_extent_function(MPI_Datatype, MPI_Aint *, void *);

/* Values of the variables MPI_UNWEIGHTED and MPI_WEIGHTS_EMPTY, which stand for no weights. */
#define UNWEIGHTED ((int *)1)
#define WEIGHTS_EMPTY ((int *)2)

#endif
