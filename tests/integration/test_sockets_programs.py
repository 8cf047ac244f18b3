"""Programs of the standard library, as they are, over VMMC between two nodes."""

from __future__ import annotations

import functools
import http.client
import http.server
import selectors
import socketserver
from pathlib import Path

import numpy as np
import pytest
from support.socket_programs import PORT, reach, recv_exactly, run_programs

from shrimpmx.sockets.api import create_server, patched
from shrimpmx.sockets.network import Network
from shrimpmx.sockets.selector import Selector, select

LINES = [f"line {number} ".encode() * (number % 50 + 1) + b"\n" for number in range(200)]
CONTENT = bytes(range(256)) * 1000


class Echo(socketserver.StreamRequestHandler):
    """Answers each line by the same."""

    def handle(self) -> None:
        for line in self.rfile:
            self.wfile.write(line)


def test_an_echo_server_of_socketserver_runs_unmodified() -> None:
    def server(network: Network) -> None:
        with patched(network), socketserver.TCPServer(("node0", PORT), Echo) as echo:
            echo.handle_request()

    def client(network: Network) -> dict[str, int]:
        answers = 0
        with reach(network) as to_server, to_server.makefile("rwb", 0) as both:
            for line in LINES:
                both.write(line)
                answers += both.readline() == line
        return {"answers": answers}

    result = run_programs(server, client)
    assert result.samples["rank1"]["answers"] == len(LINES)
    assert result.counters["rank0"]["sockets_accepted"] == 1
    assert result.counters["rank1"]["sockets_connected"] == 1


def test_serve_forever_ends_when_it_is_shut_down() -> None:
    class Server(socketserver.TCPServer):
        def service_actions(self) -> None:
            # shutdown() is for another thread; what it sets ends the loop as well.
            if self.served:
                self._BaseServer__shutdown_request = True  # type: ignore[attr-defined]

        served = False

        def shutdown_request(self, request: object) -> None:
            super().shutdown_request(request)  # type: ignore[arg-type]
            self.served = True

    def server(network: Network) -> None:
        with patched(network), Server(("", PORT), Echo) as echo:
            echo.serve_forever()

    def client(network: Network) -> dict[str, bytes]:
        with reach(network) as to_server:
            to_server.sendall(b"hello\n")
            return {"answer": recv_exactly(to_server, 6)}

    assert run_programs(server, client).samples["rank1"]["answer"] == b"hello\n"


class Handler(http.server.SimpleHTTPRequestHandler):
    """Files, and whatever is posted."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[::-1])

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.mark.parametrize("strategy", ["block", "spin-block"])
def test_a_web_server_and_its_client_run_unmodified(tmp_path: Path, strategy: str) -> None:
    (tmp_path / "content").write_bytes(CONTENT)

    def server(network: Network) -> None:
        handler = functools.partial(Handler, directory=str(tmp_path))
        with patched(network), http.server.HTTPServer(("node0", PORT), handler) as web:
            for _ in range(2):
                web.handle_request()

    def client(network: Network) -> dict[str, int]:
        reach(network).close()  # the first request: the server is there
        with patched(network):
            connection = http.client.HTTPConnection("node0", PORT)
            connection.request("GET", "/content")
            got = connection.getresponse().read()
            connection.request("POST", "/", CONTENT)
            posted = connection.getresponse().read()
            connection.request("GET", "/nothing")
            status = connection.getresponse().status
            connection.close()
        return {"got": got == CONTENT, "posted": posted == CONTENT[::-1], "status": status}

    samples = run_programs(server, client, strategy=strategy).samples["rank1"]
    assert {name: int(value[0]) for name, value in samples.items()} == {
        "got": 1,
        "posted": 1,
        "status": 404,
    }


def test_a_selector_serves_many_clients_by_turns() -> None:
    clients, rounds = 20, 10

    def server(network: Network) -> None:
        served = 0
        with Selector(network) as selector, create_server(network, ("", PORT)) as listener:
            selector.register(listener, selectors.EVENT_READ)
            while served < clients:
                for key, _ in selector.select(5.0):
                    if key.fileobj is listener:
                        selector.register(listener.accept()[0], selectors.EVENT_READ)
                        continue
                    data = key.fileobj.recv(100)  # type: ignore[union-attr]
                    if data:
                        key.fileobj.sendall(data.upper())  # type: ignore[union-attr]
                    else:
                        selector.unregister(key.fileobj)
                        key.fileobj.close()  # type: ignore[union-attr]
                        served += 1

    def client(network: Network) -> dict[str, object]:
        connections = [reach(network) for _ in range(clients)]
        answers = []
        for number in range(rounds):
            for one in connections:
                one.sendall(b"round %d" % number)
            waiting = list(connections)
            while waiting:
                ready, _, _ = select(network, waiting, [], [], 30.0)
                assert ready
                for one in ready:
                    answers.append(one.recv(100) == b"ROUND %d" % number)
                    waiting.remove(one)
        for one in connections:
            one.close()
        return {"answers": np.array(answers)}

    answers = run_programs(server, client).samples["rank1"]["answers"]
    assert answers.sum() == clients * rounds
