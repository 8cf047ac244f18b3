"""The list of compiled modules: every .pyx under shrimpmx/ is one extension.

`SHRIMPMX_BUILD=wire,nic python setup.py build_ext --inplace` builds only those
packages, which is handy while working on one of them.
"""

import os
from pathlib import Path

import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup

ROOT = Path(__file__).parent
# Modules that call numpy's C interface; the others need none of its headers.
NUMPY_MODULES = {"shrimpmx.shared.numpy_memory"}
# PyDataMem_SetHandler came with this version of the interface (numpy 1.22).
NUMPY_MACROS = [("NPY_TARGET_VERSION", "NPY_1_22_API_VERSION")]
only = [name for name in os.environ.get("SHRIMPMX_BUILD", "").split(",") if name]


def extensions() -> list[Extension]:
    found = []
    for source in sorted((ROOT / "shrimpmx").rglob("*.pyx")):
        relative = source.relative_to(ROOT)
        if only and relative.parts[1] not in only:
            continue
        module = ".".join(relative.with_suffix("").parts)
        uses_numpy = module in NUMPY_MODULES
        found.append(
            Extension(
                module,
                [str(relative)],
                include_dirs=["shrimpmx", *([numpy.get_include()] if uses_numpy else [])],
                depends=[str(p.relative_to(ROOT)) for p in (ROOT / "shrimpmx").rglob("*.h")],
                define_macros=[("_GNU_SOURCE", "1"), *(NUMPY_MACROS if uses_numpy else [])],
                extra_compile_args=["-O3", "-g", "-std=gnu11", "-Wno-unused-function"],
                extra_link_args=["-pthread"],
            )
        )
    return found


setup(
    options={"build_ext": {"parallel": os.cpu_count() or 1}},
    ext_modules=cythonize(
        extensions(),
        build_dir="build/cython",
        nthreads=os.cpu_count() or 1,
        emit_linenums=True,
        quiet=True,
        compiler_directives={
            "language_level": "3",
            "boundscheck": False,
            "wraparound": False,
            "cdivision": True,
            "initializedcheck": False,
            "embedsignature": True,
            "freethreading_compatible": False,
        },
    ),
)
