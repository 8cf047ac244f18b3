"""docs/conformance.md, from the results of tools/mpi4py_conformance.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from conformance_table import FileResult, failures, filled, reasons, table

# By MPI and number of ranks, then by file.
Results = dict[tuple[str, int], dict[str, FileResult]]

HEAD = """For owners of an MPI program who ask which calls work: the outcome of mpi4py's own tests.
`tools/mpi4py_conformance.py` wrote this page. It runs the tests of {source} on {ranks} ranks under
`shrimpmx mpirun` with `wait=block`{beside}. Each cell is a number of passed cases. *Unsupported*:
the failure names a refused call. *Failed*: on any rank. *Not ended*: the process ended before, or
the file took too long (*hung*). *Skipped*: by the test itself, on every rank."""


def page(
    source: str,
    mpis: Sequence[str],
    results: Results,
    programs: Mapping[str, Sequence[str]],
) -> str:
    """The page as Markdown."""
    counts = sorted({ranks for _, ranks in results})
    files = list(dict.fromkeys(file for of in results.values() for file in of))
    beside = f", and under {mpis[1]} with at most a rank per CPU" if len(mpis) > 1 else ""
    head = HEAD.format(source=source, ranks=_listed(counts), beside=beside)
    parts = ["# Conformance\n", filled(head)]
    for mpi in dict.fromkeys(mpi for mpi, _ in results):
        columns = {
            f"{n} rank{'s' * (n > 1)}": results[mpi, n] for n in counts if (mpi, n) in results
        }
        found = [one for of in columns.values() for one in of.values()]
        parts += [f"## {mpi}\n", table(files, columns) + "\n"]
        for outcome, words in (("unsupported", "Refused calls"), ("skipped", "Reasons to skip")):
            if why := reasons(found, outcome):
                parts.append(filled(f"{words}, each with the number of its cases: {why}."))
        if failed := failures(found):
            parts.append(f"What failed or did not end:\n\n{failed}\n")
    if programs:
        parts += ["## Demonstrations and benchmarks\n", _programs(mpis, programs)]
    return "\n".join(parts)


def _listed(numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return str(numbers[0])
    return f"{', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"


def _programs(mpis: Sequence[str], programs: Mapping[str, Sequence[str]]) -> str:
    lines = [f"| program | {' | '.join(mpis)} |", f"| --- |{' --- |' * len(mpis)}"]
    lines += [f"| {name} | {' | '.join(found)} |" for name, found in programs.items()]
    return "\n".join(lines) + "\n"
