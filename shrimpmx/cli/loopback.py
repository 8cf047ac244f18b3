"""HTTP on this machine's loopback interface only."""

from __future__ import annotations

import abc
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from shrimpmx.errors import InputError

HOST = "127.0.0.1"
# A client that neither asks nor goes away (ours).
SILENT_S = 5.0


class LoopbackHttp(ThreadingHTTPServer):
    """Answers each connection in a thread of its own, by `handler`, from `start` on, until the end
    of the context. `port`: 0 takes a free one.

    InputError if the port cannot be had: with the `refusal`, the reason and a `hint`.
    """

    daemon_threads = True

    def __init__(
        self, port: int, handler: type[BaseHTTPRequestHandler], refusal: str, hint: str = ""
    ) -> None:
        try:
            super().__init__((HOST, port), handler)
        except OSError as error:
            raise InputError(f"{refusal}: {os.strerror(error.errno or 0)}{hint}") from error
        self._thread = threading.Thread(target=self.serve_forever, daemon=True)

    def start(self) -> None:
        """Answer from now on."""
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        if self._thread.is_alive():
            self.shutdown()
        self.server_close()


class LoopbackHandler(abc.ABC, BaseHTTPRequestHandler):
    """Answers by `answer`; says nothing of requests, and nothing of Python in its answers."""

    timeout = SILENT_S
    server_version, sys_version = "shrimpmx", ""

    @abc.abstractmethod
    def answer(self) -> None:
        """Answer a request to read."""

    def do_GET(self) -> None:
        """Answer one."""
        self.answer()

    def send(self, code: int, kind: str, body: bytes) -> None:
        """A whole answer of this media type."""
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing of requests."""
