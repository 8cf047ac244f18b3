"""The cache-line probe between two CPUs; see probe.pyx."""
