"""The algorithms of collectives (Thakur, Rabenseifner, Gropp: Optimization of collective
communication operations in MPICH, 2005), and when each is taken.

tools/collectives.py compares them; docs/performance.md has what came out on two CPUs, from which
the lengths are. What pays where many hosts work at once two CPUs cannot show: from 16 ranks on the
lengths of such algorithms are the paper's.
"""

from libc.stdint cimport int64_t

from shrimpmx.errors import InputError, did_you_mean

PREFIX = "SHRIMPMX_MPI_"

COLLECTIVE_OF = {
    "bcast": COLLECTIVE_BCAST,
    "gather": COLLECTIVE_GATHER,
    "scatter": COLLECTIVE_SCATTER,
    "allgather": COLLECTIVE_ALLGATHER,
    "alltoall": COLLECTIVE_ALLTOALL,
    "reduce": COLLECTIVE_REDUCE,
    "allreduce": COLLECTIVE_ALLREDUCE,
    "reduce_scatter": COLLECTIVE_REDUCE_SCATTER,
}
ALGORITHM_OF = {
    "all-at-once": ALGORITHM_ALL_AT_ONCE,
    "binomial": ALGORITHM_BINOMIAL,
    "bruck": ALGORITHM_BRUCK,
    "linear": ALGORITHM_LINEAR,
    "pairwise": ALGORITHM_PAIRWISE,
    "rabenseifner": ALGORITHM_RABENSEIFNER,
    "recursive-doubling": ALGORITHM_RECURSIVE_DOUBLING,
    "recursive-halving": ALGORITHM_RECURSIVE_HALVING,
    "ring": ALGORITHM_RING,
    "tree": ALGORITHM_TREE,
    "van-de-geijn": ALGORITHM_VAN_DE_GEIJN,
}

# The first row that fits is taken: from so many bytes and so many ranks on, where the call has all
# that the algorithm needs. Bytes are those of a message in gather, scatter and alltoall, of all
# ranks' parts in allgather and reduce_scatter, of the vector in all else.
TABLE = (
    ("bcast", "van-de-geijn", 12288, 16, 0),
    ("bcast", "binomial", 0, 1, 0),
    ("gather", "linear", 2048, 1, 0),
    ("gather", "binomial", 0, 16, EVEN),
    ("gather", "linear", 0, 1, 0),
    ("scatter", "linear", 2048, 1, 0),
    ("scatter", "binomial", 0, 16, EVEN),
    ("scatter", "linear", 0, 1, 0),
    ("allgather", "recursive-doubling", 0, 1, EVEN | POWER_OF_TWO),
    ("allgather", "ring", 32768, 1, 0),
    ("allgather", "bruck", 0, 1, EVEN),
    ("allgather", "ring", 0, 1, 0),
    ("alltoall", "pairwise", 32769, 16, 0),
    ("alltoall", "all-at-once", 257, 1, 0),
    ("alltoall", "bruck", 0, 16, EVEN),
    ("alltoall", "all-at-once", 0, 1, 0),
    ("reduce", "rabenseifner", 2049, 16, COMMUTES),
    ("reduce", "binomial", 0, 1, 0),
    ("allreduce", "rabenseifner", 65536, 1, COMMUTES),
    ("allreduce", "recursive-doubling", 0, 1, 0),
    ("reduce_scatter", "pairwise", 65536, 1, COMMUTES),
    ("reduce_scatter", "recursive-halving", 0, 1, COMMUTES),
    ("reduce_scatter", "tree", 0, 1, 0),
)


cdef struct Rule:            # a row of the table
    int collective
    int algorithm
    int64_t length
    int ranks
    int needs


cdef enum:
    RULES_MAX = 64
    NONE = -1

cdef:
    Rule[RULES_MAX] rules
    int rules_count = 0
    int[COLLECTIVES] first_rule  # whose rules stand side by side
    int[COLLECTIVES] forced     # an algorithm, or NONE


def algorithms_select(environment):
    """Take the table, and what environment variables force; InputError if one of these is wrong."""
    global rules_count
    rules_count = 0
    for collective, algorithm, length, ranks, needs in TABLE:
        if rules_count == 0 or rules[rules_count - 1].collective != COLLECTIVE_OF[collective]:
            first_rule[<int>COLLECTIVE_OF[collective]] = rules_count
        rules[rules_count] = Rule(
            COLLECTIVE_OF[collective], ALGORITHM_OF[algorithm], length, ranks, needs)
        rules_count += 1
    for number in range(COLLECTIVES):
        forced[<int>number] = NONE
    for variable, value in environment.items():
        if variable.startswith(PREFIX):
            collective = variable.removeprefix(PREFIX).lower()
            number = _collective_of(variable, collective)
            forced[<int>number] = _algorithm_of(variable, collective, value)


def _collective_of(variable, collective):
    if collective not in COLLECTIVE_OF:
        raise InputError(
            f"{variable} names no collective with a choice of algorithms; these have one: "
            f"{', '.join(PREFIX + name.upper() for name in COLLECTIVE_OF)}"
            f"{did_you_mean(collective, COLLECTIVE_OF)}")
    return COLLECTIVE_OF[collective]


def _algorithm_of(variable, collective, value):
    names = sorted({row[1] for row in TABLE if row[0] == collective})
    if value not in names:
        raise InputError(f"{variable}={value}: the algorithms of {collective} are "
                         f"{', '.join(names)}{did_you_mean(value, names)}")
    return ALGORITHM_OF[value]


def algorithm_name(collective, length, ranks, *, even=True, commutes=True):
    """The name of the algorithm that such a call takes."""
    cdef int has = (EVEN if even else 0) | (COMMUTES if commutes else 0)
    number = selected(COLLECTIVE_OF[collective], length, ranks, has)
    return next(name for name, each in ALGORITHM_OF.items() if each == number)


cdef Algorithm selected(Collective collective, int64_t length, int ranks, int has) noexcept nogil:
    cdef const Rule *rule
    cdef const Rule *found = NULL
    cdef int number
    if ranks & (ranks - 1) == 0:
        has |= POWER_OF_TWO
    for number in range(first_rule[<int>collective], rules_count):
        rule = &rules[number]
        if rule.collective != <int>collective:
            break
        if rule.needs & ~has != 0:
            continue
        if rule.algorithm == forced[<int>collective]:
            return <Algorithm>rule.algorithm
        if found == NULL and length >= rule.length and ranks >= rule.ranks:
            found = rule
    return <Algorithm>found.algorithm


algorithms_select({})
