"""shrimpmx: an emulator of the receive path of message passing over Ethernet."""

from __future__ import annotations

import sys

# Each rank loads this: `typing` would take it as long as five modules.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from typing import Any, Literal

    from shrimpmx.cluster.rank.session import RankSession
    from shrimpmx.experiment.scenario import Scenario
    from shrimpmx.notebook.results import Explored, Fitted, Result


# The library of the compiled modules, and its package.
_OF_LIBRARY = (f"{__name__}.native", f"{__name__}.native.compiled")


class _CompiledModules:
    """Finds the compiled modules in their one library. One that was built by itself comes first."""

    @staticmethod
    def find_spec(name: str, *_: object) -> ModuleSpec | None:
        if not name.startswith(f"{__name__}.") or name in _OF_LIBRARY:
            return None
        try:
            import shrimpmx.native.compiled as compiled
        except ModuleNotFoundError:
            return None
        if not compiled.has(name):
            return None
        assert __spec__ is not None
        spec = type(__spec__)(name, compiled, origin=compiled.__file__)  # type: ignore[arg-type]
        spec.has_location = True
        return spec


sys.meta_path.append(_CompiledModules)


def join() -> RankSession:
    """This process as the rank that it was started as: `with shrimpmx.join() as rank:`.

    See shrimpmx.cluster.rank.joining for what a rank has.
    """
    # Loaded on use: no command but a rank's program needs it.
    from shrimpmx.cluster.rank import joining

    return joining.join()


def mpirun(program: str | Sequence[str], n: int, **options: Any) -> Result:
    """Run an MPI program on `n` ranks, keep its result, and return it.

    `shrimpmx.mpirun("python ring.py", 4, coalescing="stream")`; see shrimpmx.notebook.mpirun.
    """
    from shrimpmx import notebook

    return notebook.mpirun(program, n, **options)


def explore(program: str | Sequence[str], n: int, **options: Any) -> Explored:
    """Find out which coalescing, placement and waiting suits an MPI program, and keep the result.

    `shrimpmx.explore("python ring.py", 4, engine="simulated")`; see shrimpmx.notebook.explore.
    """
    from shrimpmx import notebook

    return notebook.explore(program, n, **options)


def fit(
    measurements: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    **options: Any,
) -> Fitted:
    """Find the costs of hosts that explain measurements, keep them as a platform, and return both.

    `shrimpmx.fit("cluster.csv", "cluster.toml")`; see shrimpmx.notebook.fit.
    """
    from shrimpmx import notebook

    return notebook.fit(measurements, output, **options)


def load(path: str | os.PathLike[str]) -> Result:
    """A stored result, from its directory or its run.json, for a script or a notebook.

    See shrimpmx.notebook for what it has. InputError if it is missing or damaged.
    """
    from shrimpmx import notebook

    return notebook.load(path)


def run(
    scenario: Scenario | str | os.PathLike[str],
    *,
    engine: Literal["forked", "simulated"] = "forked",
    seed: int = 1,
    output: str | os.PathLike[str] | None = None,
    **settings: Any,
) -> Result:
    """Run a scenario, keep its result below ./results or in `output`, and return it.

    `shrimpmx.run("smoke/pingpong", size_bytes=[0, 128], repeats=5)`; see shrimpmx.notebook.run.
    """
    from shrimpmx import notebook

    return notebook.run(scenario, engine=engine, seed=seed, output=output, **settings)
