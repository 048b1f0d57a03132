"""torch's compiler, not imported until somebody compiles: its import takes nearly as long as all the rest of torch's.

Every step of an optimizer imports it, to say where it must not look, and so does torchvision. While nobody compiles
nothing has to look away, so a module stands in its place that takes these calls. Whoever uses anything else of it, or
one of its parts, gets torch's own, which from then on is there as if it had been imported first.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from types import ModuleType
from typing import Any

NAME = "torch._dynamo"
UTILITIES = f"{NAME}.utils"


def defer() -> None:
    """Let torch's compiler be imported when it is used; of a process that has it already nothing changes."""
    if NAME in sys.modules:
        return
    spec = find_spec(NAME)
    if spec is not None:
        finder = _Finder()
        sys.meta_path.insert(0, finder)
        sys.modules[NAME] = _Deferred(finder, spec, graph_break=_nothing, disable=finder.disable)
        sys.modules[UTILITIES] = _Deferred(finder, PathFinder.find_spec(UTILITIES, spec.submodule_search_locations))


def _nothing(*args: Any, **kwargs: Any) -> None:
    """Nothing is traced that could be broken off."""


class _Deferred(ModuleType):
    """A module in the place of torch's; says: what it can answer itself until that is there."""

    def __init__(self, finder: _Finder, spec: ModuleSpec | None, **says: Callable[..., Any]) -> None:
        assert spec is not None
        super().__init__(spec.name)
        about: dict[str, Any] = {"__spec__": spec, "__file__": spec.origin, "__path__": [], "_finder": finder}
        vars(self).update(about, **says)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # which who goes through all modules asks
            raise AttributeError(name)
        if (self.__name__, name) == (UTILITIES, "is_compile_supported") and self._finder.waits:  # torchvision keeps it
            return lambda *args: getattr(self._finder.own(UTILITIES), name)(*args)
        return getattr(self._finder.own(self.__name__), name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("__"):
            vars(self)[name] = value
        else:
            setattr(self._finder.own(self.__name__), name, value)


class _Finder(MetaPathFinder, Loader):
    """Finds the compiler's parts, each as it is once torch's own is imported."""

    def __init__(self) -> None:
        self.disabled: list[Any] = []  # functions that torch keeps from it
        self.specs: dict[str, ModuleSpec | None] = {}

    @property
    def waits(self) -> bool:
        """Whether torch's own is still to be imported."""
        return self in sys.meta_path

    def own(self, name: str) -> ModuleType:
        """torch's own module of a name, imported now."""
        if self.waits:
            sys.meta_path.remove(self)
            for stand_in in (sys.modules.pop(NAME), sys.modules.pop(UTILITIES)):
                for said in ("graph_break", "disable"):
                    vars(stand_in).pop(said, None)
            for function in self.disabled:  # of which torch has noted that they need no further word
                vars(function).pop("__dynamo_disable", None)
            importlib.import_module(NAME)
        return importlib.import_module(name)

    def disable(self, fn: Any = None, *args: Any, **kwargs: Any) -> Any:
        """The function as it is, for torch's own files; anybody else means the compiler."""
        if not callable(fn) or sys._getframe(1).f_globals.get("__name__") != "torch._compile":
            return self.own(NAME).disable(fn, *args, **kwargs)
        self.disabled.append(fn)
        return fn

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """The spec of a part, which is imported with the compiler or on its own."""
        if not fullname.startswith(f"{NAME}."):
            return None
        whole = self.own(NAME)
        if fullname not in sys.modules:
            return PathFinder.find_spec(fullname, whole.__path__)
        return ModuleSpec(fullname, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The part that is there."""
        found = sys.modules[spec.name]
        self.specs[spec.name] = found.__spec__
        return found

    def exec_module(self, module: ModuleType) -> None:
        """It has run; its spec is its own again."""
        module.__spec__ = self.specs[module.__name__]
