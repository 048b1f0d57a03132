"""Compare the new model with torch's, unchanged and with other arguments: both compute the same, or the new one raises.

A class can do more than the one object that ran. For each argument of the model's class, and each field of its
configuration, that is a number, a string or a boolean, both models are made with another value and run on the same
weights and inputs; and they run without inputs that are optional, and with other values of those that are plain. The
same is done with the classes inside of the model, each alone, on what it gets in the model.
"""

from __future__ import annotations

import ast
import itertools
import json
import textwrap
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..checkpoint.convert import convert
from ..model_spec import ask, ask_worker
from ..source_files import SourceFiles, defaults_of, literal
from .observe.observations import NONE, Items, Made, Reference, constants_of, kinds_of, to_json

TORCH, MINDSPORE = (f"source.observe.{name}_variations_worker" for name in ("torch", "mindspore"))
MOST = 12  # variations of one model
MOST_OF_PARTS = 40  # and of the classes inside of it
SECONDS = 60.0  # after which no further variation is begun in MindSpore
NOISE, LEAST = 50, 2e-4  # tolerance: times torch's own noise, and as a share of the largest value
BLIND = 0.002  # torch's own noise, as a share of the largest value, above which the tolerance would hide too much
ROUGH = 0.05  # tolerance of the gradient's norm, which kinks change, as a share of it


@dataclass(frozen=True)
class Variation:
    """One way of making the model: in words, its construction, how many inputs are left out, the body of MindSpore's
    function, and the argument that is another, with the class or function that takes it. part: the path of the module
    inside that is made instead, and `within` its class; words: inputs that are given by name."""

    text: str
    made: Made | None = None
    without: int = 0
    source: str = ""
    of: str = ""
    argument: str = ""
    part: str = ""
    within: str = ""
    words: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Tried:
    """The result of a variation: `same`, `refused` (the new model raises), `both` (both raise), `left` (not tried), or
    `differs`. within: the class inside of the model that was varied."""

    text: str
    verdict: str
    why: str = ""
    within: str = ""


def variations(facts: SourceFiles) -> list[Variation]:
    """The model unchanged, and its variations, at most MOST; then those of the classes inside, in turn."""
    root, found = facts.facts.root, [Variation("as it is")]
    found += [Variation(f"without {name}", without=n) for n, name in enumerate(_optional(facts), 1)]
    if isinstance(root, Made):
        found += _given(root.function, facts)
    if isinstance(root, Made) and root.changes is None:
        found += [one for one in _varied(root, facts) if _plain(one.made)]
    parts = [_of_part(path, made, facts) for path, made in facts.facts.parts.items() if _plain(made)]
    in_turn = (one for each in itertools.zip_longest(*parts) for one in each if one is not None)
    return [*found[:MOST], *itertools.islice(in_turn, MOST_OF_PARTS)]


def with_expressions(
    plan: Sequence[Variation], expression: Callable[[Any], ast.expr], problems: list[Any]
) -> tuple[list[Variation], list[ast.expr | None]]:
    """The variations, and the expressions that make the model so; not those whose arguments cannot be written.

    expression: writes a construction; problems: what it could not write, which stays as it is.
    """
    kept, made = [], list[ast.expr | None]()
    for one in plan:
        before = len(problems)
        written = None if one.made is None else expression(one.made)
        if len(problems) == before:
            kept.append(one)
            made.append(written)
        del problems[before:]
    return kept, made


def _of_part(path: str, made: Made, facts: SourceFiles) -> list[Variation]:
    """The variations of a module inside of the model; first what chooses branches."""
    given = (replace(one, made=made) for one in _given(made.function, facts))
    varied = (one for one in _varied(made, facts) if _plain(one.made))
    within = made.function.rpartition(".")[2]
    found = [replace(one, text=f"{path}: {one.text}", part=path, within=within) for one in (*given, *varied)]
    return sorted(found, key=lambda one: not one.text.endswith(("True", "False", "'")))


def _given(owner: str, facts: SourceFiles) -> Iterator[Variation]:
    """The model with another value of an input that has a default and is plain."""
    forward = next((f for b in facts.facts.bases(owner) if (f := facts.functions.get(f"{b}.forward"))), None)
    node = None if forward is None else facts.node(forward)
    for name, default in defaults_of(node.args).items() if node is not None else ():
        known, value = literal(default)
        for other in _others(name, value, facts) if known else ():
            yield Variation(f"run with {name}={other!r}", words=((name, other),))


def _optional(facts: SourceFiles) -> list[str]:
    """The inputs that were given and have a default, the last one first."""
    owner = facts.facts.root.function if isinstance(facts.facts.root, Made) else ""
    forward = next((f for b in facts.facts.bases(owner) if (f := facts.functions.get(f"{b}.forward"))), None)
    node = None if forward is None else facts.node(forward)
    if node is None:
        return []
    defaults = {name: literal(default) for name, default in defaults_of(node.args).items()}
    names = [n for n in ast.walk(node) if isinstance(n, ast.Name)]
    assigned = {n.id: (n.lineno, n.col_offset) for n in reversed(names) if isinstance(n.ctx, ast.Store)}
    seen = {
        n.id
        for n in names
        if {*kinds_of(n)} - {NONE}
        and (True, constants_of(n)) != _alone(defaults.get(n.id))
        and (n.id not in assigned or (n.lineno, n.col_offset) < assigned[n.id] or n.id not in defaults)
    }
    takes = [item.arg for item in node.args.args if item.arg != "self"]
    given = [name for name in takes if name in seen]
    found: list[str] = []
    while given and given == takes[: len(given)] and given[-1] in defaults_of(node.args):
        found.append(given.pop())
    return found


def _alone(default: tuple[bool, Any] | None) -> tuple[bool, list[Any]]:
    """A default as the only value that an argument had: it was not given then."""
    return (default[0], [default[1]]) if default is not None else (False, [])


def _plain(value: Any) -> bool:
    """Whether a construction uses only plain values, classes, and lists and objects made of these, so that it can be
    repeated anywhere."""
    if isinstance(value, Made):
        return value.changes is None and all(map(_plain, (*value.args, *(item for _, item in value.kwargs))))
    if isinstance(value, Items):
        return all(map(_plain, value.items))
    return value is None or isinstance(value, (Reference, bool, int, float, str))


def _varied(made: Made, facts: SourceFiles, outer: str = "") -> Iterator[Variation]:
    """A construction with another value for one of its arguments, or one of its configuration's."""
    takes = facts.signature(made.function)
    names = facts.parameters(made.function)
    defaults = {
        k: v for k, n in (defaults_of(takes) if takes else {}).items() if (v := _value(n, made, facts)) is not None
    }
    known = facts.facts.configurations.get(made.function)
    if takes is None:
        names, defaults = _fields(made.function, facts)
    if known is not None:
        defaults = {}
    given = {**dict(zip(names, made.args, strict=False)), **dict(made.kwargs)}
    for name, value in {**defaults, **given}.items():
        if isinstance(value, Made):
            for inner in _varied(value, facts, f"{name}."):
                yield replace(inner, made=_with(made, names, name, inner.made))
        for other in _others(name, value, facts):
            made_so = _with(made, names, name, other)
            yield Variation(f"{outer}{name}={other!r}", made_so, of=made.function, argument=name)


def _value(node: ast.expr, made: Made, facts: SourceFiles) -> Any:
    """The value of a default that is a number, a string or a boolean, or a top-level name for one; else None."""
    file = facts.modules.get(made.function.rpartition(".")[0])
    origin = facts.origin(file, node.id) if file is not None and isinstance(node, ast.Name) else None
    return literal(node)[1] if origin is None else origin.value


def _fields(cls: str, facts: SourceFiles) -> tuple[list[str], dict[str, Any]]:
    """The fields of a dataclass in their order, and the defaults that are plain."""
    place = facts.class_of(cls)
    lines = [line for line in (place[1].body if place is not None else ()) if isinstance(line, ast.AnnAssign)]
    fields = {line.target.id: literal(line.value) for line in lines if isinstance(line.target, ast.Name)}
    return list(fields), {name: value for name, (known, value) in fields.items() if known and value is not None}


def _with(made: Made, names: Sequence[str], name: str, value: Any) -> Made:
    """The construction with another value for one argument."""
    if name in names[: len(made.args)]:
        place = names.index(name)
        return replace(made, args=(*made.args[:place], value, *made.args[place + 1 :]), id=None)
    return replace(made, kwargs=(*((k, v) for k, v in made.kwargs if k != name), (name, value)), id=None)


def _others(name: str, value: Any, facts: SourceFiles) -> list[Any]:
    """Other values of an argument: the other boolean, twice the number, the strings that it is compared with."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [2 * value] if value else [1]
    if isinstance(value, float):
        return [value / 2] if value else [0.1]
    if isinstance(value, str):
        words = _words(name, facts)
        return [word for word in (*words, *([f"no_{value}"] if words else ())) if word != value][:3]
    return []


def _words(name: str, facts: SourceFiles) -> list[str]:
    """The strings that an argument, or an attribute of its name, is compared with, or looked up in."""
    found: dict[str, None] = {}
    for file in {function.file for function in facts.facts.functions}:
        for node in ast.walk(facts.tree(file)):
            about, among = (node.left, node.comparators) if isinstance(node, ast.Compare) else (None, [])
            if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Dict):
                about, among = node.slice, [key for key in node.value.keys if key is not None]
            if about is not None and ast.unparse(about).rpartition(".")[2] == name:
                values = [part.value for one in among for part in ast.walk(one) if isinstance(part, ast.Constant)]
                found |= dict.fromkeys(value for value in values if isinstance(value, str))
    return list(found)


def now_trying(plan: Sequence[Variation], folder: Path) -> str:
    """What runs now, in words, by the files of `try_variations`."""
    for framework, ending in (("MindSpore", "begun"), ("torch", "pth")):
        begun = [number for number in range(len(plan)) if (folder / f"{number}.{ending}").exists()]
        if begun:
            return f"running {framework}'s, {plan[begun[-1]].text}: {begun[-1] + 1} of {len(plan)}"
    return "running both, also with other arguments"


def try_variations(
    model: str,
    shapes: Sequence[str],
    text: str,
    maker: str,
    plan: Sequence[Variation],
    folder: Path,
    file: str = "written.py",
) -> list[Tried]:
    """Run every variation in both frameworks; text: the new source; maker: the function in it that makes the model;
    file: the source's name, for errors.

    Raises WorkerFailed, BadInput.
    """
    folder.mkdir()
    how = [{"made": to_json(v.made), "without": v.without, "part": v.part, "words": dict(v.words)} for v in plan]
    (folder / "plan.json").write_text(json.dumps(how))
    of_torch = ask(TORCH, model, "convert-model", str(folder), str(folder / "plan.json"), *shapes)["tried"]
    for number, one in enumerate(of_torch):
        if "inputs" in one:
            (folder / f"{number}.json").write_text(json.dumps(one["inputs"]))
            if one["saved"]:
                convert(folder / f"{number}.pth", folder / f"{number}.ckpt", owners=one["classes"], parts=True)
        elif "left" in one or one["stage"] == "run":
            (folder / f"{number}.left").touch()
    bodies = (textwrap.indent(v.source or f"return {maker}()", "    ") for v in plan)
    makers = (f"def variation_{n}():\n{body}" for n, body in enumerate(bodies))
    written = folder / file
    written.write_text("\n\n\n".join((text.rstrip("\n"), *makers)) + "\n")
    errors: dict[str, str | None] = {}  # by number, None where it ran
    first, ends = 0, time.monotonic() + SECONDS
    while first < len(plan):
        seconds = f"{ends - time.monotonic():.0f}"
        new = ask_worker(MINDSPORE, [str(written), str(folder), str(first), seconds], f"running {maker}")["errors"]
        if not new:
            break
        errors |= new
        first = max(map(int, new)) + 1
    judged = (
        _judged(v.text, of_torch[n], errors.get(str(n)), folder / str(n), part=bool(v.part)) for n, v in enumerate(plan)
    )
    return [replace(one, within=v.within) for one, v in zip(judged, plan, strict=True)]


def _judged(text: str, of_torch: dict[str, Any], error: str | None, at: Path, *, part: bool) -> Tried:
    if "left" in of_torch or ("raises" not in of_torch and at.with_suffix(".left").exists()):
        why = of_torch.get("left")
        return Tried(text, "left", why if isinstance(why, str) else "there was no time for it")
    if "raises" in of_torch:
        if of_torch["stage"] == "run":
            return Tried(text, "left", f"torch does not run so on these inputs: {of_torch['raises']}")
        return (
            Tried(text, "both", error)
            if error
            # a part may be made in its model alone, by settings that only the model gets
            else Tried(text, "left" if part else "differs", f"torch refuses it: {of_torch['raises']}")
        )
    if error is not None:
        return Tried(text, "refused", error)
    try:
        why = _difference(dict(np.load(f"{at}.npz")), dict(np.load(f"{at}.out.npz")), random=of_torch["random"])
    except Undecided as unknown:
        return Tried(text, "left", f"not decided: {unknown}")
    return Tried(text, "differs", why) if why else Tried(text, "same")


class Undecided(Exception):
    """torch's own rounding is so large that it would hide a difference."""


def _difference(torch: dict[str, Any], mindspore: dict[str, Any], *, random: Collection[str]) -> str:
    """The first output that differs, in words; empty where none does. random: the keys of outputs that torch draws anew
    each time, as those of training with dropout."""
    after = "evaluation after training, with weights that changed meanwhile"
    modes = {"eval": "evaluation", "train": "training", "after": after, "gradient": "the length of the gradient"}
    plain = {key.removeprefix("plain/"): value for key, value in torch.items() if key.startswith("plain/")}
    if "gradient" not in plain and mindspore.get("gradient") == 0:  # of what has none torch gives none, MindSpore zeros
        mindspore = {key: value for key, value in mindspore.items() if key != "gradient"}
    if not plain and not mindspore:
        raise Undecided("neither returns a tensor of floating-point numbers")
    if {*plain} != {*mindspore}:
        return f"torch gives {len(plain)} values, MindSpore {len(mindspore)}"
    for key, value in plain.items():
        mode, _, number = key.partition("/")
        where = f"{modes[mode]}{f', output {number}' if int(number or 0) else ''}"
        if value.shape != mindspore[key].shape:
            return f"{where}: {list(mindspore[key].shape)}, not torch's {list(value.shape)}"
        if key in random:
            continue
        exact = torch.get(f"exact/{key}", value).astype(np.float64)
        if not np.array_equal(np.isfinite(exact), np.isfinite(value)):
            raise Undecided(f"{where}: torch's own float32 is infinite or nan in other places than float64")
        finite = np.isfinite(exact)
        if not np.array_equal(finite, np.isfinite(mindspore[key])):
            return f"{where}: not the same values are infinite or nan as in torch"
        exact, value, ours = exact[finite], value[finite], mindspore[key][finite]
        noise = float(np.abs(value - exact).max(initial=0))
        scale = float(np.abs(exact).max(initial=0))
        off = float(np.abs(ours - exact).max(initial=0))
        least = max((ROUGH if mode == "gradient" else LEAST) * scale, 1e-6)
        if not off <= max(NOISE * noise, least):
            return f"{where}: differs by {off / scale if scale else off:.2g} of the largest value"
        if noise > BLIND * scale and not np.abs(ours - value).max(initial=0) <= least:
            raise Undecided(f"{where}: torch's own float32 is {noise / scale:.2g} of the largest value off float64")
    return ""
