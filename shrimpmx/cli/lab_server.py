"""A page and the answers to its requests, over HTTP, on this machine's loopback interface only."""

from __future__ import annotations

import contextlib
import hmac
import os
import queue
import secrets
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from shrimpmx.errors import InputError, ShrimpmxError

HOST = "127.0.0.1"
# A client that neither asks nor goes away (ours).
SILENT_S = 5.0
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


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    # One that has just ended leaves connections behind.
    allow_reuse_address = True
    token = ""
    page = b""
    asked: queue.SimpleQueue[tuple[Asked, Future[bytes]]]

    @property
    def names(self) -> set[str]:
        """What a browser calls this server: by another name a page of others would ask."""
        return {f"{name}:{self.server_port}" for name in (HOST, "localhost")}


class LabServer:
    """A context manager: serves below a token that nobody else knows. `port`: 0 takes a free one.
    One thread answers all requests, in their order.

    InputError if the port cannot be had.
    """

    def __init__(self, port: int) -> None:
        try:
            self._http = _Http((HOST, port), _Handler)
        except OSError as error:
            raise InputError(
                f"--port {port} cannot be used: {os.strerror(error.errno or 0)}; leave it out for "
                "a free one"
            ) from error
        self._http.token = secrets.token_urlsafe(18)
        self._http.asked = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._http.serve_forever, daemon=True)

    @property
    def address(self) -> str:
        """The URL of the page."""
        return f"http://{HOST}:{self._http.server_port}/{self._http.token}/"

    def serve(self, page: bytes, answer: Answer) -> None:
        """Serve the page, and `answer` its requests in this thread, until an interrupt."""
        self._http.page = page
        self._thread.start()
        while True:
            with contextlib.suppress(queue.Empty):
                asked, given = self._http.asked.get(timeout=LOOK_S)
                try:
                    given.set_result(answer(asked))
                except ShrimpmxError as error:
                    given.set_exception(error)

    def __enter__(self) -> LabServer:
        return self

    def __exit__(self, *_: object) -> None:
        if self._thread.is_alive():
            self._http.shutdown()
        self._http.server_close()


class _Handler(BaseHTTPRequestHandler):
    timeout = SILENT_S
    server_version, sys_version = "shrimpmx", ""
    error_message_format, error_content_type = "%(message)s.\n", TEXT
    server: _Http

    def do_GET(self) -> None:
        """Answer one request."""
        place = urlsplit(self.path)
        token, _, name = place.path.removeprefix("/").partition("/")
        if self.headers.get("Host") not in self.server.names:
            self.send_error(
                403, "This address is not that of the lab: open the one that it printed"
            )
        elif not hmac.compare_digest(token.encode(), self.server.token.encode()):
            self.send_error(403, "The token is not that of this lab: open the address it printed")
        elif name == PAGE:
            self._send(200, HTML, self.server.page)
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
            self._send(200, BYTES, given.result())
        except ShrimpmxError as error:
            self._send(400, TEXT, f"{str(error).rstrip('.')}.\n".encode())

    def _send(self, code: int, kind: str, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def end_headers(self) -> None:
        """End them with the headers common to all answers."""
        for name, value in HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing of requests."""
