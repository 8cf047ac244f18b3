/* Calls with large counts: they are those with counts of int, or are refused. calls.h includes it
 * between what these helpers use and the calls. */

enum { LISTS = 4 }; /* of a call at most */

/* Lists of int, made from longer numbers. */
struct lists {
    int *made[LISTS];
    int count;
    int failed; /* a number is too large, or there is no memory */
};

static int is_large(MPI_Count value) {
    return value > INT_MAX || value < INT_MIN;
}

/* A count of a file's data: the call itself refuses it, since others may wait for this rank. */
static int negative_if_large(MPI_Count count) {
    return is_large(count) ? -1 : (int)count;
}

static const int *narrow(struct lists *lists, const void *from, int length) {
    const MPI_Count *const values = from;
    if (from == NULL || length <= 0)
        return from; /* nobody looks at it */
    int *const made = malloc((size_t)length * sizeof *made);
    lists->made[lists->count++] = made;
    if (made == NULL)
        lists->failed = 1;
    for (int at = 0; at < length && !lists->failed; at++) {
        made[at] = (int)values[at];
        lists->failed = is_large(values[at]);
    }
    return made;
}

static void lists_free(struct lists *lists) {
    while (lists->count > 0)
        free(lists->made[--lists->count]);
}

static int too_large(MPI_Comm comm, int number) {
    called = number;
    table->Comm_call_errhandler(comm, ERR_COUNT);
    return ERR_COUNT;
}

/* -- Lengths of lists; 0 outside a run, where the call itself ends the process. */

static int in_place(const void *data) {
    return data == (void *)-1; /* MPI_IN_PLACE */
}

static int size_of(MPI_Comm comm) {
    int size = 0;
    if (state == RUNNING)
        table->Comm_size(comm, &size);
    return size;
}

static int peers(MPI_Comm comm) {
    int size = size_of(comm), inter = 0;
    if (size > 0)
        table->Comm_test_inter(comm, &inter);
    if (inter)
        table->Comm_remote_size(comm, &size);
    return size;
}

static int peers_at(MPI_Comm comm, int root) {
    enum { ROOT = -3 };
    int inter = 0, rank = ROOT;
    if (state != RUNNING)
        return 0;
    table->Comm_test_inter(comm, &inter);
    if (!inter)
        table->Comm_rank(comm, &rank);
    return rank == root ? peers(comm) : 0;
}

static int neighbors(MPI_Comm comm, int that_receive) {
    enum { GRAPH = 1, CART = 2, DIST_GRAPH = 3 };
    int kind = 0, rank, count = 0, in = 0, out = 0, weighted;
    if (state != RUNNING)
        return 0;
    table->Topo_test(comm, &kind);
    if (kind == CART) {
        table->Cartdim_get(comm, &count);
        return 2 * count;
    }
    if (kind == GRAPH) {
        table->Comm_rank(comm, &rank);
        table->Graph_neighbors_count(comm, rank, &count);
        return count;
    }
    if (kind == DIST_GRAPH)
        table->Dist_graph_neighbors_count(comm, &in, &out, &weighted);
    return that_receive ? out : in;
}

/* -- A datatype of more elements than an int counts: blocks of INT_MAX, and the rest. */

static int contiguous_blocks(MPI_Count count, MPI_Datatype oldtype, MPI_Datatype *newtype) {
    MPI_Datatype parts[2];
    MPI_Aint lb, extent, places[2] = {0, 0};
    const int lengths[2] = {1, 1};
    if (count < 0 || is_large(count / INT_MAX))
        return too_large(COMM_WORLD, MPI_FUNCTION_Type_contiguous);
    int code = table->Type_get_extent(oldtype, &lb, &extent);
    if (code == SUCCESS)
        code = table->Type_vector((int)(count / INT_MAX), INT_MAX, INT_MAX, oldtype, &parts[0]);
    if (code != SUCCESS)
        return code;
    places[1] = count / INT_MAX * INT_MAX * extent;
    code = table->Type_contiguous((int)(count % INT_MAX), oldtype, &parts[1]);
    if (code == SUCCESS) {
        code = table->Type_create_struct(2, lengths, places, parts, newtype);
        table->Type_free(&parts[1]);
    }
    table->Type_free(&parts[0]);
    return code;
}
