"""The list of compiled modules: every .pyx under shrimpmx/ is one extension.

`SHRIMPMX_BUILD=wire,nic python setup.py build_ext --inplace` builds only those
packages, which is handy while working on one of them.
"""

import copy
import gc
import hashlib
import os
import re
import shutil
import sys
from pathlib import Path

import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT))
from shrimpmx.costs import generate as costs  # noqa: E402
from shrimpmx.mpi import generate as mpi  # noqa: E402
from shrimpmx.mpi import generate_standard as standard  # noqa: E402

# Cython's own code (memoryviews, function objects), once for all modules.
CYTHON_RUNTIME = "shrimpmx.cython_runtime"
# Modules that call numpy's C interface; the others need none of its headers.
NUMPY_MODULES = {"shrimpmx.shared.numpy_memory"}
# PyDataMem_SetHandler came with this version of the interface (numpy 1.22).
NUMPY_MACROS = [("NPY_TARGET_VERSION", "NPY_1_22_API_VERSION")]
# The libraries that programs of MPI load, not modules of Python: with MPICH's ABI, and with the
# standard one. Each has a name, a source of its own, and other names, of links: Debian's of the
# first, and that of MPICH 5.0.0 and 5.0.1 of the second.
MPI_LIBRARIES = {
    "shrimpmx.mpi.lib.libmpi": ("libmpi.so.12", "front", "libmpich.so.12"),
    "shrimpmx.mpi.lib.libmpi_abi": ("libmpi_abi.so.1", "standard", "libmpi_abi.so.0"),
}
MPI_HEADERS = ("abi.h", "embed.h", "languages.h", "large.h", "tool_types.h", "tools.h", "tracing.h")
# -g1: lines for py-spy and perf, without the variables, which take longest to track.
# Each product is rounded, also where a CPU would add to it at once: simulated runs give the same
# bytes on every machine.
COMPILE_ARGS = ["-O2", "-g1", "-std=gnu11", "-ffp-contract=off", "-Wno-unused-function"]
# A number for the sources, in each segment: processes of two builds share no memory.
STAMP, STAMP_HEADER = "shrimpmx.native.stamp", Path("shrimpmx/native/stamp.h")
COMPILED = (".pyx", ".pxd", ".h", ".c")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
only = [name for name in os.environ.get("SHRIMPMX_BUILD", "").split(",") if name]


def extension(module: str, sources: list[str]) -> Extension:
    uses_numpy = module in NUMPY_MODULES
    return Extension(
        module,
        sources,
        include_dirs=["shrimpmx", *([numpy.get_include()] if uses_numpy else [])],
        define_macros=[("_GNU_SOURCE", "1"), *(NUMPY_MACROS if uses_numpy else [])],
        extra_compile_args=COMPILE_ARGS,
        extra_link_args=["-pthread"],
    )


def extensions() -> list[Extension]:
    found = [extension(CYTHON_RUNTIME, [])]
    for source in sorted((ROOT / "shrimpmx").rglob("*.pyx")):
        relative = source.relative_to(ROOT)
        module = ".".join(relative.with_suffix("").parts)
        if not only or relative.parts[1] in only or module == STAMP:
            found.append(extension(module, [str(relative)]))
    # The stamp first: what starts while the rest is compiled is refused by older runs.
    return sorted(found, key=lambda one: one.name != STAMP)


def generated() -> dict[Path, str]:
    """The generated sources by their paths."""
    return {
        Path("shrimpmx", room, name): "\n".join(lines()) + "\n"
        for room, found in (
            ("costs", costs.GENERATED),
            ("mpi", mpi.GENERATED | standard.GENERATED),
        )
        for name, lines in found.items()
    }


def write_generated() -> None:
    """Write each generated source unless it is there already, so that no build begins anew."""
    for path, text in generated().items():
        if not path.exists() or path.read_text() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


def write_stamp() -> None:
    """The header with the hash of all sources that are compiled; it stays if they are the same."""
    written = {STAMP_HEADER, *generated()}
    sources = [
        Path("shrimpmx/mpi", f"{name}.py")
        for name in ("constants", "functions", "generate_standard", "prototypes", "standard")
    ]
    sources += [Path("shrimpmx/costs/table.py")]
    sources += [Path("shrimpmx", room, "generate.py") for room in ("costs", "mpi")]
    sources += [path for path in Path("shrimpmx").rglob("*") if path.suffix in COMPILED]
    whole = hashlib.sha256()
    for path in sorted(set(sources) - written):
        whole.update(f"{path}\n{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    text = f"#define SHRIMPMX_BUILD_STAMP 0x{whole.hexdigest()[:8]}u\n"
    if not STAMP_HEADER.exists() or STAMP_HEADER.read_text() != text:
        STAMP_HEADER.write_text(text)


def mpi_library(name: str) -> Extension:
    """A library in front of the MPI layer; it links with nothing of ours, nor with Python."""
    soname, source, _ = MPI_LIBRARIES[name]
    headers = (*MPI_HEADERS, *mpi.GENERATED, *standard.GENERATED, "front.c")
    return Extension(
        name,
        [f"shrimpmx/mpi/{each}.c" for each in (source, "embed", "tracing")],
        depends=[f"shrimpmx/mpi/{each}" for each in headers],
        include_dirs=["shrimpmx"],
        define_macros=[("_GNU_SOURCE", "1")],
        libraries=["dl"],
        extra_compile_args=[*COMPILE_ARGS, "-fvisibility=hidden"],
        # nodelete: a process that has been a rank has its handler of forks in it.
        extra_link_args=[f"-Wl,-soname,{soname}", "-Wl,-z,nodelete", "-pthread"],
    )


def with_nested_headers(headers: list[str]) -> list[str]:
    """`headers` of this project and all those that they include."""
    found: set[Path] = set()
    waiting = [Path(header) for header in headers if Path(header).is_relative_to("shrimpmx")]
    while waiting:
        header = waiting.pop()
        if header not in found and header.exists():
            found.add(header)
            names = INCLUDE.findall(header.read_text())
            places = (header.parent, Path("shrimpmx"))
            waiting += [place / name for name in names for place in places]
    return sorted(map(str, found))


class Build(build_ext):
    """Compiles by ccache if it is installed; gives MPI libraries their names and our version."""

    def get_ext_filename(self, fullname: str) -> str:
        package, _, name = fullname.rpartition(".")
        for library, (soname, *_) in MPI_LIBRARIES.items():
            if name == library.rpartition(".")[2]:
                return os.path.join(*package.split("."), soname)
        return super().get_ext_filename(fullname)

    def run(self) -> None:
        super().run()
        for name, (soname, _, other) in MPI_LIBRARIES.items():
            library = Path(self.get_ext_fullpath(name))
            if library.exists():
                link = library.with_name(other)
                link.unlink(missing_ok=True)
                link.symlink_to(soname)

    def build_extensions(self) -> None:
        version = self.distribution.get_version()
        for extension in self.extensions:
            if extension.name in MPI_LIBRARIES:
                extension.define_macros.append(("SHRIMPMX_VERSION", f'"{version}"'))
                Path("shrimpmx/mpi/lib").mkdir(exist_ok=True)
        if shutil.which("ccache"):
            self.compiler.set_executable("compiler_so", ["ccache", *self.compiler.compiler_so])
        super().build_extensions()

    def build_extension(self, extension: Extension) -> None:
        """The MPI libraries, which share sources, are compiled at the same time: each apart."""
        command = copy.copy(self)
        if extension.name in MPI_LIBRARIES:
            command.build_temp = os.path.join(self.build_temp, extension.name)
        super(Build, command).build_extension(extension)


class BuildPython(build_py):
    """Puts the scenarios into the package, where an installation finds them."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            shutil.copytree(
                "scenarios",
                Path(self.build_lib, "shrimpmx/scenarios"),
                dirs_exist_ok=True,
                ignore=shutil.ignore_patterns("__pycache__"),
            )


def main() -> None:
    # Cython's trees are full of cycles and live long: the collector took 40 % of its time.
    gc.disable()
    os.chdir(ROOT)
    write_generated()
    write_stamp()
    modules = cythonize(
        extensions(),
        build_dir="build/cython",
        nthreads=os.cpu_count() or 1,
        emit_linenums=True,
        quiet=True,
        shared_utility_qualified_name=CYTHON_RUNTIME,
        compiler_directives={
            "language_level": "3",
            "auto_pickle": False,
            "boundscheck": False,
            "wraparound": False,
            "cdivision": True,
            "initializedcheck": False,
            "embedsignature": True,
            "freethreading_compatible": False,
        },
    )
    for module in modules:
        # Cython lists the headers that a module and what it cimports name, not what those include.
        module.depends = with_nested_headers(module.depends)
    if not only or "mpi" in only:
        modules += map(mpi_library, MPI_LIBRARIES)
    setup(
        options={"build_ext": {"parallel": os.cpu_count() or 1}},
        cmdclass={"build_ext": Build, "build_py": BuildPython},
        ext_modules=modules,
    )


main()
