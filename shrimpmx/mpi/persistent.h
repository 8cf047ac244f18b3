/* Written by shrimpmx/mpi/generate.py from prototypes.py: change those. */
#include "table.h"
static _Thread_local int describing;
static const struct mpi_table *starters;
static int describe_Barrier_init(MPI_Comm comm, MPI_Info info, MPI_Request *request)
{ describing = 1;
  const int code = starters->Ibarrier(comm, request);
  describing = 0;
  return code; }
static int describe_Bcast_init(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{ describing = 1;
  const int code = starters->Ibcast(buffer, count, datatype, root, comm, request);
  describing = 0;
  return code; }
static int describe_Gather_init(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{ describing = 1;
  const int code = starters->Igather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, request);
  describing = 0;
  return code; }
static int describe_Scatter_init(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{ describing = 1;
  const int code = starters->Iscatter(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, request);
  describing = 0;
  return code; }
static int describe_Gatherv_init(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int *recvcounts, const int *displs, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{ describing = 1;
  const int code = starters->Igatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm, request);
  describing = 0;
  return code; }
static int describe_Scatterv_init(const void *sendbuf, const int *sendcounts, const int *displs, MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{ describing = 1;
  const int code = starters->Iscatterv(sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm, request);
  describing = 0;
  return code; }
static int describe_Allgather_init(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{ describing = 1;
  const int code = starters->Iallgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request);
  describing = 0;
  return code; }
static int describe_Alltoall_init(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{ describing = 1;
  const int code = starters->Ialltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request);
  describing = 0;
  return code; }
static int describe_Neighbor_allgather_init(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{ describing = 1;
  const int code = starters->Ineighbor_allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request);
  describing = 0;
  return code; }
static int describe_Neighbor_alltoall_init(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{ describing = 1;
  const int code = starters->Ineighbor_alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request);
  describing = 0;
  return code; }
static int describe_Allgatherv_init(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int *recvcounts, const int *displs, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{ describing = 1;
  const int code = starters->Iallgatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, request);
  describing = 0;
  return code; }
static int describe_Neighbor_allgatherv_init(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int *recvcounts, const int *displs, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{ describing = 1;
  const int code = starters->Ineighbor_allgatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, request);
  describing = 0;
  return code; }
static int describe_Alltoallv_init(const void *sendbuf, const int *sendcounts, const int *sdispls, MPI_Datatype sendtype, void *recvbuf, const int *recvcounts, const int *rdispls, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{ describing = 1;
  const int code = starters->Ialltoallv(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, request);
  describing = 0;
  return code; }
static int describe_Neighbor_alltoallv_init(const void *sendbuf, const int *sendcounts, const int *sdispls, MPI_Datatype sendtype, void *recvbuf, const int *recvcounts, const int *rdispls, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{ describing = 1;
  const int code = starters->Ineighbor_alltoallv(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, request);
  describing = 0;
  return code; }
static int describe_Alltoallw_init(const void *sendbuf, const int *sendcounts, const int *sdispls, const MPI_Datatype *sendtypes, void *recvbuf, const int *recvcounts, const int *rdispls, const MPI_Datatype *recvtypes, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{ describing = 1;
  const int code = starters->Ialltoallw(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm, request);
  describing = 0;
  return code; }
static int describe_Neighbor_alltoallw_init(const void *sendbuf, const int *sendcounts, const MPI_Aint *sdispls, const MPI_Datatype *sendtypes, void *recvbuf, const int *recvcounts, const MPI_Aint *rdispls, const MPI_Datatype *recvtypes, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{ describing = 1;
  const int code = starters->Ineighbor_alltoallw(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm, request);
  describing = 0;
  return code; }
static int describe_Reduce_init(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{ describing = 1;
  const int code = starters->Ireduce(sendbuf, recvbuf, count, datatype, op, root, comm, request);
  describing = 0;
  return code; }
static int describe_Allreduce_init(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{ describing = 1;
  const int code = starters->Iallreduce(sendbuf, recvbuf, count, datatype, op, comm, request);
  describing = 0;
  return code; }
static int describe_Scan_init(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{ describing = 1;
  const int code = starters->Iscan(sendbuf, recvbuf, count, datatype, op, comm, request);
  describing = 0;
  return code; }
static int describe_Exscan_init(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{ describing = 1;
  const int code = starters->Iexscan(sendbuf, recvbuf, count, datatype, op, comm, request);
  describing = 0;
  return code; }
static int describe_Reduce_scatter_block_init(const void *sendbuf, void *recvbuf, int recvcount, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{ describing = 1;
  const int code = starters->Ireduce_scatter_block(sendbuf, recvbuf, recvcount, datatype, op, comm, request);
  describing = 0;
  return code; }
static int describe_Reduce_scatter_init(const void *sendbuf, void *recvbuf, const int *recvcounts, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{ describing = 1;
  const int code = starters->Ireduce_scatter(sendbuf, recvbuf, recvcounts, datatype, op, comm, request);
  describing = 0;
  return code; }
static void describe_fill(struct mpi_table *table) {
    starters = table;
    table->Barrier_init = describe_Barrier_init;
    table->Bcast_init = describe_Bcast_init;
    table->Gather_init = describe_Gather_init;
    table->Scatter_init = describe_Scatter_init;
    table->Gatherv_init = describe_Gatherv_init;
    table->Scatterv_init = describe_Scatterv_init;
    table->Allgather_init = describe_Allgather_init;
    table->Alltoall_init = describe_Alltoall_init;
    table->Neighbor_allgather_init = describe_Neighbor_allgather_init;
    table->Neighbor_alltoall_init = describe_Neighbor_alltoall_init;
    table->Allgatherv_init = describe_Allgatherv_init;
    table->Neighbor_allgatherv_init = describe_Neighbor_allgatherv_init;
    table->Alltoallv_init = describe_Alltoallv_init;
    table->Neighbor_alltoallv_init = describe_Neighbor_alltoallv_init;
    table->Alltoallw_init = describe_Alltoallw_init;
    table->Neighbor_alltoallw_init = describe_Neighbor_alltoallw_init;
    table->Reduce_init = describe_Reduce_init;
    table->Allreduce_init = describe_Allreduce_init;
    table->Scan_init = describe_Scan_init;
    table->Exscan_init = describe_Exscan_init;
    table->Reduce_scatter_block_init = describe_Reduce_scatter_block_init;
    table->Reduce_scatter_init = describe_Reduce_scatter_init;
}
