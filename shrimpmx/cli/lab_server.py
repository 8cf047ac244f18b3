"""A page and the answers to its requests, over HTTP, on this machine's loopback interface only."""

from __future__ import annotations

import contextlib
import gc
import hmac
import queue
import secrets
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from urllib.parse import parse_qsl, urlsplit

from shrimpmx.cli.loopback import HOST, LoopbackHandler, LoopbackHttp
from shrimpmx.errors import ShrimpmxError

# A wait that begins just behind an interrupt would not hear of it (ours).
LOOK_S = 0.5
PAGE, RUN = "", "run"
HTML, TEXT = "text/html; charset=utf-8", "text/plain; charset=utf-8"
BYTES = "application/octet-stream"
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

Asked = Mapping[str, str]
Answer = Callable[[Asked], bytes]


class LabServer(LoopbackHttp):
    """A context manager: serves below a token that nobody else knows. `port`: 0 takes a free one.
    One thread answers all requests, in their order.

    InputError if the port cannot be had.
    """

    def __init__(self, port: int) -> None:
        refusal, hint = f"--port {port} cannot be used", "; leave it out for a free one"
        super().__init__(port, _Handler, refusal, hint)
        self.token, self.page = secrets.token_urlsafe(18), b""
        self.asked: queue.SimpleQueue[tuple[Asked, Future[bytes]]] = queue.SimpleQueue()

    @property
    def address(self) -> str:
        """The URL of the page."""
        return f"http://{HOST}:{self.server_port}/{self.token}/"

    @property
    def names(self) -> set[str]:
        """What a browser calls this server: by another name a page of others would ask."""
        return {f"{name}:{self.server_port}" for name in (HOST, "localhost")}

    def serve(self, page: bytes, answer: Answer) -> None:
        """Serve the page, and `answer` its requests in this thread, until an interrupt."""
        self.page = page
        self.start()
        with _garbage_left():
            while True:
                with contextlib.suppress(queue.Empty):
                    asked, given = self.asked.get(timeout=LOOK_S)
                    try:
                        given.set_result(answer(asked))
                    except ShrimpmxError as error:
                        given.set_exception(error)
                    gc.collect()


@contextlib.contextmanager
def _garbage_left() -> Iterator[None]:
    """Python looks for garbage only when told to, and not in what exists now: a run has tens of
    thousands of records, and the search during an answer would take a quarter of its time.
    """
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()


class _Handler(LoopbackHandler):
    error_message_format, error_content_type = "%(message)s.\n", TEXT
    server: LabServer

    def answer(self) -> None:
        place = urlsplit(self.path)
        token, _, name = place.path.removeprefix("/").partition("/")
        if self.headers.get("Host") not in self.server.names:
            self.send_error(
                403, "This address is not that of the lab: open the one that it printed"
            )
        elif not hmac.compare_digest(token.encode(), self.server.token.encode()):
            self.send_error(403, "The token is not that of this lab: open the address it printed")
        elif name == PAGE:
            self.send(200, HTML, self.server.page)
        elif name == RUN:
            self._run(place.query)
        else:
            self.send_error(404, "A lab has one page and its runs, no other files")

    def _run(self, query: str) -> None:
        pairs = parse_qsl(query, keep_blank_values=True)
        given: Future[bytes] = Future()
        # Twice the same name: the one that is missing is told.
        self.server.asked.put((dict(pairs) if len(dict(pairs)) == len(pairs) else {}, given))
        try:
            self.send(200, BYTES, given.result())
        except ShrimpmxError as error:
            self.send(400, TEXT, f"{str(error).rstrip('.')}.\n".encode())

    def end_headers(self) -> None:
        """End them with the headers common to all answers."""
        for name, value in HEADERS.items():
            self.send_header(name, value)
        super().end_headers()
