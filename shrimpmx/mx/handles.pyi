def status_name(status: int) -> str: ...
def strerror(code: str) -> str: ...

class Partner:
    node: int
    endpoint: int
    context: object
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
    context: object

class Request:
    status: Status | None
    context: object
