"""MPI for unmodified programs: MPICH's ABI in front, MX below."""
