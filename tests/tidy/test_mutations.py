"""The mutations of tools/mutations.py and tools/schedules.py fit the sources."""

from __future__ import annotations

import sys

from support.tree import ROOT

sys.path.insert(0, str(ROOT / "tools"))

from mutations import MUTATIONS
from schedules import MUTATIONS as SCHEDULED


def test_each_mutation_finds_its_text_once_and_its_tests() -> None:
    for mutation in {*MUTATIONS, *SCHEDULED}:
        assert (ROOT / mutation.file).read_text().count(mutation.old) == 1, mutation.name
        for test in mutation.tests:
            assert (ROOT / "tests/unit" / test.split("::")[0]).exists(), mutation.name
