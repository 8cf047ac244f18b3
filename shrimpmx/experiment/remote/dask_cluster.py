"""A Dask cluster as a Cluster: https://distributed.dask.org. Only this module and worker.py import
Dask.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from typing import Annotated

from distributed import Client, Future, rpc, wait
from distributed.comm.addressing import parse_address, parse_host_port
from distributed.security import Security
from pydantic import BaseModel, Field, ValidationError

from shrimpmx.errors import AgentError, InputError
from shrimpmx.experiment.remote import worker
from shrimpmx.experiment.remote.dispatch import Place
from shrimpmx.experiment.remote.inert import NamedError, read_data_only
from shrimpmx.experiment.remote.messages import Description, in_words
from shrimpmx.native.streams import tell
from shrimpmx.results.environment import software

LOGGER = logging.getLogger("shrimpmx.remote")

# The scheduler, and then its first worker, have so long to answer, s (ours).
CONNECT_S = 5.0
WORKERS_S = 10.0
# A worker has so long to load shrimpmx and to describe its machine, s (ours).
DESCRIBE_S = 30.0
# A scheduler that says nothing for so long has gone, s (ours).
SILENT_S = 60.0
# A sweep whose workers have all gone waits so long for others, s (ours).
GONE_S = 60.0
# Without a worker it says so after that time, s (ours).
SAY_S = 3.0
# A worker that has made a run has so long to send it, s (ours).
FETCH_S = 60.0
# How often to look which workers there are, s (ours).
LOOK_S = 1.0
# What workers of real runs are started with: one run at a time per machine.
RESOURCE = "machine"
# Schemes of Dask's addresses with TLS.
TLS = ("tls", "wss")


class _Worker(BaseModel):
    """What a scheduler says of a worker."""

    nthreads: Annotated[int, Field(gt=0)]
    resources: dict[str, float] = {}


class _Scheduler(BaseModel):
    """What a scheduler says of itself, and any other of Dask's servers."""

    type: str
    workers: dict[str, _Worker] = {}


class DaskCluster:
    """The workers of a scheduler; for real runs those with a resource named "machine"."""

    def __init__(self, client: Client, address: str, *, real: bool) -> None:
        self.address = address
        self._client, self._real = client, real
        self._software = software()
        self._machines: dict[str, str] = {}
        self._refused: set[str] = set()
        self._places: dict[str, Place] = {}
        self._looked_s = self._seen_s = time.monotonic()
        self._said = False
        self._runs: set[Future] = set()
        self._name = uuid.uuid4().hex

    def wait_for_workers(self) -> None:
        """InputError unless there are workers that can be used, within a while."""
        limit = time.monotonic() + WORKERS_S
        self._look()
        while not self._places and not self._refused:
            if time.monotonic() > limit:
                raise InputError(f"{self._no_workers()}: {self._remedy()}")
            self._say_none(WORKERS_S)
            time.sleep(LOOK_S / 10)
            self._look()
        if not self._places:
            raise InputError(min(self._refused))

    def _no_workers(self) -> str:
        kind = "worker for real runs" if self._real else "workers"
        return f"the scheduler at {self.address} has no {kind}"

    def _remedy(self) -> str:
        command = f"dask worker {self.address}"
        if self._real:
            words = f"--nworkers 1 --nthreads 1 --resources {RESOURCE}=1"
            return f"start one on each machine with `{command} {words}`"
        return f"start some with `{command}`"

    def _say_none(self, patience_s: float) -> None:
        """Once it has had none for a while, say so; `patience_s`: how long it waits in all."""
        if self._said or time.monotonic() < self._seen_s + SAY_S:
            return
        self._said = True
        tell(
            f"shrimpmx: {self._no_workers()} now; the sweep waits {patience_s:g} s for one: "
            f"{self._remedy()}"
        )

    def places(self) -> dict[str, Place]:
        """The workers that there are now, by address."""
        now_s = time.monotonic()
        if now_s > self._looked_s + LOOK_S:
            self._look()
            self._looked_s = now_s
            while self._refused:
                LOGGER.warning(self._refused.pop())
        if self._places:
            self._seen_s, self._said = now_s, False
        elif now_s > self._seen_s + GONE_S:
            raise AgentError(f"all workers of the scheduler at {self.address} have gone")
        else:
            self._say_none(GONE_S)
        return self._places

    def _look(self) -> None:
        with self._translated():
            answer = self._client.sync(
                self._client.scheduler.identity, n_workers=-1, callback_timeout=SILENT_S
            )
            known = _Scheduler.model_validate(answer).workers
        found = {
            address: 1 if self._real else each.nthreads
            for address, each in known.items()
            if not self._real or each.resources.get(RESOURCE, 0) >= 1
        }
        # One that comes back is asked again.
        self._machines = {each: name for each, name in self._machines.items() if each in found}
        self._meet([address for address in found if address not in self._machines])
        self._places = {
            address: Place(self._machines[address], runs)
            for address, runs in found.items()
            if self._machines.get(address)
        }

    def _meet(self, addresses: list[str]) -> None:
        """Ask new workers for their machine; one whose shrimpmx is another has none."""
        if not addresses:
            return
        with self._translated():
            told = self._client.sync(self._described, addresses)
        for address, answer in zip(addresses, told, strict=True):
            self._machines[address] = ""
            try:
                described = Description.model_validate(answer)
            except ValidationError:
                flaw = f"it answers {in_words(answer)}; install shrimpmx and its extra dask there"
            else:
                flaw = self._other_software(described)
                self._machines[address] = "" if flaw else described.name
            if flaw:
                self._refused.add(f"worker {address} cannot be used: {flaw}")

    async def _described(self, addresses: Sequence[str]) -> list[object]:
        """What each worker says of its machine, or the error of one that does not."""

        async def ask(address: str) -> object:
            asked = self._client.run(worker.describe, workers=[address], on_error="return")
            try:
                return (await asyncio.wait_for(asked, DESCRIBE_S)).get(address)
            except TimeoutError:
                return TimeoutError(f"nothing in {DESCRIBE_S:g} s")

        return await asyncio.gather(*map(ask, addresses))

    def _other_software(self, there: Description) -> str:
        here = self._software
        others = [
            f"{name} {there.versions.get(name)} instead of {version}"
            for name, version in here["versions"].items()
            if there.versions.get(name) != version
        ]
        if not others and here["code"] != there.code:
            others = ["shrimpmx of another build"]
        return f"it has {', '.join(others)}; install the same everywhere" if others else ""

    def begin(self, address: str, job: str, task: str) -> Future:
        """Let a worker begin a run."""
        run = self._client.submit(
            worker.measure,
            job,
            task,
            key=f"shrimpmx-{self._name}-{uuid.uuid4().hex}",
            workers=[address],
            resources={RESOURCE: 1} if self._real else None,
            pure=False,
            retries=0,
        )
        self._runs.add(run)
        return run

    def ended(self) -> Iterator[tuple[Future, object]]:
        """The runs that have ended meanwhile, each with its reply, or None if it is lost."""
        if not self._runs:
            time.sleep(LOOK_S)
            return
        try:
            with self._client.as_current():
                done = wait(self._runs, timeout=LOOK_S, return_when="FIRST_COMPLETED").done
        except TimeoutError:
            return
        except CancelledError as error:
            raise AgentError(self._gone("Dask has given its runs up")) from error
        for run in done:
            self._runs.remove(run)
            yield run, self._reply(run)

    def _reply(self, run: Future) -> object:
        if run.status == "finished":
            return self._fetched(run)
        error = run.exception() if run.status == "error" else None
        if error is None or type(error).__name__ == "KilledWorker":
            return None
        raise AgentError(f"a worker of {self.address} failed: {in_words(error)}")

    def _fetched(self, run: Future) -> object:
        """The reply that a worker has; None if it is lost with its worker, or does not come."""
        limit = time.monotonic() + FETCH_S
        while run.status == "finished" and time.monotonic() < limit:
            with self._translated(), contextlib.suppress(TimeoutError, NamedError):
                return run.result(timeout=LOOK_S)
        self.give_up([run])
        return None

    def give_up(self, runs: Iterable[Future]) -> None:
        """Forget runs; their workers notice, and end them."""
        given_up = list(runs)
        self._runs.difference_update(given_up)
        if given_up:
            with contextlib.suppress(OSError, TimeoutError):
                self._client.cancel(given_up)

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        """AgentError in place of Dask's, where its scheduler has gone or sends other things."""
        try:
            yield
        except (OSError, TimeoutError, CancelledError) as error:
            raise AgentError(self._gone(str(error))) from error
        except (NamedError, LookupError, TypeError, ValueError, AttributeError) as error:
            raise AgentError(
                f"the scheduler at {self.address} sent an invalid answer: {in_words(error)}"
            ) from error

    def _gone(self, why: str) -> str:
        return f"the scheduler at {self.address} has gone: {why}"

    def close(self) -> None:
        """Let workers end their idle processes, and leave them: what fails now costs no run."""
        with contextlib.suppress(Exception):
            self._client.sync(
                self._client.run, worker.dismiss, on_error="ignore", callback_timeout=CONNECT_S
            )
        with contextlib.suppress(Exception):
            self._client.close(timeout=CONNECT_S)


@contextlib.contextmanager
def connected(address: str, *, real: bool, trust_network: bool = False) -> Iterator[DaskCluster]:
    """The cluster of the scheduler at `address`. InputError if there is none, or no workers, and
    unless TLS, this machine's loopback or `trust_network` keeps other users out of the connection.
    """
    if not (_is_private(address) or trust_network):
        raise InputError(
            f"without TLS anyone in the network can run code on the workers of {address}: use an "
            "address that begins with tls:// (docs/sweeps.md), or add --trust-network"
        )
    # Lost connections are told in one sentence of ours.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    read_data_only()
    cluster = DaskCluster(_client(address), address, real=real)
    try:
        cluster.wait_for_workers()
        yield cluster
    finally:
        cluster.close()


def _is_private(address: str) -> bool:
    """Whether the address asks for TLS, or leads to this machine alone; InputError if it is bad."""
    try:
        scheme, place = parse_address(address)
        host, _ = parse_host_port(place)
    except ValueError as error:
        raise InputError(
            f"{address!r} is not an address of a scheduler, such as tls://head:8786: {error}"
        ) from error
    try:
        return scheme in TLS or host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _client(address: str) -> Client:
    try:
        # First: a client that has never been connected takes long to be closed.
        found = asyncio.run(_type_of(address))
        if found != "Scheduler":
            raise ValueError(f"there is a {found}")
        return Client(address, timeout=CONNECT_S, set_as_default=False, name="shrimpmx")
    except ValidationError as error:
        raise InputError(f"{address} answers, but is not a Dask scheduler") from error
    except (OSError, ValueError, TimeoutError, NamedError) as error:
        why = in_words(error) if isinstance(error, NamedError) else str(error)
        raise InputError(
            f"no Dask scheduler answers at {address}: {why or f'nothing in {CONNECT_S:g} s'}; "
            "start one with `dask scheduler`"
        ) from error
    except (TypeError, RuntimeError) as error:
        # Dask's words for a certificate that it lacks, and for TLS that it requires.
        raise InputError(
            f"Dask cannot connect to {address} with these settings: {error}; docs/sweeps.md shows "
            "those for TLS"
        ) from error


async def _type_of(address: str) -> str:
    """What kind of Dask's servers answers at an address."""
    keys = Security().get_connection_args("client")
    async with rpc(address, timeout=CONNECT_S, connection_args=keys) as scheduler:
        answer = await asyncio.wait_for(scheduler.identity(), CONNECT_S)
        return _Scheduler.model_validate(answer).type
