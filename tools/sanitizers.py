"""The unit suite over compiled code with AddressSanitizer and UndefinedBehaviorSanitizer.

    python tools/sanitizers.py                     # tests/unit, two at a time
    python tools/sanitizers.py tests/unit/test_mx_eager.py -k tiny

Builds a copy of the project in build/sanitized, 10 minutes of CPU time at first, and runs pytest
there with these words. Prints each report of a sanitizer; exit code 1 if there is one, or a test
fails. `tools/schedules.py --sanitize` builds with them, too. Either first sees both sanitizers
report a planted error in the code that it has built.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build/sanitized"
# Not the stack: greenlets copy theirs, red zones included. x86-64 reads words at any address.
# Python's own -fwrapv would hide sums that overflow.
FLAGS = "-fsanitize=address,undefined --param asan-stack=0 -fno-sanitize=alignment -fno-wrapv"
TIMEOUT_S = 600
# So much longer tests have.
PATIENCE = "5"
# Tests of what the sanitizers replace: libraries to link with, the C library's allocator, limits of
# addresses, of which AddressSanitizer takes terabytes.
REPLACED = (
    "test_mpi_front.py::test_the_library_exports_each_function_by_two_names_and_nothing_else",
    "test_mpi_front.py::test_the_library_needs_nothing_but_the_c_library",
    "test_cli_surroundings.py::test_a_limit_of_addresses_is_one_sentence",
    "test_mx_sandbox.py::test_closing_frees_kept_messages_beyond_the_arena",
)
# Each sanitizer has its own copy of the code that opens reports, and both tell only the first one's
# where. This tells the second one's.
SECOND = """
#include <dlfcn.h>
#include <stdlib.h>
__attribute__((constructor)) static void tell(void) {
    void *second = dlopen(getenv("SECOND_SANITIZER"), RTLD_NOW | RTLD_NOLOAD);
    void (*set)(const char *) = second ? dlsym(second, "__sanitizer_set_report_path") : 0;
    if (set)
        set(getenv("SECOND_REPORT"));
}
"""
# A shift by too much, a sum that overflows, and a ring whose slots lie before its memory.
PLANTED_C = "int planted(int bits) { return (1 << bits) + (0x7fffffff + bits); }"
PLANTED = """
import ctypes, os, sys
ctypes.CDLL(sys.argv[1]).planted(40)
if scheduler := os.environ.get("SHRIMPMX_SCHEDULER"):
    ctypes.CDLL(scheduler, mode=ctypes.RTLD_GLOBAL)
from shrimpmx.native.ring import RingView, ring_bytes
memory = bytearray(ring_bytes(8, 64))
ring = RingView.create(memory, 8, 64)
memory[264:272] = (-64).to_bytes(8, "little", signed=True)
ring.push(b"planted")
"""
FOUND = (
    "runtime error: shift exponent 40",
    "runtime error: signed integer overflow",
    "AddressSanitizer: heap-buffer-overflow",
    "ring.pyx",
)


def environment(reports: Path) -> dict[str, str]:
    """The environment for processes with such code, whose reports go to files named `reports`.*"""
    first, second = (
        subprocess.run(
            ["gcc", f"-print-file-name=lib{name}.so"], check=True, capture_output=True, text=True
        ).stdout.strip()
        for name in ("asan", "ubsan")
    )
    # Python frees little at its end, and its own allocator hides what lies behind a block.
    asan = "detect_leaks=0:handle_segv=0:allow_user_segv_handler=1:allocator_may_return_null=1"
    teller = library(reports.with_name("second.so"), SECOND)
    return {
        **os.environ,
        "LD_PRELOAD": f"{first}:{second}:{teller}",
        "ASAN_OPTIONS": f"{asan}:log_path={reports}",
        "UBSAN_OPTIONS": f"print_stacktrace=1:log_path={reports}",
        "SECOND_SANITIZER": second,
        "SECOND_REPORT": f"{reports}.second",  # or one of a process removes the other
        "PYTHONMALLOC": "malloc",
        "SHRIMPMX_TEST_PATIENCE": os.environ.get("SHRIMPMX_TEST_PATIENCE", PATIENCE),
    }


def library(path: Path, text: str, *flags: str) -> Path:
    """Compile C to a shared library."""
    command = ["gcc", *flags, "-fPIC", "-shared", "-x", "c", "-", "-o", str(path)]
    subprocess.run(command, check=True, input=text.encode())
    return path


def told(reports: Path) -> str:
    """What the sanitizers have reported there."""
    found = sorted(reports.parent.glob(f"{reports.name}.*"))
    return "\n".join(path.read_text(errors="replace") for path in found)


def prove(tree: Path) -> None:
    """Raise SystemExit unless the sanitizers report planted errors, one in the code of `tree`."""
    with tempfile.TemporaryDirectory() as scratch:
        reports = Path(scratch, "report")
        flags = f"{sysconfig.get_config_var('CFLAGS')} {FLAGS}".split()
        planted = library(Path(scratch, "planted.so"), PLANTED_C, *flags)
        run = {**environment(reports), "PYTHONPATH": str(tree)}
        command = [sys.executable, "-c", PLANTED, str(planted)]
        subprocess.run(command, cwd=tree, env=run, check=False)
        said = told(reports)
    missing = [found for found in FOUND if found not in said]
    if missing:
        raise SystemExit(
            f"the sanitizers say nothing of a planted error ({'; '.join(missing)}): "
            f"their silence about anything else proves nothing\n{said}"
        )


def built() -> None:
    """Bring the sanitized copy up to date."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    names = {name for name in listed.stdout.splitlines() if (ROOT / name).is_file()}
    copied = BUILD / "copied.txt"
    for name in set(copied.read_text().splitlines()) - names if copied.exists() else ():
        (BUILD / name).unlink(missing_ok=True)
    for name in names:
        source, target = ROOT / name, BUILD / name
        if not (target.exists() and target.read_bytes() == source.read_bytes()):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
    copied.write_text("\n".join(sorted(names)))
    words = ["setup.py", "--quiet", "build_ext", "--inplace", "--parallel", str(os.cpu_count())]
    flagged = {**os.environ, "CFLAGS": FLAGS}
    subprocess.run([sys.executable, *words], cwd=BUILD, check=True, env=flagged)


def main(words: list[str]) -> int:
    """Build, and run pytest with these words; the exit code."""
    built()
    prove(BUILD)
    words = words or ["-n", "2", "--dist", "loadfile", "tests/unit"]
    with tempfile.TemporaryDirectory() as scratch:
        reports = Path(scratch, "report")
        command = [sys.executable, "-m", "pytest", "-q", "-o", f"timeout={TIMEOUT_S}"]
        command += [f"--deselect=tests/unit/{test}" for test in REPLACED] + words
        run = {**environment(reports), "PYTHONPATH": str(BUILD)}
        code = subprocess.run(command, cwd=BUILD, env=run).returncode
        said = told(reports)
    print(said or "no report of a sanitizer")
    return int(code != 0 or said != "")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
