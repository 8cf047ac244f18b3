"""The constants of MPI's standard ABI (MPI 5.0, chapter 20), which libmpi_abi.so.1 has.

Names are without their prefix MPI_. Consecutive values stand as the first and the names.
"""

from __future__ import annotations


def _in_turn(*runs: tuple[int, str]) -> dict[str, int]:
    return {
        name: first + number for first, names in runs for number, name in enumerate(names.split())
    }


# The major and minor version of the ABI.
ABI_VERSION, ABI_SUBVERSION = 1, 0
# Predefined handles: small numbers in pointers. Those of a program's objects are above LAST_HANDLE.
LAST_HANDLE = 0xFFF
HANDLES = {
    "Op": _in_turn(
        (0x20, "OP_NULL SUM MIN MAX PROD"),
        (0x28, "BAND BOR BXOR"),
        (0x30, "LAND LOR LXOR"),
        (0x38, "MINLOC MAXLOC"),
        (0x3C, "REPLACE NO_OP"),
    ),
    "Comm": _in_turn((0x100, "COMM_NULL COMM_WORLD COMM_SELF")),
    "Group": _in_turn((0x108, "GROUP_NULL GROUP_EMPTY")),
    "Win": _in_turn((0x110, "WIN_NULL")),
    "File": _in_turn((0x118, "FILE_NULL")),
    "Session": _in_turn((0x120, "SESSION_NULL")),
    "Message": _in_turn((0x128, "MESSAGE_NULL MESSAGE_NO_PROC")),
    "Info": _in_turn((0x130, "INFO_NULL INFO_ENV")),
    "Errhandler": _in_turn((0x140, "ERRHANDLER_NULL ERRORS_ARE_FATAL ERRORS_ABORT ERRORS_RETURN")),
    "Request": _in_turn((0x180, "REQUEST_NULL")),
    "Datatype": _in_turn(
        (0x200, "DATATYPE_NULL AINT COUNT OFFSET"),
        (0x207, "PACKED SHORT INT LONG LONG_LONG UNSIGNED_SHORT UNSIGNED UNSIGNED_LONG"),
        (0x20F, "UNSIGNED_LONG_LONG FLOAT"),
        (0x212, "C_FLOAT_COMPLEX CXX_FLOAT_COMPLEX DOUBLE"),
        (0x216, "C_DOUBLE_COMPLEX CXX_DOUBLE_COMPLEX LOGICAL INTEGER REAL COMPLEX"),
        (0x21C, "DOUBLE_PRECISION DOUBLE_COMPLEX CHARACTER"),
        (0x220, "LONG_DOUBLE"),
        (0x224, "C_LONG_DOUBLE_COMPLEX CXX_LONG_DOUBLE_COMPLEX"),
        (0x228, "FLOAT_INT DOUBLE_INT LONG_INT 2INT SHORT_INT LONG_DOUBLE_INT"),
        (0x230, "2REAL 2DOUBLE_PRECISION 2INTEGER"),
        (0x238, "C_BOOL CXX_BOOL"),
        (0x23C, "WCHAR"),
        (0x240, "INT8_T UINT8_T"),
        (0x243, "CHAR SIGNED_CHAR UNSIGNED_CHAR"),
        (0x247, "BYTE INT16_T UINT16_T"),
        (0x250, "INT32_T UINT32_T"),
        (0x258, "INT64_T UINT64_T"),
        (0x2C0, "LOGICAL1 INTEGER1"),
        (0x2C8, "LOGICAL2 INTEGER2 REAL2"),
        (0x2D0, "LOGICAL4 INTEGER4 REAL4 COMPLEX4"),
        (0x2D8, "LOGICAL8 INTEGER8 REAL8 COMPLEX8"),
        (0x2E0, "LOGICAL16 INTEGER16 REAL16 COMPLEX16"),
        (0x2EB, "COMPLEX32"),
        # Other names of the same.
        (0x20B, "LONG_LONG_INT"),
        (0x212, "C_COMPLEX"),
    ),
}
# Numbers that an argument or a result has, by its meaning: each is converted.
MEANINGS = {
    "rank": _in_turn((-1, "ANY_SOURCE"), (-3, "PROC_NULL"), (-4, "ROOT")),
    "tag": {"ANY_TAG": -2},
    "thread_level": _in_turn(
        (0, "THREAD_SINGLE"),
        (1024, "THREAD_FUNNELED"),
        (2048, "THREAD_SERIALIZED"),
        (4096, "THREAD_MULTIPLE"),
    ),
    "order": _in_turn((12, "ORDER_C"), (15, "ORDER_FORTRAN")),
    "distribution": _in_turn((16, "DISTRIBUTE_NONE DISTRIBUTE_BLOCK DISTRIBUTE_CYCLIC")),
    "distribution_argument": {"DISTRIBUTE_DFLT_DARG": 19},
    "combiner": _in_turn(
        (101, "COMBINER_NAMED COMBINER_DUP COMBINER_CONTIGUOUS COMBINER_VECTOR COMBINER_HVECTOR"),
        (106, "COMBINER_INDEXED COMBINER_HINDEXED COMBINER_INDEXED_BLOCK"),
        (109, "COMBINER_HINDEXED_BLOCK COMBINER_STRUCT COMBINER_SUBARRAY COMBINER_DARRAY"),
        (113, "COMBINER_F90_REAL COMBINER_F90_COMPLEX COMBINER_F90_INTEGER COMBINER_RESIZED"),
        (117, "COMBINER_VALUE_INDEX"),
    ),
    "typeclass": _in_turn((192, "TYPECLASS_INTEGER TYPECLASS_REAL TYPECLASS_COMPLEX")),
    "comparison": _in_turn((201, "IDENT CONGRUENT SIMILAR UNEQUAL")),
    "topology": _in_turn((211, "CART GRAPH DIST_GRAPH")),
    "split_type": _in_turn(
        (221, "COMM_TYPE_SHARED COMM_TYPE_HW_UNGUIDED COMM_TYPE_HW_GUIDED"),
        (224, "COMM_TYPE_RESOURCE_GUIDED"),
    ),
    "lock_type": _in_turn((301, "LOCK_EXCLUSIVE LOCK_SHARED")),
    "flavor": _in_turn(
        (311, "WIN_FLAVOR_CREATE WIN_FLAVOR_ALLOCATE WIN_FLAVOR_DYNAMIC WIN_FLAVOR_SHARED")
    ),
    "model": _in_turn((321, "WIN_UNIFIED WIN_SEPARATE")),
    "whence": _in_turn((401, "SEEK_CUR SEEK_END SEEK_SET")),
    "keyval": _in_turn(
        (0, "KEYVAL_INVALID"),
        (501, "TAG_UB IO HOST WTIME_IS_GLOBAL APPNUM LASTUSEDCODE UNIVERSE_SIZE"),
        (601, "WIN_BASE WIN_DISP_UNIT WIN_SIZE WIN_CREATE_FLAVOR WIN_MODEL"),
    ),
    "verbosity": _in_turn(
        (9, "T_VERBOSITY_USER_BASIC T_VERBOSITY_USER_DETAIL"),
        (12, "T_VERBOSITY_USER_ALL"),
        (17, "T_VERBOSITY_TUNER_BASIC T_VERBOSITY_TUNER_DETAIL"),
        (20, "T_VERBOSITY_TUNER_ALL"),
        (33, "T_VERBOSITY_MPIDEV_BASIC T_VERBOSITY_MPIDEV_DETAIL"),
        (36, "T_VERBOSITY_MPIDEV_ALL"),
    ),
    "binding": _in_turn(
        (1, "T_BIND_NO_OBJECT T_BIND_MPI_COMM T_BIND_MPI_DATATYPE T_BIND_MPI_ERRHANDLER"),
        (5, "T_BIND_MPI_FILE T_BIND_MPI_GROUP T_BIND_MPI_OP T_BIND_MPI_REQUEST T_BIND_MPI_WIN"),
        (10, "T_BIND_MPI_MESSAGE T_BIND_MPI_INFO T_BIND_MPI_SESSION"),
    ),
    "variable_class": _in_turn(
        (1, "T_PVAR_CLASS_STATE T_PVAR_CLASS_LEVEL T_PVAR_CLASS_SIZE T_PVAR_CLASS_PERCENTAGE"),
        (5, "T_PVAR_CLASS_HIGHWATERMARK T_PVAR_CLASS_LOWWATERMARK T_PVAR_CLASS_COUNTER"),
        (8, "T_PVAR_CLASS_AGGREGATE T_PVAR_CLASS_TIMER T_PVAR_CLASS_GENERIC"),
    ),
    "error_class": _in_turn(
        (0, "SUCCESS ERR_BUFFER ERR_COUNT ERR_TYPE ERR_TAG ERR_COMM ERR_RANK ERR_REQUEST ERR_ROOT"),
        (9, "ERR_GROUP ERR_OP ERR_TOPOLOGY ERR_DIMS ERR_ARG ERR_UNKNOWN ERR_TRUNCATE ERR_OTHER"),
        (17, "ERR_INTERN ERR_PENDING ERR_IN_STATUS ERR_ACCESS ERR_AMODE ERR_ASSERT ERR_BAD_FILE"),
        (24, "ERR_BASE ERR_CONVERSION ERR_DISP ERR_DUP_DATAREP ERR_FILE_EXISTS ERR_FILE_IN_USE"),
        (30, "ERR_FILE ERR_INFO_KEY ERR_INFO_NOKEY ERR_INFO_VALUE ERR_INFO ERR_IO ERR_KEYVAL"),
        (37, "ERR_LOCKTYPE ERR_NAME ERR_NO_MEM ERR_NOT_SAME ERR_NO_SPACE ERR_NO_SUCH_FILE"),
        (43, "ERR_PORT ERR_QUOTA ERR_READ_ONLY ERR_RMA_ATTACH ERR_RMA_CONFLICT ERR_RMA_RANGE"),
        (49, "ERR_RMA_SHARED ERR_RMA_SYNC ERR_SERVICE ERR_SIZE ERR_SPAWN ERR_UNSUPPORTED_DATAREP"),
        (55, "ERR_UNSUPPORTED_OPERATION ERR_WIN ERR_RMA_FLAVOR ERR_PROC_ABORTED"),
        (59, "ERR_VALUE_TOO_LARGE ERR_SESSION ERR_ERRHANDLER ERR_ABI"),
        (1001, "T_ERR_CANNOT_INIT T_ERR_NOT_ACCESSIBLE T_ERR_NOT_INITIALIZED T_ERR_NOT_SUPPORTED"),
        (1005, "T_ERR_MEMORY T_ERR_INVALID T_ERR_INVALID_INDEX T_ERR_INVALID_ITEM"),
        (1009, "T_ERR_INVALID_SESSION T_ERR_INVALID_HANDLE T_ERR_INVALID_NAME"),
        (1012, "T_ERR_OUT_OF_HANDLES T_ERR_OUT_OF_SESSIONS T_ERR_CVAR_SET_NOT_NOW"),
        (1015, "T_ERR_CVAR_SET_NEVER T_ERR_PVAR_NO_WRITE T_ERR_PVAR_NO_STARTSTOP"),
        (1018, "T_ERR_PVAR_NO_ATOMIC"),
    ),
}
# Bits that an argument or a result combines.
MODES = _in_turn(
    (1, "MODE_APPEND MODE_CREATE"),
    (4, "MODE_DELETE_ON_CLOSE"),
    (8, "MODE_EXCL"),
    (16, "MODE_RDONLY"),
    (32, "MODE_RDWR"),
    (64, "MODE_SEQUENTIAL"),
    (128, "MODE_UNIQUE_OPEN"),
    (256, "MODE_WRONLY"),
    (1024, "MODE_NOCHECK"),
    (2048, "MODE_NOPRECEDE"),
    (4096, "MODE_NOPUT"),
    (8192, "MODE_NOSTORE"),
    (16384, "MODE_NOSUCCEED"),
)
# What is for programs alone, and what both sides have alike.
OTHERS = {
    "VERSION": 5,
    "SUBVERSION": 0,
    "ABI_VERSION": ABI_VERSION,
    "ABI_SUBVERSION": ABI_SUBVERSION,
    "UNDEFINED": -32766,
    "ERR_LASTCODE": 0x3FFF,
    "BSEND_OVERHEAD": 512,
    "MAX_DATAREP_STRING": 128,
    "MAX_ERROR_STRING": 512,
    "MAX_INFO_KEY": 256,
    "MAX_INFO_VAL": 1024,
    "MAX_LIBRARY_VERSION_STRING": 8192,
    "MAX_OBJECT_NAME": 128,
    "MAX_PORT_NAME": 1024,
    "MAX_PROCESSOR_NAME": 256,
    "MAX_PSET_NAME_LEN": 1024,
    "MAX_STRINGTAG_LEN": 1024,
    "F_STATUS_SIZE": 8,
    **_in_turn((0, "F_SOURCE F_TAG F_ERROR")),
    **_in_turn(
        (1, "T_SCOPE_CONSTANT T_SCOPE_READONLY T_SCOPE_LOCAL T_SCOPE_GROUP T_SCOPE_GROUP_EQ"),
        (6, "T_SCOPE_ALL T_SCOPE_ALL_EQ"),
    ),
}
NUMBERS = {
    **OTHERS,
    **MODES,
    **{name: value for numbers in MEANINGS.values() for name, value in numbers.items()},
}
# Enumerations of their own types.
ENUMERATIONS = {
    "T_cb_safety": {
        "T_CB_REQUIRE_NONE": 0x00,
        "T_CB_REQUIRE_MPI_RESTRICTED": 0x03,
        "T_CB_REQUIRE_THREAD_SAFE": 0x0F,
        "T_CB_REQUIRE_ASYNC_SIGNAL_SAFE": 0x3F,
    },
    "T_source_order": _in_turn((1, "T_SOURCE_ORDERED T_SOURCE_UNORDERED")),
}
# Addresses, and functions, that stand for something else; the others are those of MPICH's ABI.
ADDRESSES = {
    "IN_PLACE": "((void *)1)",
    "BUFFER_AUTOMATIC": "((void *)2)",
    "STATUS_IGNORE": "((MPI_Status *)0)",
    "STATUSES_IGNORE": "((MPI_Status *)0)",
    "UNWEIGHTED": "((int *)10)",
    "WEIGHTS_EMPTY": "((int *)11)",
    "DISPLACEMENT_CURRENT": "((MPI_Offset)-1)",
    "T_PVAR_ALL_HANDLES": "((MPI_T_pvar_handle)1)",
    **{
        f"{kind}_DUP_FN": f"((MPI_{kind.capitalize()}_copy_attr_function *)1)"
        for kind in ("COMM", "TYPE", "WIN")
    },
    "DUP_FN": "((MPI_Comm_copy_attr_function *)1)",
}
