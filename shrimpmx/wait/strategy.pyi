from typing import Self

RESULTS: dict[int, str]

class Strategy:
    failure: BaseException | None
    @classmethod
    def from_limit(cls, spin_ns: int) -> Self: ...
    @property
    def name(self) -> str: ...
    @property
    def sleeps(self) -> bool: ...
    @property
    def stands(self) -> bool: ...
