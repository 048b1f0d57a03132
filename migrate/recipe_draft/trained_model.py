"""Which of a script's models is trained: the one whose parameters the optimizer gets."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import combinations

from ...mappings.aliases import restated
from ..library_names import MODULE, is_class
from ..read_script.abstract_values import LibraryObject, LibraryUse, ScriptObject, Value
from ..read_script.interpreter import OPTION, UNCALLED, Interpreter
from .data_flow import FUNCTIONS
from .recipe_entries import by_sureness, calls, distinct, of_made_classes, surely


def makes_model(seen: LibraryUse) -> bool:
    """Whether a call makes one of torchvision's or timm's models."""
    made_by = ("torchvision.models.", "timm.create_model", "timm.models.", "torch.hub.load")
    named = seen.name.rpartition(".")[2]
    called = any(n.startswith(made_by) and ".utils." not in n for n in restated(seen.name)) and not seen.receiver
    return called and not is_class(named) and not named.startswith(("load_", "list_"))


def unwrapped(value: Value | None) -> Value | None:
    """The model inside of its wrappers."""
    while isinstance(value, LibraryObject) and isinstance(value.of, (LibraryObject, ScriptObject)):
        value = value.of
    return value


def several_train(interpreter: Interpreter) -> bool:
    """Whether more than one optimizer may train at once, other than alternatives under a condition."""
    found = distinct(surely(calls(interpreter, "optimizer")))
    return any(not either(one, other) for one, other in combinations(found, 2))


def trained(interpreter: Interpreter) -> Value | None:
    """The model whose parameters the optimizer gets; without an optimizer, the only one that is made."""
    if several_train(interpreter):
        return None
    owners = [_owner(interpreter, seen) for seen in distinct(surely(calls(interpreter, "optimizer")))]
    if any(owner is not None for owner in owners):
        return owners[0] if all(owner is owners[0] for owner in owners) else None
    zoo = distinct(surely(by_sureness(s for s in interpreter.seen if s.arguments is not None and makes_model(s))))
    zoo = [seen for seen in zoo if not _is_part(interpreter, seen)]
    zoo = of_made_classes(interpreter, zoo)
    if len(zoo) == 1:
        made = interpreter.values.get(id(zoo[0].node), (0, None))[1]
        return made if isinstance(made, LibraryObject) and made.seen is not None else None
    own = [made for made in interpreter.made if made.of.family() == MODULE and made.node is not None]
    parts = _put_into_others(interpreter) if own else set()  # this searches every statement
    own = [made for made in own if id(made.node) not in parts]
    sure = list({id(made.node): made for made in own if made.certainty not in (OPTION, UNCALLED)}.values())
    return sure[0] if len(sure) == 1 and not _another_is_read(interpreter, sure[0]) else None


def _another_is_read(interpreter: Interpreter, made: ScriptObject) -> bool:
    """Whether a script reads the parameters of a model that is not known, and not those of this one."""
    nodes = (node for module in interpreter.files.values() for node in ast.walk(module.scope.source.tree))
    owners = [one.value for one in nodes if isinstance(one, ast.Attribute) and one.attr == "parameters"]
    values = [unwrapped(interpreter.values.get(id(one), (0, None))[1]) for one in owners]
    known = [isinstance(one, ScriptObject) or getattr(one, "seen", None) is not None for one in values]
    return all(value is not made for value in values) and not all(known)


def _owner(interpreter: Interpreter, seen: LibraryUse) -> Value | None:
    """The model whose parameters an optimizer gets."""
    given = [argument.node for argument in seen.arguments or [] if argument.name in (None, "params")]
    waiting, done = [all_handed_over(interpreter, node) for node in given] or [seen.node], set[str]()
    while waiting:
        parts = [part for node in waiting for part in ast.walk(node)]
        for inner in parts:
            of = inner.value if isinstance(inner, ast.Attribute) and "parameters" in inner.attr else inner
            for candidate in (of, *(name for name in ast.walk(of) if isinstance(name, ast.Name))):
                value = unwrapped(interpreter.values.get(id(candidate), (0, None))[1])
                if isinstance(value, ScriptObject) and value.of.family() == MODULE:
                    return value
                made = value.seen if isinstance(value, LibraryObject) and value.family == MODULE else None
                if made is not None and not made.name.endswith(("ParameterList", "ParameterDict")):
                    return value
        called = {part.id: part for part in parts if isinstance(part, ast.Name) and part.id not in done}
        done |= called.keys()
        waiting = [value for name in called.values() for value in _gathered(interpreter, name)]
    return None


def _gathered(interpreter: Interpreter, name: ast.Name) -> Iterator[ast.expr]:
    """What a name is assigned, or extended by, above the place where it is read, in the same function."""
    trees = (module.scope.source.tree for module in interpreter.files.values())
    tree = next((tree for tree in trees if any(node is name for node in ast.walk(tree))), ast.Module([], []))
    around = [one for one in ast.walk(tree) if isinstance(one, FUNCTIONS) and any(n is name for n in ast.walk(one))]
    for node in ast.walk(around[-1] if around else tree):
        match node:
            case (
                ast.Assign([ast.Name(named)], value)
                | ast.AugAssign(ast.Name(named), _, value)
                | ast.Call(ast.Attribute(ast.Name(named), "append" | "extend"), [value])
            ) if named == name.id and node.lineno < name.lineno:
                yield value


def all_handed_over(interpreter: Interpreter, node: ast.expr) -> ast.expr:
    """The call `model.parameters()`, in list(…), in a choice of those that train, or where the name is a parameter for
    it; else the expression itself."""
    behind: list[ast.expr] = []
    match node:
        case ast.Call(ast.Name("list" | "tuple" | "iter"), [of]) | ast.Call(
            ast.Name("filter"), [ast.Lambda(_, ast.Attribute(_, "requires_grad")), of]
        ):
            behind = [of]
        case ast.ListComp(ast.Name(kept), [one]) | ast.GeneratorExp(ast.Name(kept), [one]):
            trains = all(isinstance(test, ast.Attribute) and test.attr == "requires_grad" for test in one.ifs)
            behind = [one.iter] if trains and getattr(one.target, "id", "") == kept else []
        case ast.Name():
            value = interpreter.values.get(id(node), (0, None))[1]
            seen = value.seen if isinstance(value, LibraryObject) else None
            behind = [seen.node] if seen is not None else list(_gathered(interpreter, node))
    found = all_handed_over(interpreter, behind[0]) if len(behind) == 1 and behind[0] is not node else node
    called = found.func if isinstance(found, ast.Call) else None
    return found if isinstance(called, ast.Attribute) and called.attr == "parameters" else node


def _is_part(interpreter: Interpreter, seen: LibraryUse) -> bool:
    """Whether a model is made inside of a class of models of the script, of which an object is made."""
    line = seen.node.lineno
    for node in ast.walk(seen.source.tree):
        if isinstance(node, ast.ClassDef) and node.lineno <= line <= (node.end_lineno or line):
            of = next((made.of for made in interpreter.made if made.of.node is node), None)
            if of is not None and (of.library_base() or "").startswith("torch.nn."):
                return True
    return False


def _put_into_others(interpreter: Interpreter) -> set[int]:
    """The calls of the script's statements that make a part of another object: model.head = Head(…)."""
    found: set[int] = set()
    for module in interpreter.files.values():
        for node in ast.walk(module.scope.source.tree):
            targets = node.targets if isinstance(node, ast.Assign) else []
            parts = (one for one in targets if isinstance(one, ast.Attribute))
            if any(not (isinstance(one.value, ast.Name) and one.value.id in ("self", "cls")) for one in parts):
                found |= {id(part) for part in ast.walk(node) if isinstance(part, ast.Call)}
    return found


def either(one: LibraryUse, other: LibraryUse) -> bool:
    """Whether two calls are in the two branches of an undecided condition."""
    mine, others = set((one.condition or "").split(" and ")), set((other.condition or "").split(" and "))
    return any(f"not ({text})" in b for a, b in ((mine, others), (others, mine)) for text in a)
