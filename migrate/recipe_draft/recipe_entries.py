"""Lines of a recipe: plain values, where each comes from, and which key is for which call."""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...errors import MsmigrateError
from ...mappings import table
from ...mappings.aliases import restated, row_of
from ...mappings.rows import Argument, Row
from ...printable import shortened
from ..library_names import DATASET, MODULE, OPTIMIZER, SCHEDULE, family_of, is_class, names_read
from ..read_script.abstract_values import (
    ArgumentParser,
    CallArgument,
    Constant,
    LibraryName,
    LibraryObject,
    LibraryUse,
    ListValue,
    NotConstant,
    Origin,
    ParsedArguments,
    ScriptClass,
    ScriptModule,
    ScriptObject,
    Value,
    is_known,
    known,
    origins,
    plain,
)
from ..read_script.command_line import settings_of
from ..read_script.interpreter import CERTAINTIES, OPTION, PERHAPS, UNCALLED, Interpreter, joined
from ..read_script.syntax import parts_of
from .data_flow import ADDS, Flow, Statement

WORD = re.compile(r"[A-Za-z_][\w.-]*")  # a string that needs no quotes in YAML
LARGEST = 10**18  # the reader takes whole numbers of at most 18 digits, and no infinity
ASK = "???"  # in place of a value that could not be read; no recipe with it is valid
MOST_LINES = 4  # of the script that comments name for one value
RESERVED = ("null", "true", "false", "yes", "no", "on", "off", "y", "n")
Place = tuple[str, int]  # file and line


class Comment(str):
    """A comment of a draft that names a place of the script; at: that place, about: what is there."""

    at: Place
    about: str

    def __new__(cls, at: Place, about: str = "", before: str = "") -> Comment:
        """before: text to put in front of it."""
        comment = super().__new__(cls, f"{before}{at[0]} line {at[1]}{': ' if about else ''}{about}")
        comment.at, comment.about = at, about
        return comment


def _line(comment: str, indent: str) -> str:
    """A comment as a line of a draft; a Comment stays one, with its place."""
    if isinstance(comment, Comment):
        return Comment(comment.at, comment.about, f"{indent}# ")
    return f"{indent}# {comment}"


@dataclass
class Entry:
    """One line of a recipe: a key with a value or with entries below it, and the comments above it.

    roots: the script's nodes that make what the draft chose -> their role. left: parts of a drafted call that the
    recipe does not cover: place and text.
    """

    key: str
    value: Any = None
    comments: list[str] = field(default_factory=list)
    below: list[Entry] | None = None
    out: bool = False  # written as a comment: an option that is off in the script, or something that no recipe takes
    roots: dict[int, str] = field(default_factory=dict)
    left: list[tuple[Place, str]] = field(default_factory=list)

    @property
    def asks(self) -> bool:
        """Whether its value is ???."""
        return self.value == ASK or (self.below or [])[:1] == [Entry("name", ASK)]

    def places(self, asked: bool) -> set[Place]:
        """The lines that its values come from; asked: instead, the lines of values that are ???."""
        if self.out:
            return set()
        own = {comment.at for comment in self.comments if isinstance(comment, Comment)} if self.asks is asked else set()
        return own.union(*(entry.places(asked) for entry in self.below or []))

    def all_left(self) -> Iterator[tuple[Place, str]]:
        """Everything that is left over of this entry and the entries below it."""
        yield from self.left
        for entry in self.below or []:
            yield from entry.all_left()

    def leave(self, seen: LibraryUse, *known_names: str | None) -> None:
        """Note as left over the arguments of a call other than these names (or positions, as digits)."""
        for index, argument in enumerate(seen.arguments or []):
            absent = isinstance(argument.value, Constant) and argument.value.value is None
            if not absent and (argument.name or str(index)) not in known_names:
                where = (seen.source.shown, argument.node.lineno)
                self.left.append((where, f"{argument_text(seen, argument)} of {seen.name}"))

    def lines(self, depth: int = 0) -> list[str]:
        """The entry as lines of YAML."""
        indent = "  " * depth
        mark = "# " if self.out else ""
        found = [_line(comment, indent) for comment in self.comments]
        dash = self.key == "-"
        if self.below is None:
            return [*found, f"{indent}{mark}{'- ' if dash else f'{self.key}: '}{yaml(self.value)}"]
        inner = [line for entry in self.below for line in entry.lines(0 if self.out else depth + 1)]
        if self.out:
            return [*found, *(f"{indent}# {line}" for line in (f"{self.key}:", *(f"  {line}" for line in inner)))]
        return [*found, f"{indent}{self.key}:", *inner]


def yaml(value: Any) -> str:
    """A plain value in YAML's flow style, as a recipe reads it; a number that no recipe may hold is ???."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (int, float)) and not (abs(value) < LARGEST):
        return ASK
    if isinstance(value, float):
        text = repr(value)
        return text if "e" not in text or "." in text else text.replace("e", ".0e")
    if isinstance(value, int):
        return str(value)
    if value == ASK:
        return ASK
    if isinstance(value, str):
        return value if WORD.fullmatch(value) and value.lower() not in RESERVED else json.dumps(value)
    if isinstance(value, dict):
        return f"{{{', '.join(f'{yaml(key)}: {_inside(item)}' for key, item in value.items())}}}"
    return f"[{', '.join(_inside(item) for item in value)}]"


def _inside(value: Any) -> str:
    """A value inside braces or brackets, where a question mark would begin a key."""
    text = yaml(value)
    return json.dumps(text) if text == ASK else text


def only_where(seen: LibraryUse) -> str:
    """A call's place, with the condition under which it runs; behind a `return` it never does."""
    return f"{place(seen)}, {f'only where {seen.condition}' if seen.condition else 'which never runs'}"


def place(seen: LibraryUse) -> str:
    """The place of a call, and the call."""
    text = seen.source.text(seen.node)
    where = f", where {seen.condition}" if seen.certainty == PERHAPS and seen.condition else ""
    about = f"{text if len(text) <= 90 else f'{text[:87]}...'}{where}"
    return Comment((seen.source.shown, seen.node.lineno), about)


def argument_text(seen: LibraryUse, argument: CallArgument) -> str:
    """The source of an argument, on one line; options['lr'] for an unpacked dict."""
    text = " ".join(seen.source.text(argument.node).split())
    if argument.at or argument.name == "**":
        return f"{text}{argument.at}" if argument.at else f"**{text}"
    return text if argument.name in (None, "*") else f"{argument.name}={text}"


def partly_unread(seen: LibraryUse) -> bool:
    """Whether a call has unpacked arguments that were not read, so that it may have more than the known ones."""
    return any(argument.name in ("*", "**") for argument in seen.arguments or [])


def setting(seen: LibraryUse, name: str, position: int | None = None) -> Any:
    """The value of a call's argument: None where there is none, ??? where it could not be read."""
    value = seen.get(name, position)
    if value is None:
        return ASK if partly_unread(seen) else None
    return known(value, ASK)


def unread(name: str) -> str:
    """The comment on a key whose value could not be read."""
    return f"its {name} could not be read"


def settings(seen: LibraryUse, places: Mapping[str, int | None]) -> dict[str, Any]:
    """The numbers of a call's arguments with these names, or at these positions; ??? where one could not be read."""
    given = {name: setting(seen, name, at) for name, at in places.items()}
    return {name: float(v) if isinstance(v, (int, float)) else ASK for name, v in given.items() if v is not None}


def sources(value: Value | None) -> list[str]:
    """Where a value comes from, one comment for each place."""
    return [_from(origin) for origin in origins(value)]


def _from(origin: Origin) -> str:
    """The comment that names where a value comes from; plain text where the line has more than this value."""
    comment = Comment((origin.file, origin.line), origin.text)
    return comment if origin.whole else str(comment)


def computed(node: ast.expr | None, value: Value | None, flow: Flow) -> list[str]:
    """The lines that compute a number, the nearest first, the lines of constants in these, and where its value comes
    from; without lines that read the command line, which the value's own origin names."""

    def counts(one: ast.expr) -> bool:
        value = flow.value(one)
        return not (isinstance(value, LibraryObject) and is_class(value.name))  # an object is not a number

    def computes(one: ast.expr) -> bool:
        statement = flow.of.get(id(one))  # options.update(…) by itself computes nothing
        inside = [part for part in parts_of(one, counts) if not (statement and statement.alone is part)]
        return any(isinstance(part, (ast.BinOp, ast.Call)) for part in inside)

    found: list[str] = []
    word = re.escape(repr(known(value))) if is_known(value) else "$^"
    lines = [bool(re.search(rf"(?<![\w.]){word}(?![\w.])", one.text)) and one.whole for one in origins(value)]
    plainly = lines == [True]  # it is as it stands in one line
    behind = [(one, computes(one)) for one in flow.behind(node, counts)] if node is not None and not plainly else []
    for one, itself in behind[1:]:
        of = flow.value(one.func.value) if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) else None
        parsed = any(isinstance(each, (ArgumentParser, ParsedArguments)) for each in (of, flow.value(one)))
        constant = isinstance(one, ast.Constant) and number(flow.value(one)) is not None
        statement = flow.of.get(id(one))
        rank, _ = flow.interpreter.reached.get(id(getattr(statement, "node", None)), (0, ()))
        never = CERTAINTIES[rank] == OPTION and statement is not None and not flow.doubtful(statement, set())
        never = never or parsed
        if statement is None or never or not (itself or (constant and any(computing for _, computing in behind))):
            continue
        comment = Comment(statement.place, " ".join(statement.text.split()))
        # a statement that changes a dict or list may add more than this number, so it is accounted for by itself
        changes = any(definition.way == ADDS for definition in statement.defines)
        found.append(str(comment) if changes else comment)
    found = list(dict.fromkeys(found))[:MOST_LINES]
    places = [one.at for one in found if isinstance(one, Comment)]
    return [*found, *(_from(one) for one in origins(value) if (one.file, one.line) not in places)]


def bound(seen: LibraryUse, row: Row) -> Iterator[tuple[Argument, Value, str]]:
    """The row's arguments that the call gives, each with its value and its source text."""
    known = {argument.torch: argument for argument in row.arguments if not argument.rest}
    positional = [argument for argument in seen.arguments or [] if argument.name is None][: len(known)]
    named = {
        argument.name: argument for argument in seen.arguments or [] if argument.name in list(known)[len(positional) :]
    }
    for name, given in table.bind(row, named, tuple(positional)).items():  # without arguments that torch would refuse
        if name in known:
            yield known[name], given.value, seen.source.text(given.node)


class Part(NamedTuple):
    """A call as a recipe's part: its name, an entry for each argument, and whether one could not be read."""

    name: str
    args: list[Entry]
    comments: list[str]
    incomplete: bool  # an argument has to be written in by hand


def part(seen: LibraryUse, row: Row, brief: bool = False) -> Part:
    """A call as a recipe's part.

    An argument that the mapping table refuses is written as a comment. brief: without arguments that are torch's
    defaults.
    """
    entries: list[Entry] = []
    untold: list[str] = []
    for argument, value, text in bound(seen, row):
        if argument.torch in row.unwritten or not (argument.to or argument.only or argument.values):
            continue  # passed by the recipe itself, or without an effect
        try:
            found = _fitting(argument, recipe_value(value, argument))
        except NotConstant:
            where = f"{seen.source.shown} line {seen.node.lineno}"
            entries.append(
                Entry(argument.torch, ASK, [f"{where}: {argument.torch}={shortened(text, 60)} could not be read"])
            )
            continue
        entry = Entry(argument.torch, found, sources(value))
        try:
            table.translate(row.torch, {argument.torch: found}, partial=True)
        except MsmigrateError as error:
            entry.out = True
            entry.comments.append(" ".join(str(error).split()))
        except (TypeError, ValueError, KeyError, IndexError, AttributeError):
            pass  # it cannot be asked for alone; the recipe's reader reports all
        if not brief or argument.required or found != _listed(argument.default):
            entries.append(entry)
    given = {entry.key for entry in entries if not entry.out}
    lacking = [a.torch for a in row.arguments if a.required and a.torch not in given and a.torch not in row.unwritten]
    entries += [Entry(name, ASK, [f"{row.short} needs {name}: write it here"]) for name in lacking]
    return Part(short_name(row), entries, untold, incomplete=False)


def short_name(row: Row) -> str:
    """The name of a row in a recipe: the last part where that is unique."""
    try:
        return row.short if table.row(row.short) is row else row.torch
    except MsmigrateError:
        return row.torch


OF_LISTS = ("tensor", "as_tensor", "from_numpy", "array", "asarray", "FloatTensor", "Tensor")


def recipe_value(value: Value, argument: Argument | None = None) -> Any:
    """The plain value of an argument; a member of an enumeration, such as BICUBIC, by its value. Raises NotConstant."""
    if isinstance(value, LibraryObject) and value.seen is not None and len(value.seen.arguments or []) == 1:
        inner = (value.seen.arguments or [])[0].value
        made = value.seen.name.rpartition(".")[2]
        if made == "InterpolationMode" or (made in OF_LISTS and isinstance(inner, ListValue)):
            value = inner  # InterpolationMode("bilinear"), torch.tensor([1.0, 2.0]); but torch.ones(12) is not 12
    if isinstance(value, LibraryName):
        last = value.name.rpartition(".")[2]
        listed = [ours for ours, _ in argument.values] if argument is not None else []
        for candidate in (value.name, last, last.lower()):
            if candidate in listed:
                return candidate
        raise NotConstant
    if isinstance(value, ListValue) and not value.closed:
        raise NotConstant
    return _plain(plain(value))


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _plain(item) for key, item in value.items()}
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    raise NotConstant


def _fitting(argument: Argument, value: Any) -> Any:
    """The value in the type of torch's default: 1 for True, 30 for 30.0; raises NotConstant where it does not fit."""
    default = None if argument.required else _listed(argument.default)
    if isinstance(default, bool):
        if value in (0, 1) and not isinstance(value, list):
            return bool(value)
        raise NotConstant
    if isinstance(default, (int, float)) and (isinstance(value, bool) or not isinstance(value, (int, float, list))):
        raise NotConstant
    if isinstance(value, float) and value.is_integer() and argument.required:
        return int(value)
    return value


def _listed(value: Any) -> Any:
    return [_listed(item) for item in value] if isinstance(value, (list, tuple)) else value


def number(value: Value | None) -> float | int | None:
    """A number, or None for anything else."""
    found = value.value if isinstance(value, Constant) else None
    if isinstance(found, bool) or not isinstance(found, (int, float)) or not math.isfinite(found):
        return None
    return found


# which key of a recipe is for which call: the rows say it, and here are those that they lack

MODELS = {  # the models that a recipe can name -> their arguments, save num_classes
    "lenet5": (),
    "resnet_tiny": (),
    "resnet18": ("zero_init_residual",),
    "resnet34": ("zero_init_residual",),
    "resnet50": ("zero_init_residual", "groups", "width_per_group"),
    "resnet101": ("zero_init_residual", "groups", "width_per_group"),
    "resnet152": ("zero_init_residual", "groups", "width_per_group"),
}
LIGHTNING = ("lightning", "lightning.pytorch", "lightning.fabric", "pytorch_lightning")
KEYS = {  # names without such a row yet -> key of a recipe
    "timm.utils.NativeScaler": "dynamic_loss_scale",
    "timm.data.FastCollateMixup": "mixup",
    "torchvision.transforms.MixUp": "mixup",
    "torchvision.transforms.CutMix": "mixup",
    "timm.loss.SoftTargetCrossEntropy": "loss",
    "timm.loss.LabelSmoothingCrossEntropy": "loss",
    **dict.fromkeys((f"{one}.seed_everything" for one in LIGHTNING), "seed"),  # torch's too
}
# the keys that drafting looks up
DATA, SEED, CLIP, AMP, SCALE = "data.batch", "seed", "clip.max_norm", "amp", "dynamic_loss_scale"
EMA, MIXUP, SYNC, TENSORBOARD, SOURCE = "ema", "mixup", "sync_batchnorm", "train.tensorboard", "data.source"


def key_of(name: str) -> str | None:
    """The key of a recipe for this name: by its row, or by the list above."""
    row = row_of(name)
    if row is not None and row.kind in ("optimizer", "schedule", "loss"):
        return row.kind
    if row is not None and row.recipe:
        return str(row.recipe["key"])
    listed = next((KEYS[one] for one in restated(name) if one in KEYS), None)
    family = family_of(name) if is_class(name) else ""
    return listed or (family if family in (SCHEDULE, OPTIMIZER) else None)


def source_of(name: str) -> str | None:
    """The recipe's form for a data set's images: folder:PATH."""
    row = row_of(name)
    found = row.recipe.get("value") if row is not None and row.recipe.get("key") == SOURCE else None
    return str(found) if found else None


def calls(interpreter: Interpreter, key: str) -> list[LibraryUse]:
    """The calls that are for this key of a recipe, the surest first."""
    called = [seen for seen in interpreter.seen if seen.arguments is not None and seen.receiver is None]
    called = of_made_classes(interpreter, called) if interpreter.made else called
    wanted = {name for name in {seen.name for seen in called} if key_of(name) == key}
    return by_sureness(seen for seen in called if seen.name in wanted)


def of_made_classes(interpreter: Interpreter, found: Iterable[LibraryUse]) -> list[LibraryUse]:
    """Without those calls that nothing runs in classes of which no object was seen."""
    lived = {id(one.node) for made in interpreter.made for one in made.of.lineage() if isinstance(one, ScriptClass)}
    return [seen for seen in found if seen.certainty != UNCALLED or not _in_others(lived, seen)]


def _in_others(classes: set[int], seen: LibraryUse) -> bool:
    """Whether a call is in a class, and in none of these."""
    line = seen.node.lineno
    around = {id(one) for one in seen.source.classes if one.lineno <= line <= (one.end_lineno or one.lineno)}
    return bool(around) and not around & classes


def by_sureness(found: Iterable[LibraryUse]) -> list[LibraryUse]:
    """The surest first, in the order of the script."""
    return sorted(found, key=lambda seen: (CERTAINTIES.index(seen.certainty), seen.order))


def surely(found: list[LibraryUse]) -> list[LibraryUse]:
    """Those that run with the defaults, or perhaps; where there are none, those in functions that nothing calls."""
    return [seen for seen in found if seen.certainty not in (OPTION, UNCALLED)] or [
        seen for seen in found if seen.certainty == UNCALLED
    ]


def options(found: list[LibraryUse]) -> list[LibraryUse]:
    """Those that run only with other arguments than the defaults, each place once."""
    sure = {id(seen.node) for seen in surely(found)}
    several = [seen for seen in found if seen.certainty == OPTION and id(seen.node) not in sure]
    return list({(seen.source.shown, seen.node.lineno): seen for seen in several}.values())


def distinct(found: list[LibraryUse]) -> list[LibraryUse]:
    """Each place once: the surest, and of these the one with the fewest conditions."""
    fewest = sorted(found, key=lambda seen: (CERTAINTIES.index(seen.certainty), len(seen.condition or "")))
    return list(({id(seen.node): seen for seen in found} | {id(seen.node): seen for seen in fewest[::-1]}).values())


LONGEST = 1000  # letters of a statement, or of a condition, that a draft shows
LONGEST_WORD = 60  # letters of a string that is shown as a name's value
DEVICE = re.compile(r"(cuda|cpu|npu|mps)(:\d+)?")  # no part of a step


def shown(text: str) -> str:
    """A statement or condition on one line."""
    return shortened(" ".join(text.split()), LONGEST)


def behind_names(parts: Iterable[ast.AST], interpreter: Interpreter, moves: Callable[[ast.AST], bool]) -> str:
    """The numbers and strings of the names and elements in a statement, as `args.lr is 0.001`; empty where none has the
    same value whenever the statement runs.

    parts: its nodes. moves: whether a node may have another value the next time.
    """
    found: dict[str, str] = {}
    for part in parts:
        if isinstance(part, (ast.Name, ast.Attribute, ast.Subscript)) and isinstance(part.ctx, ast.Load):
            held = interpreter.values.get(id(part), (0, None))[1]
            value, default = known(held), isinstance(held, Constant) and bool(held.origins) and held.other is None
            word = isinstance(value, str) and not DEVICE.fullmatch(value)
            plainly = word or isinstance(value, (int, float)) or (default and value is None)
            if plainly and ast.unparse(part) != value and id(part) not in interpreter.varied and not moves(part):
                found.setdefault(ast.unparse(part), shortened(repr(value), LONGEST // 4))
    return ", ".join(f"{name} is {value}" for name, value in found.items())


SETTINGS = (ParsedArguments, ScriptObject, ScriptClass, ScriptModule)
MOST_SETTINGS = 100  # of one object that are said
Held = tuple[ast.expr, Value, ast.AST | None]


def held_settings(parts: Iterable[ast.AST], flow: Flow, open_: set[int]) -> Iterator[Held]:
    """Each object of settings that a statement mentions as a whole, with its expression, and the function or class of
    the script's that gets it and is not read line by line, if any; what other ones get is read in these.

    parts: the statement's nodes. open_: the functions (their ids) that are read line by line.
    """
    nodes = list(parts)
    calls_ = [one for one in nodes if isinstance(one, ast.Call)]
    given = [(one, c) for c in calls_ if flow.function_of(c) for one in (*c.args, *(k.value for k in c.keywords))]
    inner = {id(one): flow.function_of(call) for one, call in given if _reads_whole(flow, call, open_)}
    taken = {id(one) for one in nodes if getattr(one, "attr", "") == "__dict__"}
    within = [one for one in nodes if isinstance(one, (ast.Attribute, ast.Subscript)) and id(one) not in taken]
    taken |= {id(one) for one in [*(one.value for one in within), *(call.func for call in calls_)]}
    taken |= {id(one) for one, _ in given if id(one) not in inner}
    whole = {id(one): one for one in nodes if isinstance(one, (ast.Name, ast.Attribute, ast.Call))}
    for node in (one for key, one in whole.items() if key not in taken):
        holder = flow.value(node)
        plain_ = (not isinstance(node, ast.Call) or not [*node.args, *node.keywords]) and not _has_state(holder, flow)
        if isinstance(holder, SETTINGS) and plain_ and settings_of(holder, LONGEST):
            yield node, holder, inner.get(id(node))


def behind_settings(
    parts: Iterable[ast.AST], flow: Flow, read: set[tuple[int, str]], open_: set[int], again: bool
) -> Iterator[str]:
    """What each such object has, `args.lr is 0.1, args.b is 8`, or what that reads of it which gets it.

    read: the objects (their ids) and names of which a statement with a line reads one; what is said is added.
    again: whether to say it once more.
    """
    for node, holder, inner in held_settings(parts, flow, open_):
        key, inside = (id(holder), str(id(inner)) * bool(inner)), _names_inside(flow, inner) if inner else None
        each = ((k, v) for k, v in settings_of(holder, LONGEST).items() if not _set_later(flow, k, open_))
        pairs = ((k, v) for k, v in each if (k in inside if inside is not None else (id(holder), k) not in read))
        words = [f"{ast.unparse(node)}.{k} is {shortened(repr(known(v)), LONGEST // 4)}" for k, v in pairs]
        if words and len(words) <= MOST_SETTINGS and (again or not read & {(id(holder), ""), key}):
            read.add(key)
            yield ", ".join(words)


def _names_inside(flow: Flow, of: ast.AST) -> set[str]:
    """The names by which a function or class, and all that it calls of the script's, may read what an object has."""
    found, waiting, seen = set[str](), [of], set[int]()
    while waiting:
        seen.add(id(node := waiting.pop()))
        made = flow.class_of(node) if isinstance(node, ast.ClassDef) else None
        reached: list[ast.AST] = [one.node for one in made.lineage() if isinstance(one, ScriptClass)] if made else []
        found |= {one.arg for one in ast.walk(node) if isinstance(one, ast.arg)}  # net(**vars(args))
        for statement in flow.inside_of.get(id(node), ()):
            found |= names_read(statement.nodes)
            reached += filter(None, map(flow.function_of, statement.calls))
        waiting += [one for one in reached if id(one) not in seen]
    return found


def read_alone(flow: Flow, live: set[int]) -> set[tuple[int, str]]:
    """The objects (their ids) and names of which a live statement reads one by itself."""
    own = {id(one) for one in flow.options}  # args.lr = args.lr * 2
    each = (s for s in flow.statements if id(s) in live and id(s) not in own)
    nodes = (node for s in each for node in s.nodes if isinstance(node, ast.Attribute))
    return {(id(flow.value(node.value)), node.attr) for node in nodes if isinstance(node.ctx, ast.Load)}


def sets_held(targets: Iterable[ast.expr], flow: Flow, held: Container[int], read: set[tuple[int, str]]) -> bool:
    """Whether one of these targets sets what such an object has, and that nothing reads by itself."""
    stored = (one for one in targets if isinstance(one, ast.Attribute))
    return any(id(of := flow.value(one.value)) in held and (id(of), one.attr) not in read for one in stored)


def _set_later(flow: Flow, name: str, open_: set[int]) -> bool:
    """Whether statements that say so themselves set an attribute of this name, and not where its object is made; one
    alone in a function without lines says nothing."""
    found: list[Statement] = []
    for of in {id(one.statement): one.statement for one in flow.attributes.get(name, ())}.values():
        rank, _ = flow.interpreter.reached.get(id(of.node), (0, ()))
        never = CERTAINTIES[rank] == OPTION or id(of.node) in flow.interpreter.unnamed
        targets = getattr(of.node, "targets", [getattr(of.node, "target", None)])
        stores = any(isinstance(part, ast.Attribute) and part.attr == name for part in targets)
        found += [of] if stores and not never and not getattr(of.function, "name", "").startswith("__") else []
    return len(found) > 1 or any(of.function is None or id(of.function) in open_ for of in found)


def _has_state(holder: Value | None, flow: Flow) -> bool:
    """Whether methods of an object's class set its attributes: a meter, and no settings."""
    lineage = holder.of.lineage() if isinstance(holder, ScriptObject) else ()
    inside = (one for of in lineage if isinstance(of, ScriptClass) for one in flow.inside_of.get(id(of.node), ()))
    later = (one for one in inside if not getattr(one.function, "name", "__").startswith("__"))
    return any(isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store) for s in later for part in s.nodes)


def _reads_whole(flow: Flow, call: ast.Call, open_: set[int]) -> bool:
    """Whether a call is of a class of models or data sets, or of a function that is not read line by line either."""
    called, node = flow.value(call.func), flow.function_of(call)
    if isinstance(called, ScriptClass) and called.family() in (MODULE, DATASET):
        return True
    inside = (one.function for one in flow.inside_of.get(id(node), ()) if one.function is not None)
    return not any(id(one) in open_ for one in inside if one is node or getattr(one, "name", "") == "__init__")


def with_conditions(why: str, where: str, around: list[str], calls: str) -> str:
    """A reason with the conditions around a statement and the calls of its function; where: the first of these in
    words, which are the reason itself where there is no other."""
    why = "" if why == where else why  # then all conditions are joined
    more = joined([one for one in dict.fromkeys(around) if one not in why])
    words = f"{'and ' * ('only where' in why)}only where {more}"
    return ", ".join(filter(None, (why, words * bool(more), calls)))
