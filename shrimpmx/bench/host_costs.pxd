"""What this host charges; see host_costs.pyx."""
