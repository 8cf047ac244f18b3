"""The metrics of a live run over HTTP, on this machine's loopback interface only."""

from __future__ import annotations

import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from shrimpmx.cluster.live.openmetrics import OPENMETRICS, TEXT, Counted, metrics_text
from shrimpmx.errors import InputError

HOST, PATH = "127.0.0.1", "/metrics"
# A client that neither asks nor goes away (ours).
SILENT_S = 5.0


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    counted: Counted | None = None


class MetricsServer:
    """A context manager: serves what was published last. `port`: 0 takes a free one.

    InputError if the port cannot be had.
    """

    def __init__(self, port: int) -> None:
        try:
            self._http = _Http((HOST, port), _Handler)
        except OSError as error:
            raise InputError(
                f"--metrics cannot serve on port {port}: {os.strerror(error.errno or 0)}"
            ) from error
        self._thread = threading.Thread(target=self._http.serve_forever, daemon=True)

    @property
    def address(self) -> str:
        """The URL for Prometheus."""
        return f"http://{HOST}:{self._http.server_port}{PATH}"

    def publish(self, counted: Counted) -> None:
        """Let this be what is served from now on."""
        self._http.counted = counted

    def __enter__(self) -> MetricsServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()


class _Handler(BaseHTTPRequestHandler):
    timeout = SILENT_S
    server_version, sys_version = "shrimpmx", ""
    server: _Http

    def do_GET(self) -> None:
        """Answer one request."""
        if self.path.partition("?")[0] != PATH:
            self.send_error(404)
            return
        openmetrics = "application/openmetrics-text" in self.headers.get("Accept", "")
        body = metrics_text(self.server.counted, openmetrics=openmetrics).encode()
        self.send_response(200)
        self.send_header("Content-Type", OPENMETRICS if openmetrics else TEXT)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing of requests."""
