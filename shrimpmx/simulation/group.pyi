from collections.abc import Sequence

from shrimpmx.simulation.agents import Agents

class Group:
    number: int
    count: int
    def __init__(
        self,
        agents: Agents,
        of_nodes: Sequence[int],
        count: int,
        ahead_ns: int,
        rest_ns: int,
        deadline_ns: int,
    ) -> None: ...
    def is_own(self, node: int) -> bool: ...
    def has_room(self) -> bool: ...
    def words(self) -> str: ...
