from typing import NamedTuple

from shrimpmx.native.segment import Segment

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
