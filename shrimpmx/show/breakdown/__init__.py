"""Where the time of a traced run went: of each rank, each message and the critical path."""
