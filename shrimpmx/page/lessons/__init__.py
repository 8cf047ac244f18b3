"""Lessons: pages whose sliders move between traces of the simulated engine."""
