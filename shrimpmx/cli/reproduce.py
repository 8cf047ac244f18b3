"""`shrimpmx reproduce`: run what the papers' claims need, print each beside what was measured."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.markup import escape

from shrimpmx.cli.options import (
    BOTH,
    add_engine_options,
    add_sweep_options,
    add_words,
    are_elsewhere,
    check_engine_options,
    check_sweep_options,
    engine_words,
    take_settings,
)
from shrimpmx.cli.resuming import resume_command, say_how_to_go_on, settings_to_go_on
from shrimpmx.cluster.engine.logs import run_log
from shrimpmx.errors import AgentError, InputError, MachineError
from shrimpmx.experiment.engines import REAL, SIMULATED, chosen_engine
from shrimpmx.experiment.workers import cluster_at
from shrimpmx.native.streams import put, while_read
from shrimpmx.papers.claim import Claim
from shrimpmx.papers.claims_report import print_claims, print_findings
from shrimpmx.papers.registry import PAPERS, chosen, papers_of
from shrimpmx.papers.reproduction import Document, Reproduction, Request
from shrimpmx.results.disturbance import disturbance_words
from shrimpmx.results.json_file import write_json
from shrimpmx.results.result import (
    RUN_FILE,
    SCHEMA,
    default_output,
)
from shrimpmx.results.words import SIMULATED_WORDS
from shrimpmx.show.terminal import console


def add_parser(commands: Any) -> None:
    """Declare the command's options."""
    parser = commands.add_parser(
        "reproduce",
        description="Run the points behind the papers' claims, and print the papers' figures "
        "next to this machine's, with a verdict for each claim.",
    )
    meaning = f"papers ({', '.join(PAPERS)}) or claims such as IC-9; default: all"
    add_words(parser, "PAPER | ID", meaning, "*")
    add_sweep_options(parser)
    add_engine_options(parser, both=True)
    parser.add_argument(
        "--beside",
        action="store_true",
        help="also run further statistics, which decide no claim",
    )
    parser.add_argument(
        "--whole",
        action="store_true",
        help="run all points of the claims' scenarios, which pictures need, and the further "
        "statistics, instead of the deciding points only",
    )
    parser.add_argument("--list", action="store_true", help="print the claims without running them")
    parser.set_defaults(function=run)


def run(options: argparse.Namespace) -> int:
    """Run the scenarios of the claims and judge these; returns 0, whatever the verdicts.

    Raises InputError, MachineError, AgentError.
    """
    asked = take_settings(options)
    claims = chosen(asked, PAPERS)
    if options.list:
        return _list(claims, options.json)
    options.beside |= options.whole
    if not options.beside:
        claims = [claim.deciding_only() for claim in claims]
    check_sweep_options(options)
    check_engine_options(options)
    if are_elsewhere(options):
        raise InputError(
            "real runs that judge claims must run on this machine: leave --scheduler out, or add "
            "--engine simulated, whose runs may be elsewhere"
        )
    output = options.output or default_output("-".join(["reproduce", *papers_of(claims, PAPERS)]))
    given = {"--beside": options.beside, "--whole": options.whole}
    request = Request(
        claims,
        ["reproduce", *asked, *(option for option, is_given in given.items() if is_given)],
        options.settings,
        options.seed,
        options.beside,
        options.whole,
        options.workers,
    )

    def go_on(settings: Iterable[str]) -> str:
        words = engine_words(options)
        return resume_command(request.command, options, settings, output, words)

    if options.engine != BOTH:
        _reproduce(request, options, output, go_on)
        _write_page(output)
        return 0
    documents = []
    # Simulated hosts take minutes, real processes longer.
    for engine in (SIMULATED, REAL):
        place = output / engine
        own = {"engine": engine, "json": None, "resume": False}
        if options.resume:
            own["resume"] = (engine == SIMULATED and not output.exists()) or place.exists()
        alone = argparse.Namespace(**{**vars(options), **own})
        asked_of = replace(request, workers=1) if engine == REAL else request
        documents += _reproduce(asked_of, alone, place, go_on)
    if options.json:
        write_json(options.json, {"schema": SCHEMA, "claims": documents})
    _write_page(output)
    return 0


def _write_page(output: Path) -> None:
    """The page of a reproduction; none of claims that need no run."""
    from shrimpmx.page.page import write_beside

    results = [path.parent for path in sorted(output.rglob(RUN_FILE))]
    if results:
        write_beside(output, results)


def _reproduce(
    request: Request,
    options: argparse.Namespace,
    output: Path,
    go_on: Callable[[Iterable[str]], str],
) -> list[Document]:
    """Reproduce claims on one engine; what is kept of each."""
    engine = chosen_engine(options.engine)
    with cluster_at(options.scheduler, engine, trust=options.trust_network) as cluster:
        reproduction = Reproduction(request, output, engine, cluster, resume=options.resume)
        _run(options, reproduction, go_on)
    return [finding.as_dict() for finding in reproduction.findings()]


def _run(
    options: argparse.Namespace,
    reproduction: Reproduction,
    go_on: Callable[[Iterable[str]], str],
) -> None:
    output = reproduction.output
    with reproduction.opened():
        claims, parts = len(reproduction.claims), len(reproduction.parts)
        runs = reproduction.runs_total
        with while_read():
            print(f"claims: {claims}; scenarios: {parts}; runs: {runs}")
        try:
            with run_log(output):
                reproduction.run()
        except (AgentError, MachineError, KeyboardInterrupt) as error:
            command = go_on(settings_to_go_on(options, reproduction.points, error))
            say_how_to_go_on(reproduction.runs_done, runs, output, command, error)
            raise
        finally:
            reproduction.keep(options.json)
        _print(options, reproduction)


def _print(options: argparse.Namespace, reproduction: Reproduction) -> None:
    """Print what came of a reproduction."""
    terminal = console()
    with while_read():
        if options.settings:
            terminal.print(escape(f"set: {', '.join(options.settings)}"), soft_wrap=True)
        if not reproduction.engine.is_real:
            terminal.print(SIMULATED_WORDS)
        print_findings(reproduction.findings(), PAPERS, terminal)
        if disturbed := disturbance_words(reproduction.made()):
            terminal.print(
                f"\nnote: {disturbed}; they count only for claims about counts of the protocol",
                soft_wrap=True,
            )
        put(f"\nresult: {reproduction.output}")


def _list(claims: Sequence[Claim], json_path: Path | None) -> int:
    if json_path:
        shown = {"id", "kind", "source", "setup", "paper"}
        write_json(json_path, {"claims": [claim.model_dump(include=shown) for claim in claims]})
    print_claims(claims, console())
    return 0
