from typing import NamedTuple

from shrimpmx.native.segment import Segment

DEFAULT_ENTRIES: int

class TraceRecord(NamedTuple):
    time_ns: int
    agent: int
    kind: str
    a: int
    b: int

def kind_names() -> list[str]: ...
def kind_values(kind: str) -> tuple[str, str]: ...

class Trace:
    segment: Segment
    @staticmethod
    def size_bytes(agents_count: int, entries: int = ...) -> int: ...
    @staticmethod
    def create(segment: Segment, agents_count: int, entries: int = ...) -> Trace: ...
    @staticmethod
    def attach(segment: Segment) -> Trace: ...
    def record(self, agent: int, time_ns: int, kind: str, a: int = 0, b: int = 0) -> None: ...
    def written(self, agent: int) -> int: ...
    def records_of(self, agent: int) -> list[TraceRecord]: ...
    def records(self) -> list[TraceRecord]: ...

FAULTS: dict[int, str]

class CapturedFrame(NamedTuple):
    time_ns: int
    end: int
    received: bool
    length: int
    data: bytes
    bad_fcs: bool
    faults: tuple[str, ...]
    dropped: tuple[int, int] | None

class Capture:
    segment: Segment
    @staticmethod
    def size_bytes(ends_count: int, end_bytes: int, snap_bytes: int) -> int: ...
    @staticmethod
    def create(segment: Segment, ends_count: int, end_bytes: int, snap_bytes: int) -> Capture: ...
    @staticmethod
    def attach(segment: Segment) -> Capture: ...
    @property
    def snap_bytes(self) -> int: ...
    def written(self, end: int) -> int: ...
    def frames_of(self, end: int) -> list[CapturedFrame]: ...
    def frames(self) -> list[CapturedFrame]: ...
