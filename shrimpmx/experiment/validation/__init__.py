"""Checks the simulated engine against real processes: `shrimpmx validate`."""
