"""The metrics of a live run over HTTP, on this machine's loopback interface only."""

from __future__ import annotations

from shrimpmx.cli.loopback import HOST, LoopbackHandler, LoopbackHttp
from shrimpmx.cluster.live.openmetrics import OPENMETRICS, TEXT, Counted, metrics_text

PATH = "/metrics"


class MetricsServer(LoopbackHttp):
    """A context manager: serves what was published last. `port`: 0 takes a free one.

    InputError if the port cannot be had.
    """

    def __init__(self, port: int) -> None:
        super().__init__(port, _Handler, f"--metrics cannot serve on port {port}")
        self.counted: Counted | None = None

    @property
    def address(self) -> str:
        """The URL for Prometheus."""
        return f"http://{HOST}:{self.server_port}{PATH}"

    def publish(self, counted: Counted) -> None:
        """Let this be what is served from now on."""
        self.counted = counted

    def __enter__(self) -> MetricsServer:
        self.start()
        return self


class _Handler(LoopbackHandler):
    server: MetricsServer

    def answer(self) -> None:
        if self.path.partition("?")[0] != PATH:
            self.send_error(404)
            return
        openmetrics = "application/openmetrics-text" in self.headers.get("Accept", "")
        body = metrics_text(self.server.counted, openmetrics=openmetrics).encode()
        self.send(200, OPENMETRICS if openmetrics else TEXT, body)
