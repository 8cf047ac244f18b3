"""The constants of the MPICH ABI that programs compile in, beyond those of abi.pxd.

Values are those of the ABI (https://www.mpich.org/abi), names without their prefix MPI_.
"""

from __future__ import annotations

# Built-in datatypes by their handles, which have the size of an element in their second byte.
DATATYPES = {
    0x4C000101: "CHAR", 0x4C000102: "UNSIGNED_CHAR", 0x4C000118: "SIGNED_CHAR",
    0x4C00040E: "WCHAR", 0x4C000203: "SHORT", 0x4C000204: "UNSIGNED_SHORT", 0x4C000405: "INT",
    0x4C000406: "UNSIGNED", 0x4C000807: "LONG", 0x4C000808: "UNSIGNED_LONG",
    0x4C000809: "LONG_LONG_INT", 0x4C000819: "UNSIGNED_LONG_LONG", 0x4C00040A: "FLOAT",
    0x4C00080B: "DOUBLE", 0x4C00100C: "LONG_DOUBLE", 0x4C00010D: "BYTE", 0x4C00010F: "PACKED",
    0x4C000137: "INT8_T", 0x4C000238: "INT16_T", 0x4C000439: "INT32_T", 0x4C00083A: "INT64_T",
    0x4C00013B: "UINT8_T", 0x4C00023C: "UINT16_T", 0x4C00043D: "UINT32_T",
    0x4C00083E: "UINT64_T", 0x4C00013F: "C_BOOL", 0x4C000840: "C_COMPLEX",
    0x4C001041: "C_DOUBLE_COMPLEX", 0x4C002042: "C_LONG_DOUBLE_COMPLEX", 0x4C000843: "AINT",
    0x4C000844: "OFFSET", 0x4C000845: "COUNT", 0x4C000133: "CXX_BOOL",
    0x4C000834: "CXX_FLOAT_COMPLEX", 0x4C001035: "CXX_DOUBLE_COMPLEX",
    0x4C002036: "CXX_LONG_DOUBLE_COMPLEX", 0x4C000816: "2INT", 0x4C00011A: "CHARACTER",
    0x4C00041D: "LOGICAL", 0x4C00041B: "INTEGER", 0x4C00041C: "REAL",
    0x4C00081F: "DOUBLE_PRECISION", 0x4C00081E: "COMPLEX", 0x4C001022: "DOUBLE_COMPLEX",
    0x4C000820: "2INTEGER", 0x4C000821: "2REAL", 0x4C001023: "2DOUBLE_PRECISION",
    0x4C00012D: "INTEGER1", 0x4C00022F: "INTEGER2", 0x4C000430: "INTEGER4",
    0x4C000831: "INTEGER8", 0x4C000427: "REAL4", 0x4C000829: "REAL8", 0x4C00102B: "REAL16",
    0x4C000828: "COMPLEX8", 0x4C00102A: "COMPLEX16", 0x4C00202C: "COMPLEX32",
    0x4C000246: "FLOAT16", 0x4C000226: "REAL2", 0x4C00042E: "COMPLEX4", 0x4C001032: "INTEGER16",
    0x4C000147: "LOGICAL1", 0x4C000248: "LOGICAL2", 0x4C000449: "LOGICAL4",
    0x4C00084A: "LOGICAL8", 0x4C00104B: "LOGICAL16",
    0x4C000010: "LB", 0x4C000011: "UB",  # of MPI 1: bounds of structures, without data
}  # fmt: skip
# Other names of the same, and pairs of a value and an index.
_OTHER_DATATYPES = {
    "LONG_LONG": 0x4C000809,
    "C_FLOAT_COMPLEX": 0x4C000840,
    "FLOAT_INT": 0x8C000000,
    "DOUBLE_INT": 0x8C000001,
    "LONG_INT": 0x8C000002,
    "SHORT_INT": 0x8C000003,
    "LONG_DOUBLE_INT": 0x8C000004,
}
_OPERATIONS = (
    *("MAX", "MIN", "SUM", "PROD", "LAND", "BAND", "LOR", "BOR", "LXOR", "BXOR", "MINLOC"),
    *("MAXLOC", "REPLACE", "NO_OP"),
)
# Of int: all of those without a type of their own.
NUMBERS = {
    "VERSION": 4,
    "SUBVERSION": 1,
    "THREAD_SINGLE": 0,
    "THREAD_FUNNELED": 1,
    "GRAPH": 1,
    "CART": 2,
    "DIST_GRAPH": 3,
    "COMM_TYPE_SHARED": 1,
    "COMM_TYPE_HW_GUIDED": 2,
    "COMM_TYPE_HW_UNGUIDED": 3,
    "COMM_TYPE_RESOURCE_GUIDED": 4,
    "BSEND_OVERHEAD": 96,
    "MAX_INFO_KEY": 255,
    "MAX_INFO_VAL": 1024,
    "MAX_PORT_NAME": 256,
    "MAX_LIBRARY_VERSION_STRING": 8192,
    "KEYVAL_INVALID": 0x24000000,
    "TYPECLASS_REAL": 1,
    "TYPECLASS_INTEGER": 2,
    "TYPECLASS_COMPLEX": 3,
    "COMBINER_HVECTOR_INTEGER": 5,
    "COMBINER_HINDEXED_INTEGER": 8,
    "COMBINER_STRUCT_INTEGER": 11,
    "COMBINER_VALUE_INDEX": 20,
    "WIN_SEPARATE": 1,
    "ERR_PORT": 38,
    "ERR_SERVICE": 41,
    "ERR_SPAWN": 42,
    "ERR_NAME": 33,
    "ERR_PROC_ABORTED": 76,
    "ERR_VALUE_TOO_LARGE": 77,
    "ERR_ERRHANDLER": 80,
    # Of the tool information interface: names without MPI_, by their first value.
    **{
        f"T_{name}": first + number
        for first, names in {
            59: "ERR_MEMORY ERR_NOT_INITIALIZED ERR_CANNOT_INIT ERR_INVALID_INDEX ERR_INVALID_ITEM "
            "ERR_INVALID_HANDLE ERR_OUT_OF_HANDLES ERR_OUT_OF_SESSIONS ERR_INVALID_SESSION "
            "ERR_CVAR_SET_NOT_NOW ERR_CVAR_SET_NEVER ERR_PVAR_NO_STARTSTOP ERR_PVAR_NO_WRITE "
            "ERR_PVAR_NO_ATOMIC ERR_INVALID_NAME ERR_INVALID",
            78: "ERR_NOT_SUPPORTED ERR_NOT_ACCESSIBLE",
            221: "VERBOSITY_USER_BASIC VERBOSITY_USER_DETAIL VERBOSITY_USER_ALL "
            "VERBOSITY_TUNER_BASIC VERBOSITY_TUNER_DETAIL VERBOSITY_TUNER_ALL "
            "VERBOSITY_MPIDEV_BASIC VERBOSITY_MPIDEV_DETAIL VERBOSITY_MPIDEV_ALL",
            240: "PVAR_CLASS_STATE PVAR_CLASS_LEVEL PVAR_CLASS_SIZE PVAR_CLASS_PERCENTAGE "
            "PVAR_CLASS_HIGHWATERMARK PVAR_CLASS_LOWWATERMARK PVAR_CLASS_COUNTER "
            "PVAR_CLASS_AGGREGATE PVAR_CLASS_TIMER PVAR_CLASS_GENERIC",
            9700: "BIND_NO_OBJECT BIND_MPI_COMM BIND_MPI_DATATYPE BIND_MPI_ERRHANDLER "
            "BIND_MPI_FILE BIND_MPI_GROUP BIND_MPI_OP BIND_MPI_REQUEST BIND_MPI_WIN "
            "BIND_MPI_MESSAGE BIND_MPI_INFO BIND_MPI_SESSION",
            60438: "SCOPE_CONSTANT SCOPE_READONLY SCOPE_LOCAL SCOPE_GROUP SCOPE_GROUP_EQ "
            "SCOPE_ALL SCOPE_ALL_EQ",
        }.items()
        for number, name in enumerate(names.split())
    },
}
# Handles, with their types.
HANDLES = {
    "Datatype": {
        **{name: handle for handle, name in DATATYPES.items()},
        **_OTHER_DATATYPES,
        "DATATYPE_NULL": 0x0C000000,
    },
    "Op": {
        "OP_NULL": 0x18000000,
        **{name: 0x58000000 + n for n, name in enumerate(_OPERATIONS, 1)},
    },
    "Win": {"WIN_NULL": 0x20000000},
    "Comm": {"COMM_NULL": 0x04000000, "COMM_WORLD": 0x44000000, "COMM_SELF": 0x44000001},
    "Group": {"GROUP_NULL": 0x08000000, "GROUP_EMPTY": 0x48000000},
    "Errhandler": {
        "ERRHANDLER_NULL": 0x14000000,
        "ERRORS_ARE_FATAL": 0x54000000,
        "ERRORS_RETURN": 0x54000001,
        "ERRORS_ABORT": 0x54000003,
    },
    "Info": {"INFO_NULL": 0x1C000000, "INFO_ENV": 0x5C000001},
    "Request": {"REQUEST_NULL": 0x2C000000},
    "Session": {"SESSION_NULL": 0x38000000},
    "Message": {"MESSAGE_NULL": 0x2C000000, "MESSAGE_NO_PROC": 0x6C000000},
}
# Addresses that stand for something else.
ADDRESSES = {
    "BOTTOM": "((void *)0)",
    "IN_PLACE": "((void *)-1)",
    "BUFFER_AUTOMATIC": "((void *)-2)",
    "STATUS_IGNORE": "((MPI_Status *)1)",
    "STATUSES_IGNORE": "((MPI_Status *)1)",
    "ERRCODES_IGNORE": "((int *)0)",
    "ARGV_NULL": "((char **)0)",
    "ARGVS_NULL": "((char ***)0)",
    "FILE_NULL": "((MPI_File)0)",
    "DISPLACEMENT_CURRENT": "((MPI_Offset)-54278278)",
    "CONVERSION_FN_NULL": "((MPI_Datarep_conversion_function *)0)",
    "CONVERSION_FN_NULL_C": "((MPI_Datarep_conversion_function_c *)0)",
    **{
        f"T_{kind.upper()}_NULL": f"((MPI_T_{kind})0)"
        for kind in ("enum", "cvar_handle", "pvar_handle", "pvar_session")
    },
    **{
        f"{kind}_NULL_{what}_FN": f"((MPI_{kind.capitalize()}_{name}_attr_function *)0)"
        for kind in ("COMM", "TYPE", "WIN")
        for what, name in (("COPY", "copy"), ("DELETE", "delete"))
    },
    "NULL_COPY_FN": "((MPI_Comm_copy_attr_function *)0)",
    "NULL_DELETE_FN": "((MPI_Comm_delete_attr_function *)0)",
    **{f"{kind}_DUP_FN": "MPIR_Dup_fn" for kind in ("COMM", "TYPE", "WIN")},
    "DUP_FN": "MPIR_Dup_fn",
}
