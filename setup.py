"""The list of compiled modules: every .pyx under shrimpmx/ is one, and all are in one library.

`SHRIMPMX_BUILD=wire,nic python setup.py build_ext --inplace` builds only those packages, each
module as a library of its own, which comes before the one of all: for a build with other flags.
The next build of all removes them.
"""

import copy
import gc
import hashlib
import os
import re
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.modified import newer_group

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT))
from shrimpmx.costs import generate as costs  # noqa: E402
from shrimpmx.mpi import generate as mpi  # noqa: E402
from shrimpmx.mpi import generate_standard as standard  # noqa: E402

# Cython's own code (memoryviews, function objects), once for all modules.
CYTHON_RUNTIME = "shrimpmx.cython_runtime"
# The library of all modules, and the list of them that it is compiled with.
COMPILED_LIBRARY = "shrimpmx.native.compiled"
MODULES_HEADER = Path("build/cython/modules.h")
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
    found = []
    for source in sorted((ROOT / "shrimpmx").rglob("*.pyx")):
        relative = source.relative_to(ROOT)
        module = ".".join(relative.with_suffix("").parts)
        if not only or relative.parts[1] in only:
            found.append(extension(module, [str(relative)]))
    names = {one.name for one in found}
    if found and STAMP not in names:
        found.append(extension(STAMP, [f"{STAMP.replace('.', '/')}.pyx"]))
    # The stamp first: what starts while the rest is compiled is refused by older runs.
    found.sort(key=lambda one: one.name != STAMP)
    return [extension(CYTHON_RUNTIME, []), *found] if found else []


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


def library_of(modules: list[Extension]) -> Extension:
    """One library of all modules: a process that needs eighty is ready a quarter sooner."""
    rows = []
    for module in modules:
        function = f"PyInit_{module.name.rpartition('.')[2]}"
        own = f"PyInit_{module.name.replace('.', '__')}"  # modules of several packages have a name
        module.define_macros.append((function, own))
        rows.append(f'MODULE("{module.name}", {own})')
    text = "\n".join(rows) + "\n"
    if not MODULES_HEADER.exists() or MODULES_HEADER.read_text() != text:
        MODULES_HEADER.write_text(text)
    library = extension(COMPILED_LIBRARY, ["shrimpmx/native/compiled.c"])
    library.depends = [str(MODULES_HEADER)]
    library.include_dirs.append(str(MODULES_HEADER.parent))
    library.extra_link_args.append("-Wl,-Bsymbolic")
    library.modules = modules
    return library


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
    """Compiles by ccache if it is installed; links the modules into one library; gives MPI
    libraries their names and our version.
    """

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
        for library in self.extensions:
            if modules := getattr(library, "modules", []):
                workers = os.cpu_count() if self.parallel is True else self.parallel or 1
                with ThreadPoolExecutor(workers) as pool:
                    library.extra_objects = list(pool.map(self._compiled, modules))
                library.depends += library.extra_objects
        super().build_extensions()

    def build_extension(self, extension: Extension) -> None:
        """The MPI libraries, which share sources, are compiled at the same time: each apart."""
        command = copy.copy(self)
        if extension.name in MPI_LIBRARIES:
            command.build_temp = os.path.join(self.build_temp, extension.name)
        super(Build, command).build_extension(extension)

    def _compiled(self, module: Extension) -> str:
        """The object of a module, compiled unless it is up to date. One that was linked by itself
        comes before the library: it is removed.
        """
        for place in (self.build_lib, os.curdir):
            Path(place, self.get_ext_filename(module.name)).unlink(missing_ok=True)
        directory = os.path.join(self.build_temp, "joined")
        [compiled] = self.compiler.object_filenames(module.sources, output_dir=directory)
        if self.force or newer_group([*module.sources, *module.depends], compiled):
            self.compiler.compile(
                module.sources,
                output_dir=directory,
                macros=module.define_macros,
                include_dirs=module.include_dirs,
                debug=self.debug,
                extra_postargs=module.extra_compile_args,
            )
        return compiled


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
    libraries = modules if only else [library_of(modules)]
    if not only or "mpi" in only:
        libraries += map(mpi_library, MPI_LIBRARIES)
    setup(
        options={"build_ext": {"parallel": os.cpu_count() or 1}},
        cmdclass={"build_ext": Build, "build_py": BuildPython},
        ext_modules=libraries,
    )


main()
