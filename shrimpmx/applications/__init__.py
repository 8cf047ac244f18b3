"""MPI programs of which the papers show results: ordinary mpi4py, for any MPI library.

Nothing here knows the emulated cluster; `shrimpmx mpirun -n 4 python -m shrimpmx.applications.nas
IS S` runs one on it, and another MPI's mpirun does the same beside it.
"""
