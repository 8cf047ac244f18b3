"""Break the compiled code in one place at a time, and see that a test fails.

    python tools/mutations.py                 # all of them, about a minute each
    python tools/mutations.py lost-wake-up    # those that are named

Each mutation is one edit of a file whose old text stands there exactly once. The runner makes the
edit, builds the package of that file in place, runs the tests that must catch it, and restores
the file. It ends with 1 if a mutation survives, and builds what it has restored. To be run in a
clone whose build is up to date and in which nothing else is going on.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# A mutation may make a test wait for ever.
TEST_TIMEOUT_S = 60


@dataclass(frozen=True)
class Mutation:
    """`old` in `file` becomes `new`; one of `tests` (pytest's names, below tests/unit) fails."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    @property
    def package(self) -> str:
        """The package to build."""
        return self.file.split("/")[1]


MUTATIONS = (
    Mutation(
        "ring-published-without-release",
        "shrimpmx/native/ring.h",
        "store_release_u32(&ring->head, ring->reserved);",
        "store_relaxed_u32(&ring->head, ring->reserved);",
        ("test_native_orderings.py",),
    ),
    Mutation(
        "waker-without-fence",
        "shrimpmx/native/futex.h",
        "full_fence(); /* W1",
        "/* W1",
        ("test_native_orderings.py",),
    ),
    Mutation(
        "trace-overwrites-before-it-counts",
        "shrimpmx/native/trace.h",
        "release_fence(); /* T2",
        "/* T2",
        ("test_native_orderings.py",),
    ),
    Mutation(
        "futex-without-compare",
        "shrimpmx/native/futex.h",
        "FUTEX_WAIT, seen,",
        "FUTEX_WAIT, *word,",
        ("test_native_futex.py",),
    ),
    Mutation(
        "ring-one-slot-too-many",
        "shrimpmx/native/ring.h",
        "uint32_t free_slots = ring->entries - (",
        "uint32_t free_slots = ring->entries + 1 - (",
        ("test_native_ring.py",),
    ),
    Mutation(
        "lost-wake-up",
        "shrimpmx/wait/strategies.pyx",
        "        if ready(context):\n"
        "            stop_sleeping(environment, gate)\n"
        "            environment.account.races += 1\n"
        "            return WAIT_READY\n",
        "",
        ("test_wait_strategies.py", "test_wait_lost_wakeups.py"),
    ),
    Mutation(
        "coalescing-counts-on",
        "shrimpmx/nic/strategies.pyx",
        "        self.waiting = 0\n        self.reset_timer",
        "        self.reset_timer",
        ("test_nic_coalescing.py",),
    ),
    Mutation(
        "wrong-queue-by-hash",
        "shrimpmx/nic/steering.pyx",
        "% INDIRECTION_ENTRIES]",
        "% (INDIRECTION_ENTRIES - 1)]",
        ("test_nic_steering.py",),
    ),
    Mutation(
        "dma-one-byte-short",
        "shrimpmx/nic/dma.pxd",
        "memcpy(slot.frame, frame, length)",
        "memcpy(slot.frame, frame, length - 1)",
        ("test_nic_firmware.py", "test_mx_over_nic.py"),
    ),
    Mutation(
        "update-length-unchecked",
        "shrimpmx/nic/vmmc.pyx",
        "                or be16(header.length) > arrived.length - WIRE_HEAD_BYTES"
        " - VMMC_HEADER_BYTES):",
        "                ):",
        ("test_nic_vmmc.py",),
    ),
    Mutation(
        "export-without-permission",
        "shrimpmx/nic/vmmc.pyx",
        "if not may_map(found, source):",
        "if False:",
        ("test_nic_letters.py",),
    ),
    Mutation(
        "bits-for-bytes",
        "shrimpmx/link/line.pyx",
        "rate_line_initialise(&self.line, rate_bits_per_s, 8)",
        "rate_line_initialise(&self.line, rate_bits_per_s, 1)",
        ("test_link_line.py",),
    ),
    Mutation(
        "mark-on-the-wrong-packet",
        "shrimpmx/host/pull.pyx",
        "(mark if wanted.length == 0 else 0)",
        "(mark if wanted.length != 0 else 0)",
        ("test_host_pull.py",),
    ),
    Mutation(
        "block-one-frame-short",
        "shrimpmx/host/pull.pyx",
        "pull_frame_start(handle.next_frame + frames_max, ",
        "pull_frame_start(handle.next_frame + frames_max - 1, ",
        ("test_host_pull.py",),
    ),
    Mutation(
        "frame-number-wraps-wrongly",
        "shrimpmx/host/pull.pyx",
        "(reply.frame_seqnum - first) & 0xFF",
        "(reply.frame_seqnum - first)",
        ("test_host_pull.py",),
    ),
    Mutation(
        "token-freed-without-a-second-look",
        "shrimpmx/host/interrupts.pyx",
        "        if not token_free(vector):\n            return True\n",
        "        token_free(vector)\n        return True\n",
        ("test_host_interrupts.py",),
    ),
    Mutation(
        "budget-ignored",
        "shrimpmx/host/rx_poll.pyx",
        "        while self.polled < self.budget:\n"
        "            count = ring_available_from(rx, position, self.batch)\n"
        "            count = min(count, min(self.batch, self.budget - self.polled))\n",
        "        while True:\n"
        "            count = ring_available_from(rx, position, self.batch)\n"
        "            count = min(count, self.batch)\n",
        ("test_host_interrupts.py",),
    ),
    Mutation(
        "packet-cost-dropped",
        "shrimpmx/host/charges.pxd",
        "cdef int64_t cost_ns = pay(meter, COST_packet_cost_ns)",
        "cdef int64_t cost_ns = 0",
        ("test_host_charges.py",),
    ),
    Mutation(
        "region-never-freed",
        "shrimpmx/host/regions.pyx",
        "        region.kind = REGION_FREE\n",
        "        pass\n",
        ("test_host_regions.py",),
    ),
    Mutation(
        "copy-believed-without-a-second-look",
        "shrimpmx/host/regions.pyx",
        "if not region_copy_holds(driver.node.header, source.descriptor, source.region):",
        "if source.region == NULL:",
        ("test_host_local.py",),
    ),
    Mutation(
        "sleepers-left-by-the-dead",
        "shrimpmx/host/endpoint.pyx",
        "    node.control.rouse_all()\n",
        "",
        ("test_host_busy_poll.py",),
    ),
    Mutation(
        "event-ring-overwrites",
        "shrimpmx/host/event_ring.h",
        "        if (writer->next - writer->released_seen >= writer->entries)\n"
        "            return NULL;",
        "",
        ("test_host_event_ring.py",),
    ),
    Mutation(
        "resend-too-late",
        "shrimpmx/mx/send.pyx",
        "if request.sent_ns + library.settings.resend_delay_ns > library.now_ns:",
        "if request.sent_ns + 2 * library.settings.resend_delay_ns > library.now_ns:",
        ("test_mx_reliability.py",),
    ),
    Mutation(
        "delayed-ack-never-sent",
        "shrimpmx/mx/partner.pyx",
        "        if partner_of_acks(library.ack.later.next).ack_due_ns > library.now_ns:\n",
        "        if True:\n",
        ("test_mx_reliability.py",),
    ),
    Mutation(
        "youngest-receive-first",
        "shrimpmx/mx/match_table.pyx",
        "request.number < oldest.number)",
        "request.number > oldest.number)",
        ("test_mx_match.py",),
    ),
    Mutation(
        "handler-never-rests",
        "shrimpmx/cluster/engine/runner.pyx",
        "self.nap(min(awake_ns, 2 * WORK_MAX_NS) // WORK_PER_REST + 1)",
        "self.nap(NAP_NS)",
        ("test_cluster_runner.py",),
    ),
    Mutation(
        "pages-of-a-short-file-believed",
        "shrimpmx/native/pages.h",
        "query.address != query.end && query.inode == 0 &&",
        "query.address != query.end &&",
        ("test_native_process_memory.py",),
    ),
    Mutation(
        "second-lock-named-over-the-first",
        "shrimpmx/native/lock.h",
        "thread->list == NULL || thread->list->list_op_pending != NULL",
        "thread->list == NULL",
        ("test_native_lock.py",),
    ),
    Mutation(
        "sent-ahead-of-frames-under-way",
        "shrimpmx/nic/lent.pyx",
        "\n                and self.egress.in_flight(node) == 0)",
        ")",
        ("test_nic_lent.py",),
    ),
    Mutation(
        "sends-reaped-without-a-second-look",
        "shrimpmx/host/token.pxd",
        "    return (load_relaxed_u32(&node.sent.wish) != 0\n"
        "            or load_relaxed_u32(&node_vector(node, 0).wish) != 0)\n",
        "    return False\n",
        ("test_nic_sends.py",),
    ),
    Mutation(
        "send-side-never-moves",
        "shrimpmx/host/charges.pxd",
        "    node.sent.used_by = core\n",
        "",
        ("test_paid_costs.py",),
    ),
    Mutation(
        "long-message-not-declined",
        "shrimpmx/mpi/long_message.pyx",
        "        requests_decline()\n",
        "        pass\n",
        ("test_mpi_limits.py",),
    ),
    Mutation(
        "partition-there-with-its-first-bytes",
        "shrimpmx/mpi/partitioned.pyx",
        "((partition + 1) * parts.bytes - 1) // parts.setup.bytes",
        "(partition * parts.bytes) // parts.setup.bytes",
        ("test_mpi_windows.py",),
    ),
    Mutation(
        "fetched-behind-the-operation",
        "shrimpmx/mpi/window_message.pyx",
        "    if head.brief.kind == MESSAGE_FETCH:\n"
        "        pack(type, address, head.count, result)\n"
        "    if head.operation != NO_OP:\n"
        "        fold(&folding, type, address, head.count)\n",
        "    if head.operation != NO_OP:\n"
        "        fold(&folding, type, address, head.count)\n"
        "    if head.brief.kind == MESSAGE_FETCH:\n"
        "        pack(type, address, head.count, result)\n",
        ("test_mpi_windows.py",),
    ),
)


def build(packages: set[str]) -> bool:
    """Build `packages` in place, all of them if the set is empty; whether that worked."""
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace", "--parallel"]
    environment = os.environ | {"SHRIMPMX_BUILD": ",".join(sorted(packages))}
    done = subprocess.run(
        [*command, str(os.cpu_count() or 1)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        print(done.stderr, file=sys.stderr)
    return done.returncode == 0


def failing_test(tests: tuple[str, ...]) -> str | None:
    """The first of `tests` that fails, None if all pass."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-ra"]
    done = subprocess.run(
        [*command, "--timeout", str(TEST_TIMEOUT_S), *(f"tests/unit/{test}" for test in tests)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 0:
        return None
    for line in done.stdout.splitlines():
        if line.startswith("FAILED "):
            return line.split()[1].removeprefix("tests/unit/")
    if done.returncode == 1 or "Timeout" in done.stdout + done.stderr or done.returncode < 0:
        return f"{tests[0]} (ended with {done.returncode})"
    raise SystemExit(f"pytest cannot run {' '.join(tests)}:\n{done.stdout}{done.stderr}")


def attempt(mutation: Mutation, stale: str) -> str | None:
    """Make a mutation and undo it; the test that catches it, or None.

    `stale`: the package whose sources are restored, but not built since.
    """
    path = ROOT / mutation.file
    text = path.read_text()
    if text.count(mutation.old) != 1:
        raise SystemExit(
            f"{mutation.name}: its old text is {text.count(mutation.old)} times in {mutation.file}"
        )
    try:
        path.write_text(text.replace(mutation.old, mutation.new))
        if not build({mutation.package, stale or mutation.package}):
            raise SystemExit(f"{mutation.name} does not compile")
        return failing_test(mutation.tests)
    finally:
        path.write_text(text)


def main() -> int:
    """Run the mutations named on the command line, or all; 1 if one survives."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = [mutation.name for mutation in MUTATIONS]
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names)}")
    chosen = parser.parse_args().names or names
    if unknown := set(chosen) - set(names):
        parser.error(f"no mutation {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    survived = 0
    stale = ""
    try:
        for mutation in MUTATIONS:
            if mutation.name not in chosen:
                continue
            test = attempt(mutation, stale)
            stale = mutation.package
            survived += test is None
            print(f"{mutation.name}: {test or 'SURVIVES'}", flush=True)
    finally:
        build(set())
    return 1 if survived else 0


if __name__ == "__main__":
    raise SystemExit(main())
