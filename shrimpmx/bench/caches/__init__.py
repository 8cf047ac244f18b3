"""Cache figures of a node's receive path from a simulated run under valgrind."""
