def status_name(status: int) -> str: ...

class Partner:
    node: int
    endpoint: int
    @property
    def session(self) -> int | None: ...
    @property
    def unacked(self) -> int: ...

class Status:
    code: str
    source: Partner | None
    match: int
    length: int
    transferred: int

class Request:
    status: Status | None
