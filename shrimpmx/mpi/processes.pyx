"""Processes that come later: spawned ones, and those that meet at a port (MPI 4.1, chapter 11).

Two groups that do not know each other meet by their roots: one of these has to know the other's
number in the run. They exchange their groups on the communicator of the whole run, which no program
sees, and make an inter-communicator as MPI_Intercomm_create does.

The supervisor of the run starts processes. A root leaves it a request in a file, and finds its
answer in another one; all else is compiled.
"""

from libc.errno cimport EINTR, errno
from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset, strlen
from posix.unistd cimport read, write

from shrimpmx.mpi.abi cimport (
    MPI_ANY_SOURCE, MPI_COMM_NULL, MPI_ERRORS_ABORT, MPI_ERRORS_ARE_FATAL, MPI_ERRORS_RETURN,
    MPI_ERR_ARG, MPI_ERR_COMM, MPI_ERR_INFO, MPI_ERR_NAME, MPI_ERR_NO_MEM, MPI_ERR_PORT,
    MPI_ERR_ROOT, MPI_ERR_SERVICE, MPI_ERR_SPAWN, MPI_INFO_NULL, MPI_SUCCESS, MPI_Comm, MPI_Info,
)
from shrimpmx.mpi.collective_calls cimport broadcast_bytes
from shrimpmx.mpi.comm_create cimport (
    CONNECTED_BY_OTHERS, CONNECTING, TAG_GROUPS, intercomm_between,
)
from shrimpmx.mpi.communicator cimport (
    CONTEXT_MESSAGES, Comm, comm_intra_of, comm_of, comm_run, comm_self, comm_world,
)
from shrimpmx.mpi.error cimport (
    CODE_INTERRUPTED, DETAIL_PROGRAM, DETAIL_SLOTS, ended, error_detailed, error_raise,
)
from shrimpmx.mpi.info cimport info_is, info_text
from shrimpmx.mpi.matching cimport match_bits, match_mask
from shrimpmx.mpi.section cimport Awaited, awaited_message
from shrimpmx.mpi.table cimport mpi_table
from shrimpmx.mpi.world cimport world, world_connect, world_wait
from shrimpmx.mx.calls cimport (
    call_abandon, call_enter, call_leave, call_receive, call_release, call_send,
)
from shrimpmx.mx.core cimport EndpointCore, found_done
from shrimpmx.mx.library cimport Library
from shrimpmx.mx.types cimport MxRequest
from shrimpmx.native.atomics cimport load_acquire_u32
from shrimpmx.shared.section cimport control_process_section

cdef enum:
    # Tags on the communicator of the run: those of ports follow, up to TAG_GROUPS.
    TAG_SPAWN = 0
    TAG_JOIN
    TAG_PORTS
    # MPI_MAX_PORT_NAME
    PORT_BYTES = 256

cdef:
    object own = None            # of this process: Joined; None in a world of one
    object made_requests = None
    volatile uint32_t *answers   # of the supervisor so far


cdef object requests_of_run():
    """To the supervisor; None in a world of one. Most programs make none."""
    global made_requests
    if made_requests is None and own is not None:
        from shrimpmx.mpi.spawning import Requests

        made_requests = Requests(own)
    return made_requests


cdef int processes_start(object joined) except -1:
    global own, answers
    cdef int code = MPI_SUCCESS
    if not joined.directory:
        return 0
    own = joined
    comm_world().error_handler = comm_self().error_handler = first_error_handler(
        joined.world.error_handler)
    answers = &control_process_section(world.header, joined.runners[joined.rank]).answers
    if joined.world.parent >= 0:
        parent = <int>joined.world.parent
        with nogil:
            code = meet(comm_world(), 0, parent, TAG_SPAWN, True, &world.parent)
            ended(comm_world(), code)
    return 0


cdef int first_error_handler(str name) except -1:
    """By the value of the info key mpi_initial_errhandler (MPI 4.1, 11.8.4)."""
    if name == "mpi_errors_return":
        return MPI_ERRORS_RETURN
    return MPI_ERRORS_ABORT if name == "mpi_errors_abort" else MPI_ERRORS_ARE_FATAL


cdef int meet(Comm *local, int root, int number, int tag, bint comes,
              MPI_Comm *made) noexcept nogil:
    """Make an inter-communicator with the group whose root has that `number` in the run, which the
    own root knows: the code of an error. `comes`: it is this group that comes to the other one.
    """
    return intercomm_between(local, root, comm_run(), number, tag,
                             CONNECTING if comes else CONNECTED_BY_OTHERS, made)


# -- spawning ------------------------------------------------------------------------------------

cdef struct Outcome:         # of a spawn, as its root tells it
    int code
    int leader               # the number in the run of the first spawned rank
    int wanted               # the ranks that were asked for, of all commands


cdef bint found_answer(Library library, void *context) noexcept nogil:
    return load_acquire_u32(<const void *>answers) != (<const uint32_t *>context)[0]


cdef int spawn(const char *command, char **argv, int maxprocs, MPI_Info info, int root,
               MPI_Comm handle, MPI_Comm *made, int *errcodes) noexcept nogil:
    cdef char *commands = <char *>command
    return spawn_multiple(1, &commands, &argv, &maxprocs, &info, root, handle, made, errcodes)


cdef int spawn_multiple(int count, char **commands, char ***argvs, const int *maxprocs,
                        const MPI_Info *infos, int root, MPI_Comm handle, MPI_Comm *made,
                        int *errcodes) noexcept nogil:
    cdef Comm *comm = comm_intra_of(handle)
    cdef Outcome outcome
    cdef int *codes = NULL
    cdef int code
    made[0] = MPI_COMM_NULL
    if comm == NULL:
        return error_raise(comm_of(handle), MPI_ERR_COMM)
    if not 0 <= root < comm.size:
        return error_raise(comm, MPI_ERR_ROOT)
    memset(&outcome, 0, sizeof(outcome))
    if comm.rank == root:
        outcome.code = check(count, commands, maxprocs, infos)
        if outcome.code == MPI_SUCCESS:
            outcome.code = start(count, commands, argvs, maxprocs, infos, &outcome, &codes)
    code = broadcast_bytes(comm, &outcome, sizeof(outcome), root)
    if code == MPI_SUCCESS and errcodes != NULL and outcome.wanted > 0:
        if codes != NULL:
            for number in range(outcome.wanted):
                errcodes[number] = codes[number]
        code = broadcast_bytes(comm, errcodes, outcome.wanted * sizeof(int), root)
    free(codes)
    if code == MPI_SUCCESS:
        code = outcome.code
    if code == MPI_SUCCESS:
        code = meet(comm, root, outcome.leader, TAG_SPAWN, False, made)
    return ended(comm, code)


cdef int check(int count, char **commands, const int *maxprocs,
               const MPI_Info *infos) noexcept nogil:
    """The class of an error in the root's arguments."""
    cdef int number
    if count < 1 or commands == NULL or maxprocs == NULL:
        return MPI_ERR_ARG
    for number in range(count):
        if commands[number] == NULL or maxprocs[number] < 0:
            return MPI_ERR_ARG
        if infos != NULL and not info_is(infos[number]):
            return MPI_ERR_INFO
    return MPI_SUCCESS


cdef int start(int count, char **commands, char ***argvs, const int *maxprocs,
               const MPI_Info *infos, Outcome *outcome, int **codes) noexcept nogil:
    """Have the supervisor start the ranks, and wait until they have joined: the code of an error.
    `codes`: one for each rank that was wanted.
    """
    cdef int number
    cdef int code
    cdef uint32_t seen
    for number in range(count):
        outcome.wanted += maxprocs[number]
    codes[0] = <int *>calloc(max(1, outcome.wanted), sizeof(int))
    if codes[0] == NULL:
        return MPI_ERR_NO_MEM
    for number in range(outcome.wanted):
        codes[0][number] = MPI_ERR_SPAWN
    if world.size == world.first:
        return error_detailed(MPI_ERR_SPAWN, DETAIL_SLOTS)
    number = ask(count, commands, argvs, maxprocs, infos)
    while True:
        seen = load_acquire_u32(<const void *>answers)
        code = answer_of(number, maxprocs, outcome, codes[0])
        if code >= 0:
            return code
        call_enter(<EndpointCore>world.core)
        if not world_wait(found_answer, NULL, &seen):
            call_leave(<EndpointCore>world.core)
            return CODE_INTERRUPTED
        call_leave(<EndpointCore>world.core)


cdef int ask(int count, char **commands, char ***argvs, const int *maxprocs,
             const MPI_Info *infos) noexcept with gil:
    """The number of the request."""
    wanted = []
    for number in range(count):
        words, hints = [commands[number]], {}
        argument = argvs[number] if argvs != NULL else NULL
        while argument != NULL and argument[0] != NULL:
            words.append(<bytes>argument[0])
            argument += 1
        for key in (b"wdir", b"path", b"host", b"soft", b"mpi_initial_errhandler"):
            value = info_text(infos[number], key) if infos != NULL \
                and infos[number] != MPI_INFO_NULL else NULL
            if value != NULL:
                hints[key.decode()] = (<bytes>value).decode(errors="surrogateescape")
        wanted.append((words, maxprocs[number], hints))
    return requests_of_run().ask(wanted)


cdef int answer_of(int request, const int *maxprocs, Outcome *outcome,
                   int *codes) noexcept with gil:
    """The code that a request ends with; -1: it has not ended yet."""
    cdef int command, number, first = 0
    answer = requests_of_run().answer(request)
    if answer is None:
        return -1
    if answer["error"]:
        return error_detailed(MPI_ERR_SPAWN,
                              DETAIL_SLOTS if answer["error"] == "slots" else DETAIL_PROGRAM)
    for command, members in enumerate(answer["members"]):
        for number in range(<int>len(members)):
            codes[first + number] = MPI_SUCCESS
        first += maxprocs[command]
    everyone = [member for members in answer["members"] for member in members]
    if not everyone:
        return MPI_ERR_SPAWN
    outcome.leader = everyone[0]
    return MPI_SUCCESS


cdef int get_parent(MPI_Comm *parent) noexcept nogil:
    parent[0] = world.parent
    return MPI_SUCCESS


# -- ports ---------------------------------------------------------------------------------------

cdef struct Port:            # as its name has it
    int number               # in the run, of the process that has opened it
    uint32_t pid             # of the same
    int tag                  # on the communicator of the run


cdef int open_port(MPI_Info info, char *name) noexcept nogil:
    if not info_is(info):
        return error_raise(NULL, MPI_ERR_INFO)
    if not name_new_port(name):
        return error_raise(NULL, MPI_ERR_PORT)
    return MPI_SUCCESS


cdef bint name_new_port(char *name) noexcept with gil:
    requests = requests_of_run()
    text = None if requests is None else requests.open_port(TAG_PORTS, TAG_GROUPS - 1)
    if text is None:
        return False
    write_text(name, text)
    return True


cdef int write_text(char *into, str text) except -1:
    """What is known to fit."""
    cdef bytes data = text.encode(errors="surrogateescape")
    cdef int position
    for position in range(<int>len(data)):
        into[position] = data[position]
    into[len(data)] = 0
    return 0


cdef int close_port(const char *name) noexcept nogil:
    return MPI_SUCCESS if forget_port(name) else error_raise(NULL, MPI_ERR_PORT)


cdef bint forget_port(const char *name) noexcept with gil:
    requests = requests_of_run()
    return requests is not None and requests.close_port(text_of(name))


cdef str text_of(const char *text):
    return text[:strlen(text)].decode(errors="surrogateescape")


cdef bint find_port(const char *name, bint own, Port *port) noexcept with gil:
    """False if there is none of that name, or, if it is to be, not one of this process."""
    requests = requests_of_run()
    found = requests.port(text_of(name)) if requests is not None and name != NULL else None
    if found is None:
        return False
    port.number, port.pid, port.tag = found
    if not 0 <= port.number < world.size:
        return False
    return requests.has_port(text_of(name)) if own else (
        port.number != world.rank
        and load_acquire_u32(<const void *>&world.runners[port.number].pid) == port.pid)


cdef int accept(const char *name, MPI_Info info, int root, MPI_Comm handle,
                MPI_Comm *made) noexcept nogil:
    return at_port(name, info, root, handle, made, True)


cdef int connect(const char *name, MPI_Info info, int root, MPI_Comm handle,
                 MPI_Comm *made) noexcept nogil:
    return at_port(name, info, root, handle, made, False)


cdef int at_port(const char *name, MPI_Info info, int root, MPI_Comm handle, MPI_Comm *made,
                 bint accepts) noexcept nogil:
    cdef Comm *comm = comm_intra_of(handle)
    cdef Port port
    cdef int number = 0
    cdef int code
    made[0] = MPI_COMM_NULL
    if comm == NULL:
        return error_raise(comm_of(handle), MPI_ERR_COMM)
    if not 0 <= root < comm.size:
        return error_raise(comm, MPI_ERR_ROOT)
    # What the root finds wrong all of its group learn.
    memset(&port, 0, sizeof(port))
    code = MPI_SUCCESS
    if comm.rank == root:
        if not info_is(info):
            code = MPI_ERR_INFO
        elif not find_port(name, accepts, &port):
            code = MPI_ERR_PORT
        elif accepts:
            code = await_knock(port.tag, &number)
        else:
            number = port.number
            code = knock(number, port.tag)
        port.number = code
    code = broadcast_bytes(comm, &port, sizeof(port), root)
    if code == MPI_SUCCESS:
        code = port.number
    if code == MPI_SUCCESS:
        code = meet(comm, root, number, port.tag, not accepts, made)
    return ended(comm, code)


cdef void awaited_by_port(const void *context, Awaited *awaited) noexcept nogil:
    awaited_message(<const MxRequest *>context, awaited)


cdef int knock(int number, int tag) noexcept nogil:
    """Tell the process at a port who comes: the code of an error."""
    cdef int code = world_connect(&number, 1)
    cdef MxRequest *message
    if code != MPI_SUCCESS:
        return MPI_ERR_PORT if code != CODE_INTERRUPTED else code
    call_enter(<EndpointCore>world.core)
    message = call_send(<EndpointCore>world.core, world.partners[number], &world.rank, sizeof(int),
                        match_bits(comm_run().context + CONTEXT_MESSAGES, world.rank, tag), False)
    code = MPI_ERR_NO_MEM if message == NULL else await_message(message)
    call_leave(<EndpointCore>world.core)
    return code


cdef int await_knock(int tag, int *number) noexcept nogil:
    cdef MxRequest *message
    cdef int code
    call_enter(<EndpointCore>world.core)
    message = call_receive(<EndpointCore>world.core, number, sizeof(int),
                           match_bits(comm_run().context + CONTEXT_MESSAGES, 0, tag),
                           match_mask(MPI_ANY_SOURCE, tag))
    code = MPI_ERR_NO_MEM if message == NULL else await_message(message)
    call_leave(<EndpointCore>world.core)
    return code if code != MPI_SUCCESS or 0 <= number[0] < world.size else MPI_ERR_PORT


cdef int await_message(MxRequest *message) noexcept nogil:
    """Under the lock, and the message is gone then: the code of an error."""
    cdef int code = MPI_SUCCESS
    if not world_wait(found_done, awaited_by_port, message):
        code = CODE_INTERRUPTED
        if not call_abandon(<EndpointCore>world.core, message):
            return code
    elif message.status != 0:
        code = MPI_ERR_PORT
    call_release(<EndpointCore>world.core, message)
    return code


# -- joining by a socket ---------------------------------------------------------------------------

cdef struct Card:            # what each side tells the other one
    uint64_t run_key
    int number


cdef int join(int descriptor, MPI_Comm *made) noexcept nogil:
    """MPI_COMM_NULL if the other side is no process of this run (MPI 4.1, 11.10.5)."""
    cdef Card card, other
    made[0] = MPI_COMM_NULL
    memset(&card, 0, sizeof(card))
    card.run_key, card.number = key_of_run(), world.rank
    if not (put(descriptor, &card) and get(descriptor, &other)):
        return error_raise(NULL, MPI_ERR_ARG)
    if (card.run_key == 0 or other.run_key != card.run_key or other.number == world.rank
            or not 0 <= other.number < world.size):
        return MPI_SUCCESS
    return ended(comm_self(), meet(comm_self(), 0, other.number, TAG_JOIN,
                                   world.rank > other.number, made))


cdef uint64_t key_of_run() noexcept with gil:
    """The same in all processes of a run only; 0: of none."""
    requests = requests_of_run()
    return 0 if requests is None else requests.run_key


cdef bint put(int descriptor, const Card *card) noexcept nogil:
    cdef size_t done = 0
    cdef ssize_t now
    while done < sizeof(Card):
        now = write(descriptor, <const char *>card + done, sizeof(Card) - done)
        if now < 0 and errno == EINTR:
            continue
        if now <= 0:
            return False
        done += now
    return True


cdef bint get(int descriptor, Card *card) noexcept nogil:
    cdef size_t done = 0
    cdef ssize_t now
    while done < sizeof(Card):
        now = read(descriptor, <char *>card + done, sizeof(Card) - done)
        if now < 0 and errno == EINTR:
            continue
        if now <= 0:
            return False
        done += now
    return True


cdef void processes_fill(mpi_table *table) noexcept nogil:
    table.Comm_spawn = spawn
    table.Comm_spawn_multiple = spawn_multiple
    table.Comm_get_parent = get_parent
    table.Open_port = open_port
    table.Close_port = close_port
    table.Comm_accept = accept
    table.Comm_connect = connect
    table.Comm_join = join


# -- Names of services.

cdef int publish(const char *service, MPI_Info info, const char *port) noexcept nogil:
    return change(True, service, info, port)


cdef int unpublish(const char *service, MPI_Info info, const char *port) noexcept nogil:
    return change(False, service, info, port)


cdef int change(bint adds, const char *service, MPI_Info info, const char *port) noexcept nogil:
    if not info_is(info):
        return error_raise(NULL, MPI_ERR_INFO)
    return ended(NULL, change_in_run(adds, service, port))


cdef int change_in_run(bint adds, const char *service, const char *port) noexcept with gil:
    requests = requests_of_run()
    if requests is None:
        return MPI_ERR_SERVICE
    call = requests.publish if adds else requests.unpublish
    return MPI_SUCCESS if call(text_of(service), text_of(port)) else MPI_ERR_SERVICE


cdef int lookup(const char *service, MPI_Info info, char *port) noexcept nogil:
    if not info_is(info):
        return error_raise(NULL, MPI_ERR_INFO)
    return ended(NULL, lookup_in_run(service, port))


cdef int lookup_in_run(const char *service, char *port) noexcept with gil:
    requests = requests_of_run()
    found = "" if requests is None else requests.lookup(text_of(service))
    if not found:
        return MPI_ERR_NAME
    write_text(port, found)
    return MPI_SUCCESS


cdef void names_fill(mpi_table *table) noexcept nogil:
    table.Publish_name = publish
    table.Unpublish_name = unpublish
    table.Lookup_name = lookup
