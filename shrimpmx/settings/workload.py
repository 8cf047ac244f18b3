"""The work of the ranks."""

from __future__ import annotations

import re
import shlex
import sys
from typing import Any, Literal

from shrimpmx.settings.declared import Declared, Field, Text

# In the arguments of a program, what stands for a parameter that is set.
SIZE_IN_ARGUMENTS = "{size_bytes}"
# The n-th word of a program's arguments, in its path; and programs that come with shrimpmx.
WORD_IN_PROGRAM = r"\{([1-9]\d?)\}"
APPLICATIONS = "shrimpmx.applications."
# Workloads that are a user's programs.
PROGRAMS = ("program", "mpi")
# The largest message that a workload sends: four fill a rank's heap as it is by default (ours).
MESSAGE_MAX_BYTES = 64 << 20


class WorkloadParameters(Declared):
    """The work of the ranks."""

    kind: Literal[
        "pingpong",
        "stream",
        "anatomy",
        "flags",
        "arrivals",
        "ttcp",
        "file-service",
        "program",
        "mpi",
    ] = Field(
        "pingpong",
        description="the ranks' loop: 'pingpong'; 'stream'; 'anatomy', one message at a time, "
        "with all its packets counted; 'program', a Python file; 'mpi', an MPI program; with a "
        "vmmc NIC also 'flags', waits for any of many flags; 'arrivals', waits of random length; "
        "'ttcp', one-way over sockets; 'file-service', blocks from the other node's cache",
    )
    program: Text = Field(
        "",
        description="path of the Python file of workload 'program'; executable of workload "
        "'mpi', where {1} stands for the first word of the arguments, {2} for the second ..., or "
        "shrimpmx.applications.imb or .nas",
    )
    arguments: Text = Field(
        "",
        description="the program's arguments, split as by a shell; {size_bytes} stands for that "
        "parameter, if set",
    )
    script: Text = Field(
        "",
        description="shell script (sh) that starts workload 'mpi' in each rank, by "
        '`exec "$@"`; {size_bytes} stands for that parameter, if set',
    )
    size_bytes: int = Field(0, ge=0, le=MESSAGE_MAX_BYTES, description="message length, bytes")
    iterations: int = Field(
        200, ge=1, le=100_000_000, description="round trips, or messages of a stream"
    )
    warmup: int = Field(
        20, ge=0, le=10_000_000, description="untimed iterations before the timed ones"
    )
    delay_us: int = Field(
        0,
        ge=0,
        le=1_000_000,
        description="computing before each send, us (waiting, Fig. 2); with workload 'anatomy' "
        "the pause after each message, lengthened by up to a half",
    )
    delay_max_us: int = Field(
        0,
        ge=0,
        le=1_000_000,
        description="longest computing before a send, us, drawn evenly from delay_us on; 0: "
        "always delay_us (waiting, Fig. 3: 0 to 300)",
    )
    arrivals: Literal["fixed", "uniform", "exponential", "bimodal", "adversary"] = Field(
        "uniform",
        description="distribution of the arrival delays of workload 'arrivals', with mean "
        "delay_us; 'adversary': each just beyond the spin limit",
    )
    move_every: int = Field(
        0,
        ge=0,
        le=100_000_000,
        description="round trips of a ping-pong between moves of a rank to its node's next core; "
        "0: no moves",
    )
    flags: int = Field(
        8, ge=1, le=4096, description="flags of workload 'flags', any of which ends a wait"
    )
    threads: int = Field(
        4, ge=1, le=64, description="user-level threads per process of the file service"
    )
    window: int = Field(
        256, ge=1, le=4096, description="messages in flight, and receives posted, in a stream"
    )
    frames: Literal["messages", "invalid"] = Field(
        "messages",
        description="frames of a generator: 'messages'; or 'invalid', packets dropped by the "
        "receive handler (coalescing, IV-B2)",
    )
    other_rate: int = Field(
        0,
        ge=0,
        le=10_000_000,
        description="unmarked packets of another protocol per second, from a generator, in "
        "addition to its stream; 0: none (coalescing, VI)",
    )
    other_window: int = Field(
        0,
        ge=0,
        le=1024,
        description="unanswered packets of the other protocol, in place of other_rate: the "
        "receiver's handler answers each packet, as in TCP; 0: other_rate applies",
    )
    other_bytes: int = Field(
        1000, ge=60, le=1500, description="frame length of the other protocol, bytes"
    )

    @property
    def words(self) -> list[str]:
        """The program's arguments. ValueError if a quotation has no end."""
        return [self._with_size(word) for word in shlex.split(self.arguments)]

    @property
    def start(self) -> tuple[str, ...]:
        """The words that start an MPI program, without its arguments. ValueError if its path names
        a word that these do not have.
        """
        if self.program.startswith(APPLICATIONS):
            return (sys.executable, "-P", "-m", self.program)
        words = self.words

        def word(match: re.Match[str]) -> str:
            if int(match[1]) > len(words):
                raise ValueError(
                    f"program {self.program!r} needs word {match[1]} of arguments; number of words "
                    f"given: {len(words)}"
                )
            return words[int(match[1]) - 1]

        return (re.sub(WORD_IN_PROGRAM, word, self.program),)

    @property
    def command(self) -> tuple[str, ...]:
        """The command line of an MPI program's rank. ValueError as `start` and `words`."""
        shell = ("sh", "-c", self._with_size(self.script), "sh") if self.script else ()
        return (*shell, *self.start, *self.words)

    def _with_size(self, text: str) -> str:
        if "size_bytes" not in self.model_fields_set:
            return text
        return text.replace(SIZE_IN_ARGUMENTS, str(self.size_bytes))

    @property
    def options(self) -> dict[str, Any]:
        """What a rank's workload goes by: most parameters by their names, times in ns."""
        return {
            "size_bytes": self.size_bytes,
            "iterations": self.iterations,
            "warmup": self.warmup,
            "window": self.window,
            "delay_ns": self.delay_us * 1000,
            "delay_max_ns": self.delay_max_us * 1000,
            "move_every": self.move_every,
            "arrivals": self.arrivals,
            "flags": self.flags,
            "threads": self.threads,
        }
