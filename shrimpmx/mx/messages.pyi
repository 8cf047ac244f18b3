from collections.abc import Sequence
from typing import Any

from shrimpmx.mx.core import ProgressionCalls
from shrimpmx.mx.handles import Partner, Request, Status

SEGMENTS_MAX: int

class MessageCalls(ProgressionCalls):
    def send(self, buffer: Any, partner: Partner, match: int = 0) -> Status: ...
    def recv(
        self,
        buffer: Any,
        match: int = 0,
        mask: int = 0xFFFFFFFFFFFFFFFF,
        timeout_ns: int | None = None,
    ) -> Status: ...
    def isend(
        self, buffer: Any, partner: Partner, match: int = 0, context: object = None
    ) -> Request: ...
    def issend(
        self, buffer: Any, partner: Partner, match: int = 0, context: object = None
    ) -> Request: ...
    def irecv(
        self,
        buffer: Any,
        match: int = 0,
        mask: int = 0xFFFFFFFFFFFFFFFF,
        context: object = None,
    ) -> Request: ...
    def isendv(
        self, buffers: Sequence[Any], partner: Partner, match: int = 0, context: object = None
    ) -> Request: ...
    def issendv(
        self, buffers: Sequence[Any], partner: Partner, match: int = 0, context: object = None
    ) -> Request: ...
    def irecvv(
        self,
        buffers: Sequence[Any],
        match: int = 0,
        mask: int = 0xFFFFFFFFFFFFFFFF,
        context: object = None,
    ) -> Request: ...
