"""Alternating direction implicit solvers of the Navier-Stokes equations: all that BT and SP share,
and how each of them solves along lines.

Source: RNR-94-007, chapter 3, and for the division of the grid among ranks R. Van der Wijngaart,
Efficient Implementation of a 3-Dimensional ADI Method on the iPSC/860, Supercomputing '93.
"""
