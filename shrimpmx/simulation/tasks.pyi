from shrimpmx.simulation.scheduler import Schedulable

STATES: tuple[str, ...]
WORDS: tuple[str, ...]

class Waiting(Schedulable):
    state: str
    looks: int
    name: str
    def words(self) -> str: ...
