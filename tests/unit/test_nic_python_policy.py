"""Coalescing policies written in Python, and what becomes of one that raises."""

from __future__ import annotations

import pytest
from support.nic import PLAIN, Handler, Nodes, frame, run

from shrimpmx.errors import InputError
from shrimpmx.link.rings import ring_links
from shrimpmx.nic.firmware import Firmware
from shrimpmx.nic.names import make_policy
from shrimpmx.nic.policy import Policy
from shrimpmx.nic.strategies import PythonPolicy
from shrimpmx.shared.node import put_frame


class Three(Policy):
    """The example of Policy's documentation, with a record of its calls."""

    def __init__(self) -> None:
        self.waiting = 0
        self.calls: list[tuple[object, ...]] = []

    def on_arrival(self, now_ns: int, marked: bool, length_bytes: int) -> None:
        self.calls.append(("arrival", now_ns, marked, length_bytes))

    def on_dma_complete(self, now_ns: int, marked: bool, dma_pending: int) -> bool:
        self.calls.append(("complete", now_ns, marked, dma_pending))
        self.waiting += 1
        if self.deadline_ns is None:
            self.deadline_ns = now_ns + 20_000
        return self.waiting >= 3

    def on_raised(self, now_ns: int, cause: str) -> None:
        self.calls.append(("raised", now_ns, cause))
        self.waiting = 0
        self.deadline_ns = None


def send(nodes: Nodes, times_ns: list[int]) -> None:
    for number, time_ns in enumerate(times_ns):
        put_frame(nodes[0], "link", 1, frame(number, marked=number % 2 == 0), time_ns)


def make(policy: Policy) -> tuple[Nodes, Firmware, Handler]:
    nodes = Nodes()
    nic = Firmware(nodes[0], *ring_links(nodes.nodes, 0, PLAIN), PLAIN, policy)
    return nodes, nic, Handler(nodes)


def test_a_policy_sees_what_happens_and_decides() -> None:
    policy = Three()
    nodes, nic, handler = make(policy)
    send(nodes, [1000, 2000, 3000, 4000])
    for now_ns in (3050, 4049, 4050):
        nic.step_at(now_ns)
        handler.serve()
    assert policy.calls == [
        ("arrival", 1000, True, 60),
        ("complete", 1050, True, 0),
        ("arrival", 2000, False, 60),
        ("complete", 2050, False, 0),
        ("arrival", 3000, True, 60),
        ("complete", 3050, True, 0),
        ("raised", 3050, "packet"),
        ("arrival", 4000, False, 60),
        ("complete", 4050, False, 0),
    ]
    assert nic.due_ns == 4050 + 20_000
    nic.step_at(24_050)
    assert policy.calls[-1] == ("raised", 24_050, "timeout")
    counters = nodes.counters(0)
    assert (counters["irq_raised_packet"], counters["irq_raised_timeout"]) == (1, 1)


def test_answers_may_name_the_cause() -> None:
    class Named(Policy):
        def on_dma_complete(self, now_ns: int, marked: bool, dma_pending: int) -> str | None:
            return "marked" if marked else None

    policy = PythonPolicy(Named())
    assert policy.dma_complete(0, True, 0) == "marked"
    assert policy.dma_complete(0, False, 0) == "none"
    assert policy.deadline(0) == "timeout"  # the base's answer


@pytest.mark.parametrize("answer", [3, 1, "pakcet", 0.5, [True]])
def test_a_strange_answer_is_a_failure(answer: object) -> None:
    class Strange(Policy):
        def on_dma_complete(self, now_ns: int, marked: bool, dma_pending: int) -> bool:
            return answer  # type: ignore[return-value]

    policy = PythonPolicy(Strange())
    assert policy.dma_complete(0, True, 0) == "none"
    assert isinstance(policy.failure, InputError)
    assert str(policy.failure) == (
        f"Strange.on_dma_complete returned {answer!r}; it must return True, False, None or a "
        "cause: 'none', 'packet', 'marked', 'deferred', 'timeout', 'frames', 'sent'"
    )


@pytest.mark.parametrize("deadline", ["later", float("nan"), float("inf"), -1, 1 << 70])
def test_a_strange_deadline_is_a_failure(deadline: object) -> None:
    class Strange(Policy):
        def on_arrival(self, now_ns: int, marked: bool, length_bytes: int) -> None:
            self.deadline_ns = deadline  # type: ignore[assignment]

    policy = PythonPolicy(Strange())
    policy.arrival(0, True)
    assert isinstance(policy.failure, InputError)
    assert str(policy.failure) == (
        f"Strange.deadline_ns is {deadline!r}; it must be a time in ns from 0 on, or None"
    )
    assert policy.due_ns is None


@pytest.mark.parametrize("late_ns", [0, -1])
def test_a_deadline_that_has_come_cannot_be_set_again(late_ns: int) -> None:
    class Stuck(Policy):
        def on_deadline(self, now_ns: int) -> None:
            self.deadline_ns = now_ns + late_ns

    policy = PythonPolicy(Stuck())
    policy.deadline(1000)
    assert str(policy.failure).startswith("Stuck.on_deadline left deadline_ns at ")


def test_a_strange_answer_to_a_deadline_names_that_method() -> None:
    class Strange(Policy):
        def on_deadline(self, now_ns: int) -> bool:
            return 1  # type: ignore[return-value]

    policy = PythonPolicy(Strange())
    policy.deadline(5)
    assert str(policy.failure).startswith("Strange.on_deadline returned 1; it must return True, ")


@pytest.mark.parametrize("method", ["on_arrival", "on_dma_complete", "on_deadline", "on_raised"])
def test_a_policy_that_raises_fails_the_agent(method: str) -> None:
    class Broken(Three):
        pass

    def broken(self: Policy, *arguments: object) -> None:
        raise ZeroDivisionError(f"in {method}")

    setattr(Broken, method, broken)
    policy = Broken()
    nodes, nic, _ = make(policy)
    send(nodes, [1000] if method == "on_deadline" else [1000, 1001, 1002])
    with pytest.raises(ZeroDivisionError, match=f"in {method}") as caught:
        run([nic], 2000, 30_000, [])
    # The user's own line is in the traceback.
    assert caught.traceback[-1].name == "broken"
    assert nic.failure is nic.queues[0].policy.failure
    calls = len(policy.calls)
    with pytest.raises(ZeroDivisionError):
        nic.step_at(40_000)
    assert len(policy.calls) == calls  # not called any more


def test_a_deadline_that_is_not_renewed_is_over() -> None:
    class Once(Policy):
        deadline_ns = 500
        calls = 0

        def on_deadline(self, now_ns: int) -> bool:
            self.calls += 1
            return False

    policy = Once()
    _, nic, _ = make(policy)
    assert nic.step_at(499) == 0
    assert nic.step_at(500) == 1
    assert nic.step_at(10_000) == 0
    assert policy.calls == 1


@pytest.mark.parametrize("dilation", [1.0, 1.3, 10.0, 0.5])
def test_a_policys_times_are_those_of_the_emulated_hosts(dilation: float) -> None:
    class After(Policy):
        called_ns = -1

        def on_arrival(self, now_ns: int, marked: bool, length_bytes: int) -> None:
            assert now_ns == 2000
            self.deadline_ns = now_ns + 75_000

        def on_deadline(self, now_ns: int) -> bool:
            self.called_ns = now_ns
            return True

    policy = After()
    adapter = PythonPolicy(policy, dilation)
    adapter.arrival(round(2000 * dilation), True)
    assert adapter.due_ns == 77_000 * dilation
    adapter.deadline(adapter.due_ns)
    assert policy.called_ns == 77_000


@pytest.mark.parametrize(
    ("misspelt", "meant"),
    [
        ("on_dma_completed", "on_dma_complete"),
        ("on_raise", "on_raised"),
        ("raised", "on_raised"),
        ("onDmaComplete", "on_dma_complete"),
        ("deadLine", "on_deadline"),
        ("on_nothing", ""),
    ],
)
def test_a_misspelt_method_is_refused_with_the_nearest_name(misspelt: str, meant: str) -> None:
    with pytest.raises(InputError, match=rf"Wrong\.{misspelt} is not a method") as caught:
        type("Wrong", (Three,), {misspelt: lambda self, now_ns: None})
    assert ("did you mean" in str(caught.value)) == bool(meant)
    assert str(caught.value).endswith(f"did you mean {meant!r}?" if meant else "on_send_complete")


def test_a_method_that_takes_other_arguments_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        type("Wrong", (Three,), {"on_raised": lambda self, now_ns: None})
    assert str(caught.value) == (
        "Wrong.on_raised must take (self, now_ns, cause), not (self, now_ns)"
    )
    with pytest.raises(InputError, match=r"Wrong\.on_raised must take .*, not 3$"):
        type("Wrong", (Three,), {"on_raised": 3})
    type("Any", (Three,), {"on_raised": lambda *arguments: None})
    type("More", (Three,), {"on_raised": lambda self, now, why, more=0: None})
    type("Static", (Three,), {"on_raised": staticmethod(lambda now_ns, cause: None)})


def test_helpers_and_counts_are_no_misspelt_methods() -> None:
    class Helped(Three):
        raised = 0

        def _raised(self) -> None: ...
        def due(self) -> None: ...
        def wait_longer(self) -> None: ...

    assert Helped().raised == 0


def test_policies_of_both_kinds_are_made() -> None:
    policy = Three()
    adapter = make_policy(policy)
    assert isinstance(adapter, PythonPolicy)
    assert adapter.policy is policy
