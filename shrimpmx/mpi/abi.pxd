"""The MPICH ABI: types, handles and numbers that programs were compiled with (see abi.h)."""

from libc.stdint cimport int64_t, intptr_t

from shrimpmx.mpi.table cimport (
    Counts, MPI_Aint, MPI_Comm, MPI_Count, MPI_Datatype, MPI_Errhandler, MPI_Group, MPI_Info,
    MPI_Message, MPI_Op, MPI_Request, MPI_Session, MPI_Status, MPI_User_function,
    MPI_User_function_c, MPI_Win,
)

cdef enum:
    MPI_ANY_SOURCE = -2
    MPI_PROC_NULL = -1
    MPI_ROOT = -3
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
    MPI_MAX_STRINGTAG_LEN = 256
    MPI_MAX_PSET_NAME_LEN = 256

# Handles: two bits of kind, four of what it is, and a number.
cdef enum:
    MPI_WIN_NULL = 0x20000000
    MPI_COMM_NULL = 0x04000000
    MPI_COMM_WORLD = 0x44000000
    MPI_COMM_SELF = 0x44000001
    MPI_GROUP_NULL = 0x08000000
    MPI_GROUP_EMPTY = 0x48000000
    MPI_DATATYPE_NULL = 0x0C000000
    MPI_BYTE = 0x4C00010D
    MPI_ERRHANDLER_NULL = 0x14000000
    MPI_ERRORS_ARE_FATAL = 0x54000000
    MPI_ERRORS_RETURN = 0x54000001
    MPI_ERRORS_ABORT = 0x54000003
    MPI_INFO_NULL = 0x1C000000
    MPI_INFO_ENV = 0x5C000001
    MPI_SESSION_NULL = 0x38000000
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

# Of windows.
cdef enum:
    MPI_LOCK_EXCLUSIVE = 234
    MPI_LOCK_SHARED = 235
    MPI_MODE_NOCHECK = 1024
    MPI_MODE_NOSTORE = 2048
    MPI_MODE_NOPUT = 4096
    MPI_MODE_NOPRECEDE = 8192
    MPI_MODE_NOSUCCEED = 16384
    MPI_WIN_FLAVOR_CREATE = 1
    MPI_WIN_FLAVOR_ALLOCATE
    MPI_WIN_FLAVOR_DYNAMIC
    MPI_WIN_FLAVOR_SHARED
    MPI_WIN_UNIFIED = 2
    MPI_WIN_BASE = 0x66000001
    MPI_WIN_SIZE = 0x66000003
    MPI_WIN_DISP_UNIT = 0x66000005
    MPI_WIN_CREATE_FLAVOR = 0x66000007
    MPI_WIN_MODEL = 0x66000009

# Of files.
cdef enum:
    MPI_MODE_CREATE = 1
    MPI_MODE_RDONLY = 2
    MPI_MODE_WRONLY = 4
    MPI_MODE_RDWR = 8
    MPI_MODE_DELETE_ON_CLOSE = 16
    MPI_MODE_UNIQUE_OPEN = 32
    MPI_MODE_EXCL = 64
    MPI_MODE_APPEND = 128
    MPI_MODE_SEQUENTIAL = 256
    MPI_SEEK_SET = 600
    MPI_SEEK_CUR = 602
    MPI_SEEK_END = 604
    MPI_MAX_DATAREP_STRING = 128

# What made a datatype.
cdef enum:
    MPI_COMBINER_NAMED = 1
    MPI_COMBINER_DUP = 2
    MPI_COMBINER_CONTIGUOUS = 3
    MPI_COMBINER_VECTOR = 4
    MPI_COMBINER_HVECTOR = 6
    MPI_COMBINER_INDEXED = 7
    MPI_COMBINER_HINDEXED = 9
    MPI_COMBINER_INDEXED_BLOCK = 10
    MPI_COMBINER_STRUCT = 12
    MPI_COMBINER_SUBARRAY = 13
    MPI_COMBINER_DARRAY = 14
    MPI_COMBINER_F90_REAL = 15
    MPI_COMBINER_F90_COMPLEX = 16
    MPI_COMBINER_F90_INTEGER = 17
    MPI_COMBINER_RESIZED = 18
    MPI_COMBINER_HINDEXED_BLOCK = 19
    MPI_ORDER_C = 56
    MPI_ORDER_FORTRAN = 57
    MPI_DISTRIBUTE_BLOCK = 121
    MPI_DISTRIBUTE_CYCLIC = 122
    MPI_DISTRIBUTE_NONE = 123
    MPI_DISTRIBUTE_DFLT_DARG = -49767

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
    MPI_ERR_ACCESS
    MPI_ERR_AMODE
    MPI_ERR_BAD_FILE
    MPI_ERR_CONVERSION
    MPI_ERR_DUP_DATAREP
    MPI_ERR_FILE_EXISTS
    MPI_ERR_FILE_IN_USE
    MPI_ERR_FILE
    MPI_ERR_INFO
    MPI_ERR_INFO_KEY
    MPI_ERR_INFO_VALUE
    MPI_ERR_INFO_NOKEY
    MPI_ERR_IO
    MPI_ERR_NAME
    MPI_ERR_NO_MEM = 34
    MPI_ERR_NOT_SAME
    MPI_ERR_NO_SPACE
    MPI_ERR_NO_SUCH_FILE
    MPI_ERR_PORT
    MPI_ERR_QUOTA = 39
    MPI_ERR_READ_ONLY
    MPI_ERR_SERVICE
    MPI_ERR_SPAWN
    MPI_ERR_UNSUPPORTED_DATAREP = 43
    MPI_ERR_UNSUPPORTED_OPERATION
    MPI_ERR_WIN
    MPI_ERR_BASE
    MPI_ERR_LOCKTYPE
    MPI_ERR_KEYVAL
    MPI_ERR_RMA_CONFLICT
    MPI_ERR_RMA_SYNC
    MPI_ERR_SIZE
    MPI_ERR_DISP
    MPI_ERR_ASSERT
    MPI_ERR_RMA_RANGE = 55
    MPI_ERR_RMA_ATTACH
    MPI_ERR_RMA_SHARED
    MPI_ERR_RMA_FLAVOR
    MPI_ERR_SESSION = 75
    MPI_ERR_ABI = 81
    MPI_ERR_LASTCODE = 0x3FFFFFFF


cdef inline MPI_Status *no_status() noexcept nogil:
    """MPI_STATUS_IGNORE and MPI_STATUSES_IGNORE."""
    return <MPI_Status *><intptr_t>1


cdef inline Counts no_counts() noexcept nogil:
    return Counts(NULL, False)


cdef inline int64_t count_in(Counts counts, int64_t index) noexcept nogil:
    """A number of a list."""
    return ((<const int64_t *>counts.numbers)[index] if counts.are_large
            else (<const int *>counts.numbers)[index])


cdef inline int64_t count_of(int64_t count, Counts counts, int64_t index) noexcept nogil:
    """That of a list, or `count` if there is none."""
    return count if counts.numbers == NULL else count_in(counts, index)


cdef inline const void *place_itself() noexcept nogil:
    """MPI_IN_PLACE."""
    return <const void *><intptr_t>-1


cdef inline bint in_place(const void *data) noexcept nogil:
    return data == place_itself()
