"""Fit the hosts of the papers to the papers' figures, with and without each of their groups.

    python tools/fit_papers.py myri10g-2009 --workers 2

Writes the figures measured, simulated and predicted to results-archive/fit-NAME/fit.json, which
`shrimpmx report results-archive` shows. Where the hosts explain the figures it also writes the
fitted values, with intervals and with the values of each fit without one group, to
shrimpmx/experiment/platforms/fitted/NAME.toml. An interrupted fit goes on with the figures that it
has simulated.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from shrimpmx.costs.table import CHARGED, COSTS
from shrimpmx.experiment.fit.fitted import Fit
from shrimpmx.experiment.fit.held_out import predictions_of, without_each
from shrimpmx.experiment.fit.predictor import Predictor
from shrimpmx.experiment.fit.solve import Solution, solve
from shrimpmx.experiment.fit.varied import HARDWARE, varied_of
from shrimpmx.experiment.platform import PLATFORMS
from shrimpmx.experiment.platform_files import entry_lines
from shrimpmx.native.files import write_whole
from shrimpmx.papers.measured import figures_of
from shrimpmx.results.json_file import write_json
from shrimpmx.settings.platform import DELIVERY, DIRECTORY, Entry, Platform
from shrimpmx.show.fit import POOR

ROOT = Path(__file__).parents[1]
# Costs and times of hardware that the papers' figures may tell.
PACKETS = (
    *("nic.link_delay_ns", "nic.dma_latency_ns", "nic.firmware_ns"),
    *("costs.interrupt_to_handler", f"model.{DELIVERY}", "model.interrupt_exit_ns"),
    *("costs.handler_per_packet", "costs.rank_event", "model.idle_exit_ns"),
    *("mx.send_cost_ns", "model.send_call_ns", "model.send_fragment_ns"),
    *("model.fragment_done_ns", "model.reap_ns", "model.reuse_ns", "model.tx_handover_ns"),
    *("model.small_packet_ns", "model.fragment_packet_ns", "model.reply_packet_ns"),
    *("model.ack_packet_ns", "model.reply_ns", "model.handler_poll_ns"),
    *("model.copy_bytes_per_second", "model.frame_line_ns", "model.page_ns"),
    *("model.handover_ns", "model.cold_packet_ns", "model.line_cache_ns"),
    *("model.line_package_ns", "model.line_system_ns"),
)
WAITS = (
    *("costs.interrupt_to_handler", "costs.disable_interrupts", "costs.enable_interrupts"),
    *("costs.context_switch", "costs.notification_handler", "model.switch_ns", "model.yield_ns"),
    *("model.sleep_call_ns", "model.wake_ns"),
)
VARIED: Mapping[str, Sequence[str]] = {"myri10g-2009": PACKETS, "shrimp-1996": WAITS}


def before(platform: Platform, keys: Sequence[str]) -> Platform:
    """The platform as it is known without the papers' figures: a cost that one of them set, or
    that it lacks, is in the middle of its range.
    """
    tables: dict[str, dict[str, Entry]] = {}
    for key in keys:
        table, _, name = key.partition(".")
        entries = tables.setdefault(table, dict(getattr(platform, table)))
        entry = entries.get(name)
        if entry is None or entry.calibrated_by:
            low, high = HARDWARE.get(key) or (CHARGED.get(name) or COSTS[name]).range
            value = round(math.sqrt(low * high))
            entries[name] = Entry(value=value, origin="ours", source="the middle of its range")
    return platform.model_copy(update=tables)


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit and write; 0."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("platform", choices=VARIED)
    parser.add_argument("--workers", type=int, default=1, metavar="N")
    options = parser.parse_args(arguments)
    name = options.platform
    figures = figures_of(name)
    base = before(PLATFORMS[name].model_copy(update={"fitted": {}}), VARIED[name])
    keys = {*VARIED[name]}
    varied = [one for one in varied_of(base) if one.key in keys]
    kept = ROOT / "build" / f"fit-{name}.part"
    kept.parent.mkdir(exist_ok=True)
    predictor = Predictor(figures, base, 1, options.workers, kept)
    whole = solve(predictor, varied, range(len(figures)), teller("all"), profiled=False)
    without = without_each(predictor, varied, whole, lambda group: teller(f"all but {group}"))
    predictor.close()
    predictions = list(predictions_of(figures, without))
    fit = Fit(base, figures, whole, predictions, predictor.simulated)
    archive = ROOT / "results-archive" / f"fit-{name}"
    archive.mkdir(exist_ok=True)
    write_json(archive / "fit.json", fit.document())
    if whole.model <= POOR:
        write_fitted(name, fit, without)
    return 0


def teller(what: str):
    """Tells the error of a search as it goes on."""

    def tell(error: float) -> None:
        print(f"{what}: median error {error:.1%}", file=sys.stderr, flush=True)

    return tell


def write_fitted(name: str, fit: Fit, without: Mapping[str, Solution]) -> None:
    """The platform's fitted values."""
    fitted = fit.platform(name, 1)
    count, lines = len(fit.measurements), []
    for index, one in enumerate(fit.solution.varied):
        is_told = fit.solution.is_determined(index)
        told = "determined" if is_told else "hardly narrowed"
        source = f"{told} by {count} figures of the papers together; {one.value:g} before the fit"
        table, _, field = one.key.partition(".")
        entry = getattr(fitted, table)[field].model_copy(
            update={
                "draws": (),
                "source": source,
                "without": {
                    group: max(1, round(other.values[one.key]))
                    for (group,), other in without.items()
                },
            }
        )
        lines += [f"[{one.key}]", *entry_lines(entry), ""]
    place = DIRECTORY / "fitted"
    place.mkdir(exist_ok=True)
    write_whole(place / f"{name}.toml", "\n".join(lines))


if __name__ == "__main__":
    sys.exit(main())
