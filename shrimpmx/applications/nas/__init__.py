"""The NAS Parallel Benchmarks in numpy, over MPI.

Source: D. Bailey et al., The NAS Parallel Benchmarks, NAS Technical Report RNR-94-007, 1994; sizes,
rank-count rules and verification values of NPB 3.
"""
