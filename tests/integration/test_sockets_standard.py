"""Modules of the standard library that work on emulated sockets between two nodes, unmodified."""

from __future__ import annotations

import ftplib
import http.client
import http.server
import poplib
import queue
import smtplib
import socketserver
import threading
import urllib.request
import wsgiref.simple_server
import xmlrpc.client
import xmlrpc.server
from typing import Any

import pytest
from support.socket_programs import PORT, reach, recv_exactly, run_programs

from shrimpmx.sockets.api import create_server, patched
from shrimpmx.sockets.network import Network
from shrimpmx.sockets.threads import Scheduler


class Echo(socketserver.StreamRequestHandler):
    """Answers each line in capitals."""

    def handle(self) -> None:
        for line in self.rfile:
            self.wfile.write(line.upper())


class Page(http.server.BaseHTTPRequestHandler):
    """One page."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"page")

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


class Quiet(wsgiref.simple_server.WSGIRequestHandler):
    """Logs nothing."""

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def application(_environ: Any, start_response: Any) -> list[bytes]:
    start_response("200 OK", [])
    return [b"page"]


def web() -> socketserver.BaseServer:
    return http.server.HTTPServer(("", PORT), Page)


def procedures() -> socketserver.BaseServer:
    server = xmlrpc.server.SimpleXMLRPCServer(("", PORT), logRequests=False)
    server.register_function(pow)
    return server


def wsgi() -> socketserver.BaseServer:
    return wsgiref.simple_server.make_server("", PORT, application, handler_class=Quiet)


def by_connection() -> bytes:
    connection = http.client.HTTPConnection("node0", PORT)
    connection.request("GET", "/")
    return connection.getresponse().read()


def by_url() -> bytes:
    content: bytes = urllib.request.urlopen(f"http://node0:{PORT}/").read()
    return content


def by_call() -> object:
    return xmlrpc.client.ServerProxy(f"http://node0:{PORT}").pow(2, 5)


@pytest.mark.nightly("each server", but=2)
@pytest.mark.parametrize(
    ("make", "ask", "answer"),
    [
        (web, by_connection, b"page"),
        (web, by_url, b"page"),
        (wsgi, by_url, b"page"),
        (procedures, by_call, 32),
    ],
)
def test_servers_and_clients_work(make: Any, ask: Any, answer: object) -> None:
    def server(network: Network) -> None:
        with patched(network), make() as served:
            for _ in range(2):
                served.handle_request()

    def client(network: Network) -> dict[str, bool]:
        reach(network).close()  # the first request: the server is there
        with patched(network):
            return {"answered": ask() == answer}

    assert run_programs(server, client).samples["rank1"]["answered"]


@pytest.mark.parametrize(
    ("ask", "greeting"),
    [
        (lambda: smtplib.SMTP("node0", PORT).docmd("NOOP")[0] == 250, b"220 hi\r\n250 ok\r\n"),
        (lambda: poplib.POP3("node0", PORT).getwelcome(), b"+OK hi\r\n"),
        (lambda: ftplib.FTP().connect("node0", PORT), b"220 hi\r\n"),
    ],
)
def test_clients_of_other_protocols_reach_their_server(ask: Any, greeting: bytes) -> None:
    def server(network: Network) -> None:
        with create_server(network, ("", PORT)) as listener:
            listener.accept()[0].close()
            with listener.accept()[0] as accepted:
                accepted.sendall(greeting)
                accepted.recv(1000)

    def client(network: Network) -> dict[str, bool]:
        reach(network).close()
        with patched(network):
            return {"answered": bool(ask())}

    assert run_programs(server, client).samples["rank1"]["answered"]


def test_a_server_with_threads_serves_clients_side_by_side_in_a_scheduler() -> None:
    def serve(scheduler: Scheduler) -> None:
        with socketserver.ThreadingTCPServer(("", PORT), Echo) as echo:
            threads = queue.Queue[threading.Thread]()
            other = threading.Thread(target=lambda: threads.put(threading.current_thread()))
            served = threading.Thread(target=echo.serve_forever)
            for thread in (served, other):
                thread.start()
            threads.get()  # which another thread puts
            assert served.is_alive()
            with pytest.raises(queue.Empty):
                threads.get(timeout=1)
            echo.shutdown()
            served.join()
            assert not served.is_alive()

    def server(network: Network) -> None:
        scheduler = Scheduler(network)
        with patched(network):
            scheduler.spawn(serve, scheduler)
            scheduler.run()

    def client(network: Network) -> dict[str, int]:
        with reach(network) as one, reach(network) as other:
            for each in (other, one, other):
                each.sendall(b"hi\n")
                assert recv_exactly(each, 3) == b"HI\n"
        return {"done": 1}

    assert run_programs(server, client).samples["rank1"]["done"]
