"""The MPI-1 part of the Intel MPI Benchmarks (IMB), written in mpi4py from its user guide.

Source: Intel MPI Benchmarks, User Guide and Methodology Description, 2021: patterns, sizes,
repetitions, groups of processes, columns.
"""
