"""What a program asks of a process of VMMC that cannot be."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.vmmc import VmmcNodes

from shrimpmx.errors import InputError
from shrimpmx.vmmc.process import VmmcProcess
from shrimpmx.wait.names import make_strategy
from shrimpmx.wait.waiting_strategy import WaitingStrategy

LETTER_LIBRARY = 16


@pytest.fixture
def process() -> Iterator[VmmcProcess]:
    rig = VmmcNodes(heap_bytes=1 << 22)
    made = VmmcProcess(rig.nodes[0], 0, rig.rank_runner(0), agent=rig.rank_agent(0))
    made.open()
    yield made
    made.close()


class Failing(WaitingStrategy):
    """Raises when it is asked."""

    def idle(self, waited_ns: int) -> str:
        raise ValueError("no idea")


def test_what_a_strategy_for_one_wait_raises_is_raised(process: VmmcProcess) -> None:
    flag = process.export(4096).flag(0)
    with pytest.raises(ValueError, match="no idea"):
        process.wait([flag], timeout_ns=10**9, strategy=make_strategy(Failing()))


def test_a_letters_status_has_24_bits(process: VmmcProcess) -> None:
    process.letter(1, 0, LETTER_LIBRARY, status=(1 << 24) - 1)
    with pytest.raises(InputError, match="24 bits"):
        process.letter(1, 0, LETTER_LIBRARY, status=1 << 24)
