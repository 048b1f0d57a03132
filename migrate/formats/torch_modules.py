"""Read a model that was saved whole, `torch.save(model, …)`: the tree of its modules, as torch's state_dict goes.

Such a pickle asks for an object of each module's class, and gives its `__dict__`. Nothing is imported and no object is
made: what counts are the dicts `_parameters`, `_buffers` and `_modules` that every torch.nn.Module has, whatever its
class. So the names are those of `model.state_dict()`, unless the class has its own idea of it, which only its code
knows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...errors import BadCheckpoint, Unsupported
from .contents import MAX_NAME, MAX_TENSORS, shown
from .pickled import Call

MAX_DEPTH = 200  # modules inside one another
MAX_NAMES = 2 * MAX_TENSORS  # of modules and tensors, a shared one counted at each place where it stands
MAX_LETTERS = 64 << 20  # of all names together
TOO_MANY = "it names absurdly many modules and tensors; no model does"

DICTS = ("_parameters", "_buffers", "_modules")
# Classes that are pickled by a call of their own, and where it keeps their __dict__ or the module that they wrap.
COMPILED = "torch._dynamo.eval_frame.OptimizedModule"
TRACED = ("torch.fx.graph_module.reduce_graph_module", "torch.fx.graph_module.reduce_package_graph_module")

LAYERS = "torch.nn.modules."  # each class in here is public as torch.nn.NAME, but for these
INNER = {f"{LAYERS}linear.{name}": "torch.nn.Linear" for name in ("NonDynamicallyQuantizableLinear", "_LinearWithBias")}


class Tree(NamedTuple):
    """The tensors of a module by their names in its state dict, and the torch.nn class of each module that has one.

    The tensors are inert. owners: module path -> its class by its public name. A class of anybody else's is not in
    there: its name says nothing about its tensors, and its bases stand in its code.
    """

    entries: dict[str, Any]
    owners: dict[str, tuple[str, ...]]


def is_module(value: Any) -> bool:
    """Whether an inert value is a torch.nn.Module, whatever its class."""
    return type(value) is Call and _dicts(value) is not None


def class_name(module: Call) -> str:
    """The class of a module as the file gives it."""
    return "torch.fx.GraphModule" if module.name in TRACED else module.name


def tree(top: Call) -> Tree:
    """Go through a module as its state_dict does: own parameters, own persistent buffers, then its modules.

    Raises BadCheckpoint for a module inside itself and for absurd numbers of modules, Unsupported for one that keeps
    its tensors in another way.
    """
    found = Tree({}, {})
    names = _Names()
    looked_at: dict[int, _Parts] = {}
    around: list[int] = []  # the modules around the present one
    waiting: list[tuple[str, Any, int]] = [("", top, 0)]
    while waiting:
        path, module, depth = waiting.pop()
        del around[depth:]
        parts = looked_at.get(id(module))
        if parts is None:
            parts = looked_at[id(module)] = _checked(path, module, names)
        elif id(module) in around:
            raise BadCheckpoint(f"its module {shown(path)} stands inside itself")
        around.append(id(module))
        if owner := public_name(class_name(module)):
            found.owners[path] = (owner,)
        for name, value in parts.own:
            full = names.joined(path, name)
            if full in found.entries:
                raise BadCheckpoint(f"two of its tensors are named {shown(full)}")
            found.entries[full] = value
        if depth == MAX_DEPTH and parts.modules:
            raise BadCheckpoint(f"its modules stand more than {MAX_DEPTH} deep inside one another")
        children = [(names.joined(path, name), child, depth + 1) for name, child in parts.modules]
        waiting += reversed(children)
    return found


class _Names:
    """Makes the names, and counts: shared modules let a small file ask for any number of them."""

    def __init__(self) -> None:
        self.count, self.letters = MAX_NAMES, MAX_LETTERS

    def passed(self, count: int) -> None:
        """Count names that lead to nothing."""
        self.count -= count
        if self.count < 0:
            raise BadCheckpoint(TOO_MANY)

    def joined(self, path: str, name: Any) -> str:
        if not isinstance(name, str) or len(path) + len(name) >= MAX_NAME:
            raise BadCheckpoint(f"{ascii(name)[:80]} in its module {shown(path)} is no name of a tensor or module")
        full = f"{path}.{name}" if path else name
        self.count -= 1
        self.letters -= len(full)
        if self.count < 0 or self.letters < 0:
            raise BadCheckpoint(TOO_MANY)
        return full


def public_name(full: str) -> str | None:
    """The name under which a class of torch.nn is documented; None for any other class."""
    if full in INNER:
        return INNER[full]
    module, _, name = full.rpartition(".")
    return f"torch.nn.{name}" if module.startswith(LAYERS) and not name.startswith("_") else None


class _Parts(NamedTuple):
    """What a module has itself in its state dict, and the modules in it; None left out of both."""

    own: list[tuple[Any, Any]]
    modules: list[tuple[Any, Any]]


def _dicts(value: Call) -> list[Any] | None:
    """Parameters, buffers, modules, and the names of buffers that are not saved; None for what is no module."""
    if value.name == COMPILED and value.state is None:
        inner = value.args[0] if value.args else None
        return [{}, {}, {"_orig_mod": inner}, None] if type(inner) is Call else None
    state = value.args[0] if value.name in TRACED and value.args else value.state
    if type(state) is tuple and len(state) == 2:  # of a class with __slots__: its __dict__, then its slots
        state = state[0]
    if type(state) is not dict or any(type(state.get(key)) is not dict for key in DICTS):
        return None
    return [*(state[key] for key in DICTS), state.get("_non_persistent_buffers_set")]


def _checked(path: str, module: Any, names: _Names) -> _Parts:
    dicts = _dicts(module) if type(module) is Call else None
    if dicts is None:
        what = f"an object of {shown(module.name)}" if type(module) is Call else f"a {type(module).__name__}"
        raise Unsupported(
            f"its module {shown(path)} is {what}, which does not keep its tensors as torch.nn.Module does; "
            "save model.state_dict() instead"
        )
    if module.name.startswith("torch.") and ".quantized." in module.name:
        raise Unsupported(
            f"its module {shown(path) or 'at the top'} is a quantized {shown(module.name)}, which keeps its weights "
            "packed; save the model from before it was quantized"
        )
    parameters, buffers, modules, left_out = dicts
    left_out = _names(left_out) if buffers else ()
    names.passed(len(left_out))
    own = [*parameters.items(), *((name, value) for name, value in buffers.items() if name not in left_out)]
    found = _Parts([item for item in own if item[1] is not None], [m for m in modules.items() if m[1] is not None])
    names.passed(len(own) + len(modules) - len(found.own) - len(found.modules))
    return found


def _names(value: Any) -> set[Any]:
    """A set of names: as protocol 4 writes one, or, before that, as a call of set with a list; none in old files."""
    if type(value) is Call and value.name == "builtins.set" and len(value.args) == 1:
        value = value.args[0]
    return {name for name in value if isinstance(name, str)} if type(value) in (set, list) else set()
