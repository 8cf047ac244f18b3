"""The functions of MPI that the libraries have, with their arguments: MPI 4.1, C binding.

Names and types are written without their prefix MPI_ (https://www.mpi-forum.org/docs/).
"""

from __future__ import annotations

# Functions with the same arguments stand together. One whose name begins with "+" is the same
# operation as a request, which is its last argument. "*Bcast" stands for Bcast, for the request
# Ibcast, and for the persistent request Bcast_init, which has hints, too; the table has the latter
# two, of which Ibcast waits if it gets no request. A function with a type that ends in "+" or "^"
# has a twin for large counts, Bcast_c, where it is Count or Aint. All but two functions return an
# error code.
PROTOTYPES = """
Query_thread(int *provided)
Is_thread_main(int *flag)
Finalize()
Abort(Comm comm, int errorcode)
double Wtime Wtick()
Get_processor_name(char *name, int *resultlen)
Pcontrol(int level)
Alloc_mem(Aint size, Info info, void *baseptr)
Free_mem(void *base)
Get_address(const void *location, Aint *address)

Send Bsend Rsend Ssend +Isend +Ibsend +Irsend +Issend
    +Send_init +Bsend_init +Rsend_init +Ssend_init(
    const void *buf, int+ count, Datatype datatype, int dest, int tag, Comm comm)
Recv(void *buf, int+ count, Datatype datatype, int source, int tag, Comm comm, Status *status)
+Irecv +Recv_init(void *buf, int+ count, Datatype datatype, int source, int tag, Comm comm)
Sendrecv(const void *sendbuf, int+ sendcount, Datatype sendtype, int dest, int sendtag,
    void *recvbuf, int+ recvcount, Datatype recvtype, int source, int recvtag, Comm comm,
    Status *status)
Sendrecv_replace(void *buf, int+ count, Datatype datatype, int dest, int sendtag, int source,
    int recvtag, Comm comm, Status *status)
+Isendrecv(const void *sendbuf, int+ sendcount, Datatype sendtype, int dest, int sendtag,
    void *recvbuf, int+ recvcount, Datatype recvtype, int source, int recvtag, Comm comm)
+Isendrecv_replace(void *buf, int+ count, Datatype datatype, int dest, int sendtag, int source,
    int recvtag, Comm comm)
Probe(int source, int tag, Comm comm, Status *status)
Iprobe(int source, int tag, Comm comm, int *flag, Status *status)
Mprobe(int source, int tag, Comm comm, Message *message, Status *status)
Improbe(int source, int tag, Comm comm, int *flag, Message *message, Status *status)
Mrecv(void *buf, int+ count, Datatype datatype, Message *message, Status *status)
+Imrecv(void *buf, int+ count, Datatype datatype, Message *message)
Buffer_attach(void *buffer, int+ size)
Buffer_detach(void *buffer_addr, int+ *size)
Buffer_flush()
+Buffer_iflush()
Comm_attach_buffer(Comm comm, void *buffer, int+ size)
Comm_detach_buffer(Comm comm, void *buffer_addr, int+ *size)
Comm_flush_buffer +Comm_iflush_buffer(Comm comm)
+Psend_init(const void *buf, int partitions, Count count, Datatype datatype, int dest, int tag,
    Comm comm, Info info)
+Precv_init(void *buf, int partitions, Count count, Datatype datatype, int source, int tag,
    Comm comm, Info info)
Pready(int partition, Request request)
Pready_range(int partition_low, int partition_high, Request request)
Pready_list(int length, const int *partitions, Request request)
Parrived(Request request, int partition, int *flag)

Wait(Request *request, Status *status)
Test(Request *request, int *flag, Status *status)
Waitany(int count, Request *requests, int *index, Status *status)
Testany(int count, Request *requests, int *index, int *flag, Status *status)
Waitall(int count, Request *requests, Status *statuses)
Testall(int count, Request *requests, int *flag, Status *statuses)
Waitsome Testsome(int incount, Request *requests, int *outcount, int *indices, Status *statuses)
Request_get_status(Request request, int *flag, Status *status)
Request_get_status_any(int count, const Request *requests, int *index, int *flag, Status *status)
Request_get_status_all(int count, const Request *requests, int *flag, Status *statuses)
Request_get_status_some(int incount, const Request *requests, int *outcount, int *indices,
    Status *statuses)
Request_free Cancel Start(Request *request)
Startall(int count, Request *requests)
+Grequest_start(Grequest_query_function *query_fn, Grequest_free_function *free_fn,
    Grequest_cancel_function *cancel_fn, void *extra_state)
Grequest_complete(Request request)

Get_count(const Status *status, Datatype datatype, int+ *count)
Get_elements_x(const Status *status, Datatype datatype, Count *count)
Status_set_elements_x(Status *status, Datatype datatype, Count count)
Test_cancelled(const Status *status, int *flag)
Status_set_cancelled(Status *status, int flag)

*Barrier(Comm comm)
*Bcast(void *buffer, int+ count, Datatype datatype, int root, Comm comm)
*Gather *Scatter(const void *sendbuf, int+ sendcount, Datatype sendtype,
    void *recvbuf, int+ recvcount, Datatype recvtype, int root, Comm comm)
*Gatherv(const void *sendbuf, int+ sendcount, Datatype sendtype, void *recvbuf,
    const int+ *recvcounts, const int^ *displs, Datatype recvtype, int root, Comm comm)
*Scatterv(const void *sendbuf, const int+ *sendcounts, const int^ *displs,
    Datatype sendtype, void *recvbuf, int+ recvcount, Datatype recvtype, int root, Comm comm)
*Allgather *Alltoall *Neighbor_allgather
    *Neighbor_alltoall(const void *sendbuf, int+ sendcount, Datatype sendtype,
    void *recvbuf, int+ recvcount, Datatype recvtype, Comm comm)
*Allgatherv *Neighbor_allgatherv(
    const void *sendbuf, int+ sendcount, Datatype sendtype, void *recvbuf,
    const int+ *recvcounts, const int^ *displs, Datatype recvtype, Comm comm)
*Alltoallv *Neighbor_alltoallv(
    const void *sendbuf, const int+ *sendcounts, const int^ *sdispls, Datatype sendtype,
    void *recvbuf, const int+ *recvcounts, const int^ *rdispls, Datatype recvtype, Comm comm)
*Alltoallw(
    const void *sendbuf, const int+ *sendcounts, const int^ *sdispls, const Datatype *sendtypes,
    void *recvbuf, const int+ *recvcounts, const int^ *rdispls, const Datatype *recvtypes,
    Comm comm)
*Neighbor_alltoallw(
    const void *sendbuf, const int+ *sendcounts, const Aint *sdispls, const Datatype *sendtypes,
    void *recvbuf, const int+ *recvcounts, const Aint *rdispls, const Datatype *recvtypes,
    Comm comm)
*Reduce(const void *sendbuf, void *recvbuf, int+ count, Datatype datatype, Op op, int root,
    Comm comm)
*Allreduce *Scan *Exscan(
    const void *sendbuf, void *recvbuf, int+ count, Datatype datatype, Op op, Comm comm)
*Reduce_scatter_block(const void *sendbuf, void *recvbuf, int+ recvcount,
    Datatype datatype, Op op, Comm comm)
*Reduce_scatter(const void *sendbuf, void *recvbuf, const int+ *recvcounts,
    Datatype datatype, Op op, Comm comm)
Reduce_local(const void *inbuf, void *inoutbuf, int+ count, Datatype datatype, Op op)
Op_create(User_function *user_fn, int commute, Op *op)
Op_create_c(User_function_c *user_fn, int commute, Op *op)
Op_free(Op *op)
Op_commutative(Op op, int *commute)

Comm_size Comm_rank Comm_remote_size Comm_test_inter Topo_test Cartdim_get(Comm comm, int *result)
Comm_group Comm_remote_group(Comm comm, Group *group)
Comm_compare(Comm comm1, Comm comm2, int *result)
Comm_dup +Comm_idup(Comm comm, Comm *newcomm)
Comm_dup_with_info +Comm_idup_with_info(Comm comm, Info info, Comm *newcomm)
Comm_create(Comm comm, Group group, Comm *newcomm)
Comm_create_group(Comm comm, Group group, int tag, Comm *newcomm)
Comm_create_from_group(Group group, const char *stringtag, Info info, Errhandler errhandler,
    Comm *newcomm)
Comm_split(Comm comm, int color, int key, Comm *newcomm)
Comm_split_type(Comm comm, int split_type, int key, Info info, Comm *newcomm)
Comm_free Comm_disconnect(Comm *comm)
Comm_get_parent(Comm *parent)
Comm_set_info(Comm comm, Info info)
Comm_get_info(Comm comm, Info *info_used)
Comm_get_name(Comm comm, char *comm_name, int *resultlen)
Comm_set_name(Comm comm, const char *comm_name)
Intercomm_create(Comm local_comm, int local_leader, Comm peer_comm, int remote_leader, int tag,
    Comm *newintercomm)
Intercomm_create_from_groups(Group local_group, int local_leader, Group remote_group,
    int remote_leader, const char *stringtag, Info info, Errhandler errhandler,
    Comm *newintercomm)
Intercomm_merge(Comm intercomm, int high, Comm *newintracomm)
Comm_get_attr(Comm comm, int comm_keyval, void *attribute_val, int *flag)
Comm_set_attr(Comm comm, int comm_keyval, void *attribute_val)
Comm_delete_attr(Comm comm, int comm_keyval)
Comm_create_keyval(Comm_copy_attr_function *copy_fn, Comm_delete_attr_function *delete_fn,
    int *comm_keyval, void *extra_state)
Comm_free_keyval(int *comm_keyval)
Comm_create_errhandler(Comm_errhandler_function *errhandler_fn, Errhandler *errhandler)
Comm_get_errhandler(Comm comm, Errhandler *errhandler)
Comm_set_errhandler(Comm comm, Errhandler errhandler)
Comm_call_errhandler(Comm comm, int errorcode)
Errhandler_free(Errhandler *errhandler)

Error_class(int errorcode, int *errorclass)
Error_string(int errorcode, char *string, int *resultlen)
Add_error_class(int *errorclass)
Add_error_code(int errorclass, int *errorcode)
Add_error_string(int errorcode, const char *string)
Remove_error_class(int errorclass)
Remove_error_code Remove_error_string(int errorcode)

Group_size Group_rank(Group group, int *result)
Group_translate_ranks(Group group1, int n, const int *ranks1, Group group2, int *ranks2)
Group_compare(Group group1, Group group2, int *result)
Group_union Group_intersection Group_difference(Group group1, Group group2, Group *newgroup)
Group_incl Group_excl(Group group, int n, const int *ranks, Group *newgroup)
Group_range_incl Group_range_excl(Group group, int n, int ranges[][3], Group *newgroup)
Group_free(Group *group)

Info_create Get_hw_resource_info(Info *info)
Info_create_env(int argc, char **argv, Info *info)
Info_dup(Info info, Info *newinfo)
Info_free(Info *info)
Info_set(Info info, const char *key, const char *value)
Info_get(Info info, const char *key, int valuelen, char *value, int *flag)
Info_get_string(Info info, const char *key, int *buflen, char *text, int *flag)
Info_get_valuelen(Info info, const char *key, int *valuelen, int *flag)
Info_get_nkeys(Info info, int *nkeys)
Info_get_nthkey(Info info, int n, char *key)
Info_delete(Info info, const char *key)

Cart_create(Comm comm_old, int ndims, const int *dims, const int *periods, int reorder,
    Comm *comm_cart)
Cart_get(Comm comm, int maxdims, int *dims, int *periods, int *coords)
Cart_rank(Comm comm, const int *coords, int *rank)
Cart_coords(Comm comm, int rank, int maxdims, int *coords)
Cart_shift(Comm comm, int direction, int disp, int *rank_source, int *rank_dest)
Cart_sub(Comm comm, const int *remain_dims, Comm *newcomm)
Cart_map(Comm comm, int ndims, const int *dims, const int *periods, int *newrank)
Dims_create(int nnodes, int ndims, int *dims)
Graph_create(Comm comm_old, int nnodes, const int *indices, const int *edges, int reorder,
    Comm *comm_graph)
Graphdims_get(Comm comm, int *nnodes, int *nedges)
Graph_get(Comm comm, int maxindex, int maxedges, int *indices, int *edges)
Graph_map(Comm comm, int nnodes, const int *indices, const int *edges, int *newrank)
Graph_neighbors_count(Comm comm, int rank, int *nneighbors)
Graph_neighbors(Comm comm, int rank, int maxneighbors, int *neighbors)
Dist_graph_create_adjacent(Comm comm_old, int indegree, const int *sources,
    const int *sourceweights, int outdegree, const int *destinations, const int *destweights,
    Info info, int reorder, Comm *comm_dist_graph)
Dist_graph_create(Comm comm_old, int n, const int *sources, const int *degrees,
    const int *destinations, const int *weights, Info info, int reorder, Comm *comm_dist_graph)
Dist_graph_neighbors_count(Comm comm, int *indegree, int *outdegree, int *weighted)
Dist_graph_neighbors(Comm comm, int maxindegree, int *sources, int *sourceweights,
    int maxoutdegree, int *destinations, int *destweights)

Type_dup(Datatype oldtype, Datatype *newtype)
Type_contiguous(int+ count, Datatype oldtype, Datatype *newtype)
Type_vector(int+ count, int+ blocklength, int+ stride, Datatype oldtype, Datatype *newtype)
Type_create_hvector(int+ count, int+ blocklength, Aint+ stride, Datatype oldtype, Datatype *newtype)
Type_indexed(int+ count, const int+ *blocklengths, const int+ *displacements, Datatype oldtype,
    Datatype *newtype)
Type_create_hindexed(int+ count, const int+ *blocklengths, const Aint+ *displacements,
    Datatype oldtype, Datatype *newtype)
Type_create_indexed_block(int+ count, int+ blocklength, const int+ *displacements, Datatype oldtype,
    Datatype *newtype)
Type_create_hindexed_block(int+ count, int+ blocklength, const Aint+ *displacements,
    Datatype oldtype, Datatype *newtype)
Type_create_struct(int+ count, const int+ *blocklengths, const Aint+ *displacements,
    const Datatype *types, Datatype *newtype)
Type_create_subarray(int ndims, const int+ *sizes, const int+ *subsizes, const int+ *starts,
    int order, Datatype oldtype, Datatype *newtype)
Type_create_darray(int size, int rank, int ndims, const int+ *gsizes, const int *distribs,
    const int *dargs, const int *psizes, int order, Datatype oldtype, Datatype *newtype)
Type_create_resized(Datatype oldtype, Aint+ lb, Aint+ extent, Datatype *newtype)
Type_create_f90_integer(int r, Datatype *newtype)
Type_create_f90_real Type_create_f90_complex(int p, int r, Datatype *newtype)
Type_get_value_index(Datatype value_type, Datatype index_type, Datatype *pair_type)
Type_match_size(int typeclass, int size, Datatype *datatype)
Type_commit Type_free(Datatype *datatype)
Type_size_x(Datatype datatype, Count *size)
Type_get_extent Type_get_true_extent(Datatype datatype, Aint *lb, Aint *extent)
Type_get_extent_x Type_get_true_extent_x(Datatype datatype, Count *lb, Count *extent)
Type_get_envelope(Datatype datatype, int *num_integers, int *num_addresses, int *num_datatypes,
    int *combiner)
Type_get_contents(Datatype datatype, int max_integers, int max_addresses, int max_datatypes,
    int *integers, Aint *addresses, Datatype *datatypes)
Type_get_envelope_c(Datatype datatype, Count *num_integers, Count *num_addresses,
    Count *num_large_counts, Count *num_datatypes, int *combiner)
Type_get_contents_c(Datatype datatype, Count max_integers, Count max_addresses,
    Count max_large_counts, Count max_datatypes, int *integers, Aint *addresses,
    Count *large_counts, Datatype *datatypes)
Type_get_name(Datatype datatype, char *type_name, int *resultlen)
Type_set_name(Datatype datatype, const char *type_name)
Type_get_attr(Datatype datatype, int type_keyval, void *attribute_val, int *flag)
Type_set_attr(Datatype datatype, int type_keyval, void *attribute_val)
Type_delete_attr(Datatype datatype, int type_keyval)
Type_create_keyval(Type_copy_attr_function *copy_fn, Type_delete_attr_function *delete_fn,
    int *type_keyval, void *extra_state)
Type_free_keyval(int *type_keyval)
Pack(const void *inbuf, int+ incount, Datatype datatype, void *outbuf, int+ outsize, int+ *position,
    Comm comm)
Unpack(const void *inbuf, int+ insize, int+ *position, void *outbuf, int+ outcount,
    Datatype datatype, Comm comm)
Pack_size(int+ incount, Datatype datatype, Comm comm, int+ *size)
Pack_external(const char *datarep, const void *inbuf, int+ incount, Datatype datatype,
    void *outbuf, Aint+ outsize, Aint+ *position)
Unpack_external(const char *datarep, const void *inbuf, Aint+ insize, Aint+ *position,
    void *outbuf, int+ outcount, Datatype datatype)
Pack_external_size(const char *datarep, int+ incount, Datatype datatype, Aint+ *size)

Open_port(Info info, char *port_name)
Close_port(const char *port_name)
Publish_name Unpublish_name(const char *service_name, Info info, const char *port_name)
Lookup_name(const char *service_name, Info info, char *port_name)
Comm_accept Comm_connect(const char *port_name, Info info, int root, Comm comm, Comm *newcomm)
Comm_join(int fd, Comm *intercomm)
Comm_spawn(const char *command, char **argv, int maxprocs, Info info, int root, Comm comm,
    Comm *intercomm, int *errcodes)
Comm_spawn_multiple(int count, char **commands, char ***argvs, const int *maxprocs,
    const Info *infos, int root, Comm comm, Comm *intercomm, int *errcodes)

Session_init(Info info, Errhandler errhandler, Session *session)
Session_finalize(Session *session)
Session_get_num_psets(Session session, Info info, int *npset_names)
Session_get_nth_pset(Session session, Info info, int n, int *pset_len, char *pset_name)
Session_get_info(Session session, Info *info_used)
Session_get_pset_info(Session session, const char *pset_name, Info *info)
Session_create_errhandler(Session_errhandler_function *errhandler_fn, Errhandler *errhandler)
Session_get_errhandler(Session session, Errhandler *errhandler)
Session_set_errhandler(Session session, Errhandler errhandler)
Session_call_errhandler(Session session, int errorcode)
Session_attach_buffer(Session session, void *buffer, int+ size)
Session_detach_buffer(Session session, void *buffer_addr, int+ *size)
Session_flush_buffer +Session_iflush_buffer(Session session)
Group_from_session_pset(Session session, const char *pset_name, Group *newgroup)

Win_create(void *base, Aint size, int^ disp_unit, Info info, Comm comm, Win *win)
Win_create_dynamic(Info info, Comm comm, Win *win)
Win_allocate Win_allocate_shared(Aint size, int^ disp_unit, Info info, Comm comm, void *baseptr,
    Win *win)
Win_shared_query(Win win, int rank, Aint *size, int^ *disp_unit, void *baseptr)
Win_attach(Win win, void *base, Aint size)
Win_detach(Win win, const void *base)
Win_free(Win *win)
Win_set_info(Win win, Info info)
Win_get_info(Win win, Info *info_used)
Win_get_group(Win win, Group *group)
Win_get_name(Win win, char *win_name, int *resultlen)
Win_set_name(Win win, const char *win_name)
Win_get_attr(Win win, int win_keyval, void *attribute_val, int *flag)
Win_set_attr(Win win, int win_keyval, void *attribute_val)
Win_delete_attr(Win win, int win_keyval)
Win_create_keyval(Win_copy_attr_function *copy_fn, Win_delete_attr_function *delete_fn,
    int *win_keyval, void *extra_state)
Win_free_keyval(int *win_keyval)
Win_create_errhandler(Win_errhandler_function *errhandler_fn, Errhandler *errhandler)
Win_get_errhandler(Win win, Errhandler *errhandler)
Win_set_errhandler(Win win, Errhandler errhandler)
Win_call_errhandler(Win win, int errorcode)
Win_fence Win_lock_all(int assertion, Win win)
Win_post Win_start(Group group, int assertion, Win win)
Win_complete Win_wait Win_unlock_all Win_flush_all Win_flush_local_all Win_sync(Win win)
Win_test(Win win, int *flag)
Win_lock(int lock_type, int rank, int assertion, Win win)
Win_unlock Win_flush Win_flush_local(int rank, Win win)
Put +Rput(const void *origin_addr, int+ origin_count, Datatype origin_datatype, int target_rank,
    Aint target_disp, int+ target_count, Datatype target_datatype, Win win)
Get +Rget(void *origin_addr, int+ origin_count, Datatype origin_datatype, int target_rank,
    Aint target_disp, int+ target_count, Datatype target_datatype, Win win)
Accumulate +Raccumulate(const void *origin_addr, int+ origin_count, Datatype origin_datatype,
    int target_rank, Aint target_disp, int+ target_count, Datatype target_datatype, Op op, Win win)
Get_accumulate +Rget_accumulate(const void *origin_addr, int+ origin_count,
    Datatype origin_datatype, void *result_addr, int+ result_count, Datatype result_datatype,
    int target_rank, Aint target_disp, int+ target_count, Datatype target_datatype, Op op, Win win)
Fetch_and_op(const void *origin_addr, void *result_addr, Datatype datatype, int target_rank,
    Aint target_disp, Op op, Win win)
Compare_and_swap(const void *origin_addr, const void *compare_addr, void *result_addr,
    Datatype datatype, int target_rank, Aint target_disp, Win win)

File_open(Comm comm, const char *filename, int amode, Info info, File *fh)
File_close(File *fh)
File_delete(const char *filename, Info info)
File_set_size File_preallocate(File fh, Offset size)
File_get_size(File fh, Offset *size)
File_get_group(File fh, Group *group)
File_get_amode(File fh, int *amode)
File_set_info(File fh, Info info)
File_get_info(File fh, Info *info_used)
File_set_view(File fh, Offset disp, Datatype etype, Datatype filetype, const char *datarep,
    Info info)
File_get_view(File fh, Offset *disp, Datatype *etype, Datatype *filetype, char *datarep)
File_read_at File_read_at_all(File fh, Offset offset, void *buf, int+ count, Datatype datatype,
    Status *status)
File_write_at File_write_at_all(File fh, Offset offset, const void *buf, int+ count,
    Datatype datatype, Status *status)
+File_iread_at +File_iread_at_all(File fh, Offset offset, void *buf, int+ count, Datatype datatype)
+File_iwrite_at +File_iwrite_at_all(File fh, Offset offset, const void *buf, int+ count,
    Datatype datatype)
File_read File_read_all File_read_shared File_read_ordered(
    File fh, void *buf, int+ count, Datatype datatype, Status *status)
File_write File_write_all File_write_shared File_write_ordered(
    File fh, const void *buf, int+ count, Datatype datatype, Status *status)
+File_iread +File_iread_all +File_iread_shared(File fh, void *buf, int+ count, Datatype datatype)
+File_iwrite +File_iwrite_all +File_iwrite_shared(
    File fh, const void *buf, int+ count, Datatype datatype)
File_read_at_all_begin(File fh, Offset offset, void *buf, int+ count, Datatype datatype)
File_write_at_all_begin(File fh, Offset offset, const void *buf, int+ count, Datatype datatype)
File_read_all_begin File_read_ordered_begin(File fh, void *buf, int+ count, Datatype datatype)
File_write_all_begin File_write_ordered_begin(
    File fh, const void *buf, int+ count, Datatype datatype)
File_read_at_all_end File_read_all_end File_read_ordered_end(File fh, void *buf, Status *status)
File_write_at_all_end File_write_all_end File_write_ordered_end(
    File fh, const void *buf, Status *status)
File_seek File_seek_shared(File fh, Offset offset, int whence)
File_get_position File_get_position_shared(File fh, Offset *offset)
File_get_byte_offset(File fh, Offset offset, Offset *disp)
File_get_type_extent(File fh, Datatype datatype, Aint+ *extent)
File_set_atomicity(File fh, int flag)
File_get_atomicity(File fh, int *flag)
File_sync(File fh)
File_create_errhandler(File_errhandler_function *errhandler_fn, Errhandler *errhandler)
File_get_errhandler(File fh, Errhandler *errhandler)
File_set_errhandler(File fh, Errhandler errhandler)
File_call_errhandler(File fh, int errorcode)
Register_datarep(const char *datarep, Datarep_conversion_function *read_fn,
    Datarep_conversion_function *write_fn, Datarep_extent_function *extent_fn, void *extra_state)
Register_datarep_c(const char *datarep, Datarep_conversion_function_c *read_fn,
    Datarep_conversion_function_c *write_fn, Datarep_extent_function *extent_fn, void *extra_state)
"""

# Functions that front.c has itself: they need no run, or begin it, or differ from one of the table
# in the type of a result.
FRONT_PROTOTYPES = """
Init(int *argc, char ***argv)
Init_thread(int *argc, char ***argv, int required, int *provided)
Initialized Finalized(int *flag)
Get_version(int *version, int *subversion)
Get_library_version(char *version, int *resultlen)
Status_c2f(const Status *c_status, Fint *f_status)
Status_f2c(const Fint *f_status, Status *c_status)
Status_c2f08(const Status *c_status, F08_status *f_status)
Status_f082c(const F08_status *f_status, Status *c_status)
Status_f2f08(const Fint *f_status, F08_status *f08_status)
Status_f082f(const F08_status *f08_status, Fint *f_status)
Status_get_source Status_get_tag Status_get_error(const Status *status, int *result)
Status_set_source Status_set_tag Status_set_error(Status *status, int value)
Type_size(Datatype datatype, int *size)
Type_extent Type_lb Type_ub(Datatype datatype, Aint *result)
Get_elements(const Status *status, Datatype datatype, int *count)
Status_set_elements(Status *status, Datatype datatype, int count)
"""

# Functions that MPI 5.0 adds, which libmpi_abi.so.1 alone has (standard.c).
STANDARD_PROTOTYPES = """
Abi_get_version(int *abi_major, int *abi_minor)
Abi_get_info Abi_get_fortran_info(Info *info)
Abi_set_fortran_info(Info info)
Abi_get_fortran_booleans(int logical_size, void *logical_true, void *logical_false, int *is_set)
Abi_set_fortran_booleans(int logical_size, void *logical_true, void *logical_false)
"""

# The tool information interface, MPI_T (MPI 4.1, chapter 15). Those that tools.h has end in "!";
# the others have nothing to show.
TOOL_PROTOTYPES = """
T_init_thread!(int required, int *provided)
T_finalize!()
T_category_changed T_category_get_num! T_cvar_get_num T_pvar_get_num! T_event_get_num
    T_source_get_num(int *number)
T_category_get_categories! T_category_get_cvars! T_category_get_events! T_category_get_pvars!(
    int index, int len, int *indices)
T_category_get_num_events!(int index, int *num_events)
T_category_get_index! T_cvar_get_index T_event_get_index(const char *name, int *index)
T_category_get_info!(int index, char *name, int *name_len, char *desc, int *desc_len,
    int *num_cvars, int *num_pvars, int *num_categories)
T_cvar_get_info(int index, char *name, int *name_len, int *verbosity, Datatype *datatype,
    T_enum *enumtype, char *desc, int *desc_len, int *bind, int *scope)
T_cvar_handle_alloc(int index, void *object, T_cvar_handle *handle, int *count)
T_cvar_handle_free(T_cvar_handle *handle)
T_cvar_read(T_cvar_handle handle, void *buf)
T_cvar_write(T_cvar_handle handle, const void *buf)
T_enum_get_info(T_enum enumtype, int *num, char *name, int *name_len)
T_enum_get_item(T_enum enumtype, int index, int *value, char *name, int *name_len)
T_event_callback_get_info(T_event_registration registration, T_cb_safety cb_safety,
    Info *info_used)
T_event_callback_set_info(T_event_registration registration, T_cb_safety cb_safety, Info info)
T_event_copy(T_event_instance instance, void *buffer)
T_event_get_info(int index, char *name, int *name_len, int *verbosity, Datatype *datatypes,
    Aint *displacements, int *num_elements, T_enum *enumtype, Info *info, char *desc,
    int *desc_len, int *bind)
T_event_get_source(T_event_instance instance, int *source_index)
T_event_get_timestamp(T_event_instance instance, Count *timestamp)
T_event_handle_alloc(int index, void *object, Info info, T_event_registration *registration)
T_event_handle_free(T_event_registration registration, void *user_data,
    T_event_free_cb_function free_cb_function)
T_event_handle_get_info(T_event_registration registration, Info *info_used)
T_event_handle_set_info(T_event_registration registration, Info info)
T_event_read(T_event_instance instance, int index, void *buffer)
T_event_register_callback(T_event_registration registration, T_cb_safety cb_safety, Info info,
    void *user_data, T_event_cb_function event_cb_function)
T_event_set_dropped_handler(T_event_registration registration,
    T_event_dropped_cb_function dropped_cb_function)
T_pvar_get_index!(const char *name, int var_class, int *index)
T_pvar_get_info!(int index, char *name, int *name_len, int *verbosity, int *var_class,
    Datatype *datatype, T_enum *enumtype, char *desc, int *desc_len, int *bind, int *readonly,
    int *continuous, int *atomic)
T_pvar_handle_alloc!(T_pvar_session session, int index, void *object, T_pvar_handle *handle,
    int *count)
T_pvar_handle_free!(T_pvar_session session, T_pvar_handle *handle)
T_pvar_read! T_pvar_readreset!(T_pvar_session session, T_pvar_handle handle, void *buf)
T_pvar_reset! T_pvar_start! T_pvar_stop!(T_pvar_session session, T_pvar_handle handle)
T_pvar_session_create! T_pvar_session_free!(T_pvar_session *session)
T_pvar_write!(T_pvar_session session, T_pvar_handle handle, const void *buf)
T_source_get_info(int index, char *name, int *name_len, char *desc, int *desc_len,
    T_source_order *ordering, Count *ticks_per_second, Count *max_ticks, Info *info)
T_source_get_timestamp(int index, Count *timestamp)
"""

# What the table has beside MPI's functions: for libraries of Fortran and C++ (languages.h), and for
# MPI_Finalize and sessions (front.c).
LANGUAGE_PROTOTYPES = """
Fortran_get_attr(int kind, int handle, int keyval, Aint *value, int *flag)
Fortran_set_attr(int kind, int handle, int keyval, Aint value, int width)
Keyval_set_proxy(int keyval, void *copies, void *deletes)
Grequest_set_fortran(Request request)
Op_set_proxy(Op op, void *calls)
Errhandler_set_proxy(Errhandler errhandler, void *calls)
World_end Leave Rejoin()
Tool_read(int kind, int number, unsigned long long *value)
"""
