"""`**kwargs` that a function only hands on to torch, written out: MindSpore calls the same arguments otherwise."""

from __future__ import annotations

import ast

from .context import Program
from .facts import Facts


def write_out(function: ast.FunctionDef, program: Program, file: str) -> None:
    """Give a function named parameters in place of a `**kwargs` that only calls of torch's get.

    The names are those that were given when it ran; one that was not always given has torch's default.
    """
    rest = function.args.kwarg
    if rest is None:
        return
    uses = [node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == rest.arg]
    calls = [node for node in ast.walk(function) if isinstance(node, ast.Call) and _word(node, rest.arg) is not None]
    ran = [call for call in calls if program.facts.callees(file, call)]
    rows = [program.row(name) for call in ran for name in program.facts.callees(file, call)]
    told = [program.facts.entries(file, word.value) for call in ran for word in [_word(call, rest.arg)] if word]
    if len(uses) != len(ran) or not rows or any(one is None for one in told):
        return
    names = dict.fromkeys(key for one in told if one is not None for key in one)
    defaults = {a.torch: a.default for row in rows if row is not None for a in row.arguments if not a.required}
    if None in rows or any(name in _parameters(function) for name in names):
        return
    kinds: dict[str, list[str]] = {}
    for name in names:
        kinds[name] = list(dict.fromkeys(kind for one in told if one is not None for kind in one.get(name, [])))
        if name in defaults and not _always(program.facts, file, ran, rest.arg, name):
            kinds[name] = list(dict.fromkeys([*kinds[name], type(defaults[name]).__name__]))
    always = [name for name in names if name not in defaults or _always(program.facts, file, ran, rest.arg, name)]
    for call in ran:
        words = [word for word in call.keywords if word.arg is not None or ast.unparse(word.value) != rest.arg]
        made = [(name, program.facts.tell(file, ast.Name(name, ast.Load()), kinds[name])) for name in names]
        call.keywords = [*words, *(ast.keyword(name, node) for name, node in made)]
    order = [*always, *(name for name in names if name not in always)]
    _declare(function, {name: kinds[name] for name in order}, defaults, always)


def _word(call: ast.Call, name: str) -> ast.keyword | None:
    rest = (word for word in call.keywords if word.arg is None and isinstance(word.value, ast.Name))
    return next((word for word in rest if ast.unparse(word.value) == name), None)


def _always(facts: Facts, file: str, calls: list[ast.Call], rest: str, name: str) -> bool:
    words = [word for call in calls for word in [_word(call, rest)] if word is not None]
    return all(f'"{name}": ' in kind for word in words for kind in facts.kinds(file, word.value))


def _parameters(function: ast.FunctionDef) -> set[str]:
    arguments = function.args
    return {item.arg for item in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}


def _declare(
    function: ast.FunctionDef, kinds: dict[str, list[str]], defaults: dict[str, object], always: list[str]
) -> None:
    """Add the parameters to the signature: behind the others, or by name alone where the order does not allow that."""
    arguments = function.args
    arguments.kwarg = None
    named = bool(arguments.vararg or arguments.kwonlyargs or (arguments.defaults and always))
    for name, found in kinds.items():
        argument = ast.arg(name, ast.parse(_hint(found), mode="eval").body)
        default = None if name in always else ast.parse(repr(defaults[name]), mode="eval").body
        if named:
            arguments.kwonlyargs.append(argument)
            arguments.kw_defaults.append(default)
        else:
            arguments.args.append(argument)
            arguments.defaults += [] if default is None else [default]


def _hint(kinds: list[str]) -> str:
    words = [kind.replace("NoneType", "None").replace("tuple(int)", "tuple[int, ...]") for kind in kinds]
    plain = ("int", "float", "bool", "str", "None", "tuple[int, ...]")
    return " | ".join(words) if all(word in plain for word in words) else "Any"
