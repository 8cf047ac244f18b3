"""The control segment's figures of an MPI program's work and sections, before there are any."""

from __future__ import annotations

from shrimpmx.shared.private import private_control


def test_there_is_none_at_first() -> None:
    agents = [("node0.nic", "nic", 0), ("node0.irq0", "irq", 0), ("rank0", "rank", 1)]
    control = private_control(["nic", "rank0"], agents)
    assert not control.work_begun
    assert not control.is_marked
    assert {name: set(counted) for name, counted in control.section_counters().items()} == {
        name: set(counted) for name, counted in control.counters().items()
    }
    assert not any(any(counted.values()) for counted in control.section_counters().values())
    assert set(control.runner_section(1).values()) == {0}
    assert set(control.runner_section_account(1).values()) == {0}
    assert control.runner_section_cpu_ns(0) == 0
