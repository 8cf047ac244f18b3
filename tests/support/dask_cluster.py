"""A Dask scheduler and its workers, processes of this machine."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import trustme

from support.conditions import patient

START_LIMIT_S = patient(40.0)


def tls_settings(place: Path) -> dict[str, str]:
    """Settings of Dask, with a certificate of their own in `place`."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(place / "authority.pem")
    authority.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(
        place / "key.pem"
    )
    return {
        "distributed.comm.tls.ca-file": str(place / "authority.pem"),
        **{
            f"distributed.comm.tls.{who}.cert": str(place / "key.pem")
            for who in ("client", "scheduler", "worker")
        },
    }


class LocalDask:
    """Starts and ends them; workers make one run at a time, and may make real ones."""

    def __init__(self, place: Path, tls: Mapping[str, str] | None = None) -> None:
        self._place = place
        self._environment = {**os.environ, "DASK_TEMPORARY_DIRECTORY": str(place)}
        for name, value in (tls or {}).items():
            word = name.upper().replace(".", "__").replace("-", "_")
            self._environment[f"DASK_{word}"] = value
        self.workers: list[subprocess.Popen[bytes]] = []
        words = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-show"]
        words += ["--protocol", "tls"] if tls else []
        self.scheduler = self._start("scheduler", *words)
        self.address = self._wait_for("scheduler", "Scheduler at:")

    def start_workers(self, count: int) -> None:
        """Start so many, and wait until the scheduler knows them."""
        names = [f"worker{number}" for number in range(count)]
        for name in names:
            words = ["--no-nanny", "--nthreads", "1", "--no-dashboard", "--resources", "machine=1"]
            folder = ["--local-directory", str(self._place / name)]
            self.workers.append(self._start("worker", self.address, *words, *folder, log=name))
        for name in names:
            self._wait_for(name, "Registered to:")

    def close(self) -> None:
        """End all of them, stopped ones as well."""
        for worker in self.workers:
            worker.terminate()
            worker.send_signal(signal.SIGCONT)
        for worker in self.workers:
            worker.wait(START_LIMIT_S)
        self.scheduler.kill()
        self.scheduler.wait()

    def _start(self, kind: str, *words: str, log: str = "") -> subprocess.Popen[bytes]:
        module = f"distributed.cli.dask_{kind}"
        with (self._place / f"{log or kind}.log").open("wb") as file:
            return subprocess.Popen(
                [sys.executable, "-m", module, *words],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                env=self._environment,
            )

    def _wait_for(self, log: str, words: str) -> str:
        """The word behind others in a log, once they are there."""
        limit = time.monotonic() + START_LIMIT_S
        while time.monotonic() < limit:
            with contextlib.suppress(IndexError):
                text = (self._place / f"{log}.log").read_text()
                return text.partition(words)[2].split()[0]
            time.sleep(0.02)
        raise AssertionError((self._place / f"{log}.log").read_text())
