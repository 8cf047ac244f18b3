"""A rank's heap for the arrays of numpy, which its program may load later, or never: to load numpy
takes as long as all else that a rank of Python does before its work.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

from shrimpmx.shared.heap import Heap

NUMPY = "numpy"


class ArraysIn:
    """While entered, arrays lie in the heap, those of the thread that loads numpy first."""

    def __init__(self, heap: Heap) -> None:
        self._heap = heap
        self._stack = contextlib.ExitStack()
        self._finder = _Finder(self._begin)

    def __enter__(self) -> None:
        if NUMPY in sys.modules:
            self._begin()
        else:
            sys.meta_path.insert(0, self._finder)

    def __exit__(self, *exception: object) -> None:
        self._finder.leave()
        self._stack.close()

    def _begin(self) -> None:
        self._stack.enter_context(self._heap.use_for_numpy())


class _Finder:
    """Finds numpy as the other finders do, and has `begin` called once it is loaded."""

    def __init__(self, begin: Callable[[], None]) -> None:
        self._begin = begin

    def leave(self) -> None:
        """Find nothing any more."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """As a finder's."""
        if name != NUMPY:
            return None
        self.leave()
        found = (finder.find_spec(name, path, target) for finder in sys.meta_path)
        spec = next(filter(None, found), None)
        if spec is None or spec.loader is None:
            return spec
        loader, load = spec.loader, spec.loader.exec_module

        def load_and_begin(module: ModuleType) -> None:
            del loader.exec_module  # what follows is the loader's own again
            load(module)
            self._begin()

        loader.exec_module = load_and_begin  # type: ignore[method-assign]
        return spec
