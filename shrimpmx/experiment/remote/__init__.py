"""Sweeps over many machines: which run goes where, what travels, and what makes it there."""
