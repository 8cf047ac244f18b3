"""LU's parts: how ranks share the grid, the order of its points, the implicit operator, sweeps.

Source: RNR-94-007, chapter 3, and for the pipeline of planes through pencils E. Barszcz,
R. Fatoohi, V. Venkatakrishnan and S. Weeratunga, Solution of Regular, Sparse Triangular Linear
Systems on Vector and Distributed-Memory Multiprocessors, RNR-93-007.
"""
