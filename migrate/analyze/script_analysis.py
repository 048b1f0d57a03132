"""`msmigrate analyze train.py`: every use of torch and its libraries in a script, and its conversion."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from ...errors import BadInput
from ...input_files import LARGEST_PYTHON, read_bytes
from ...mappings import table
from ...mappings.aliases import find, row_of
from ...mappings.rows import MISSING, NOT_RUN, Row
from .. import library_names
from ..library_names import TABLES, TENSOR
from ..read_script.abstract_values import CallArgument, Constant, LibraryName, LibraryObject, LibraryUse, Value
from ..read_script.interpreter import CERTAINTIES, DEFAULT, Interpreter
from ..source_files import ScriptFile
from .operators import (
    BY_HAND,
    COMPOSED,
    DIRECT,
    IN_PLACE,
    NO_ROW,
    check_target,
    count,
    has_remedy,
    several,
    status_of,
    without_row,
)
from .rewritten_call import Rewritten, Texts, applied, left_out, rewrite
from .row_code import WORDS, Filled, ScriptNames, family_of_value, filled, left_as_it_is
from .script_steps import entry_of, variable_of, words_of_steps

NEVER = "never"  # the certainty of what only another script runs
WAYS = (DIRECT, COMPOSED, BY_HAND, MISSING, NO_ROW)  # from the best to the worst
# rows whose text is about only one of their names -> that name
ONLY_FOR = {"torch.zeros": "torch.empty", "torch.zeros_like": "torch.empty_like"}
LOADERS = ("torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader")
# calls that with their first argument alone are another call
WITH_ONE = {"torch.where": ("torch.nonzero", "condition", "input", "as_tuple")}
LAST = ("torch.Tensor.backward", "torch.autograd.backward")  # what is said of them has the other calls' text
LABELS: dict[str, str] = TABLES["labels"]
TRIFLES = ("torch.Tensor", "torch.nn.Module", "torch.dtype", "torch.device")  # in annotations and isinstance


MOST_BESIDE = 50  # files of a package that are looked through for a name


@dataclass(frozen=True)
class Use:
    """One place of a script that uses a library.

    way: DIRECT, COMPOSED (msmigrate's replacement), BY_HAND (with a listed change), MISSING or NO_ROW. status: the
    row's, for the given mode and target. certainty: whether it runs with the arguments' defaults; condition: on which
    it depends, where it does not surely run.
    """

    torch: str
    file: str
    line: int
    source: str
    way: str
    status: str = NO_ROW
    row: str | None = None
    kind: str | None = None
    mindspore: str | None = None
    rewritten: str | None = None
    rewrite: str | None = None  # in words, where there is no call to write
    notes: tuple[str, ...] = ()
    why: str | None = None
    refused: str | None = None  # the remark on an argument's value that has no counterpart
    pitfalls: tuple[str, ...] = ()
    docs: dict[str, str] = field(default_factory=dict)
    certainty: str = DEFAULT
    condition: str | None = None
    called: bool = True

    @property
    def missing(self) -> bool:
        """Whether it has no counterpart in the table."""
        return self.way in (MISSING, NO_ROW)

    @property
    def place(self) -> str:
        """File and line."""
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Api:
    """All uses of one function or class of a library."""

    torch: str
    uses: tuple[Use, ...]

    @property
    def way(self) -> str:
        """The worst way of its uses."""
        return max((use.way for use in self.uses), key=WAYS.index)

    @property
    def missing(self) -> bool:
        """Whether one of its uses has no counterpart."""
        return any(use.missing for use in self.uses)


@dataclass(frozen=True)
class ScriptAnalysis:
    """A script, the files of its folder that were read with it, and every use of a library in them."""

    name: str
    mode: str
    target: str
    files: tuple[str, ...]
    uses: tuple[Use, ...]
    not_there: tuple[tuple[str, str, int], ...]  # module, and file and line of its import
    unreadable: tuple[str, ...]  # one line for each
    interpreter: Interpreter = field(repr=False, compare=False)

    @property
    def apis(self) -> list[Api]:
        """The uses, grouped by API, in the order of the script."""
        groups: dict[str, list[Use]] = {}
        for use in self.uses:
            groups.setdefault(use.row or use.torch, []).append(use)
        return [Api(name, tuple(group)) for name, group in groups.items()]

    @property
    def missing(self) -> list[Api]:
        """The APIs without a counterpart, or without a row."""
        return [api for api in self.apis if api.missing]

    @property
    def no_row(self) -> list[Api]:
        """The APIs without a row."""
        return [api for api in self.apis if api.way == NO_ROW]

    @property
    def by_torch(self) -> list[str]:
        """The packages that train with torch in code of their own, in the order of the script."""
        without_row = (use.torch for use in self.uses if use.way == NO_ROW)
        tops = {name.partition(".")[0]: library_names.by_torch(name) for name in without_row}
        return [top for top, trains in tops.items() if trains or top in TABLES["of_torch"]]

    @property
    def pitfalls(self) -> dict[str, list[Use]]:
        """The faults that rows warn of and the script can have -> the uses of these rows."""
        found: dict[str, list[Use]] = {}
        for use in self.uses:
            for fault in use.pitfalls:
                found.setdefault(fault, []).append(use)
        files = {module.scope.source.shown: module.scope.source.lines for module in self.interpreter.files.values()}
        text = "\n".join(line for lines in files.values() for line in lines)
        faults = table.faults()
        possible = [fault for fault in found if re.search(faults[fault].needs or "", text)]
        for fault in possible:
            at = faults[fault].at
            if at is not None:
                found[fault] = [
                    Use(torch="", file=file, line=number, source=line.strip(), way=DIRECT)
                    for file, lines in files.items()
                    for number, line in enumerate(lines, 1)
                    if re.search(at, line.partition("#")[0])
                ]
        return {fault: found[fault] for fault in possible if found[fault]}

    def in_other_case(self, module: str, file: str) -> str | None:
        """The file or folder that has the name of an import that was not found, but in other letters: Unet.py for unet.

        On Windows and macOS such an import works. file: the file that imports it.
        """
        parts = module.strip(".").split(".")
        for folder in (*self.interpreter.search, (self.interpreter.folder / file).parent):
            at = folder
            for part in parts:
                try:
                    inside = sorted(at.iterdir()) if at.is_dir() else []
                except OSError:
                    inside = []
                ends = (part.lower(), f"{part.lower()}.py")
                named = (one for one in inside if one.name.lower() in ends and (one.is_dir() or one.is_file()))
                if (found_ := next(named, None)) is None:
                    break
                at = found_
            else:
                found = os.path.relpath(at, self.interpreter.folder)
                if Path(found.removesuffix(".py")).parts[-len(parts) :] != tuple(parts):
                    return found
        return None

    def defining_file(self, name: str) -> str | None:
        """The file of a package that defines what is imported from the package, whose __init__.py does not."""
        package, _, own = name.rpartition(".")
        module = self.interpreter.files.get(package)
        folder = module.scope.source.path.parent if module is not None else None
        if folder is None or module is None or module.scope.source.path.name != "__init__.py" or not own.isidentifier():
            return None
        defines = re.compile(rf"^(class|def|async def) {own}\b|^{own} *=", re.MULTILINE)
        for file in sorted(folder.glob("*.py"))[:MOST_BESIDE]:
            try:
                if defines.search(read_bytes(file, LARGEST_PYTHON).decode("utf-8", "replace")):
                    return os.path.relpath(file, self.interpreter.folder)
            except OSError:
                continue
        return None

    @property
    def verdict(self) -> str:
        """One line: how much of the script has a counterpart."""
        total = count(len(self.apis), "API")
        lacking = [api for api in self.apis if api.way == MISSING]
        unknown = self.no_row
        by_hand = sum(api.way == BY_HAND for api in self.apis)
        if not lacking and not unknown:
            left = f", {by_hand} of them to be written by hand" if by_hand else ""
            return f"{self.name}: all of {total} have a counterpart{left}"
        parts = [f"{by_hand} by hand"] if by_hand else []
        parts += (
            [f"{len(lacking)} without a counterpart ({several([api.torch for api in lacking])})"] if lacking else []
        )
        parts += [f"{len(unknown)} without a row ({several([api.torch for api in unknown])})"] if unknown else []
        return f"{self.name}: {total}, {', '.join(parts)}"


def analyze_script(path: str | Path, *, mode: str = "pynative", target: str = "CPU") -> ScriptAnalysis:
    """Read a training script and the files of its folder that it imports, and look up their uses in the mapping table.

    Nothing of it is run or imported. Raises BadInput, with the file and the line, for a file that is not Python or
    imports neither torch nor its libraries, nor what trains with it.
    """
    check_target(mode, target)
    script = Path(path)
    interpreter = Interpreter(script.parent)
    try:
        interpreter.read(script)
    except RecursionError:
        raise BadInput(f"{path}: nested too deeply to be read") from None
    trains = any(name in (*library_names.FRAMEWORKS, *TABLES["of_torch"]) for name in interpreter.libraries)
    if not trains and not any(map(library_names.by_torch, _imported(interpreter))):
        tops = ", ".join(library_names.FRAMEWORKS[:4])
        others = {name.partition(".")[0] for name in interpreter.not_there}
        others_ = [name for name in TABLES["other_frameworks"] if name in others]
        hint = f"; it imports {' and '.join(others_)}, without torch" if others_ else ""
        if "mindspore" in others:
            hint = "; it is MindSpore's already, and msmigrate mappings NAME says what a name is in torch"
        what = "give the script that trains, or a model as FILE.py:FUNCTION"
        raise BadInput(f"{path}: imports none of {tops}{hint}; {what}")
    uses = _uses(interpreter, mode, target)
    files = [module.scope.source.shown for module in interpreter.files.values() if module.scope.source.lines]
    order = {file: place for place, file in enumerate(files)}
    return ScriptAnalysis(
        name=script.name,
        mode=mode,
        target=target,
        files=tuple(files),
        uses=tuple(sorted(uses, key=lambda use: (order.get(use.file, 0), use.line))),
        not_there=tuple((module, *place) for module, place in interpreter.not_there.items()),
        unreadable=tuple(interpreter.unreadable.values()),
        interpreter=interpreter,
    )


def _uses(interpreter: Interpreter, mode: str, target: str) -> list[Use]:
    """One use for every place, inner calls first, so that the outer ones can contain their rewritten text."""
    places: dict[tuple[int, str], list[LibraryUse]] = {}
    for seen in interpreter.seen:
        unseen = seen.name.endswith(".__call__") and row_of(seen.name) is None  # recorded only for the recipe
        owner, _, method = seen.name.rpartition(".")
        if owner == "torch.Tensor" and row_of(seen.name) is None and not getattr(seen.receiver, "name", ""):
            of_module = method in library_names.MODULE_METHODS and method not in TABLES["only_of_tensors"]
            seen = replace(seen, name=f"torch.nn.Module.{method}") if of_module else seen
            unseen |= not of_module and method not in TABLES["only_of_tensors"]  # perhaps an image's, a dict's
        seen = _with_one(seen)
        if not unseen and (seen.arguments is not None or seen.name not in TRIFLES):
            places.setdefault((id(seen.node), seen.name), []).append(seen)
    for seen in _of_unknown(interpreter, {node for node, _ in places}):
        places[id(seen.node), seen.name] = [seen]
    for seen in _by_torch(interpreter):
        places.setdefault((id(seen.node), seen.name), [seen])
    texts: dict[int, str] = {}
    names = _names(interpreter, [group[0] for group in places.values()])
    found = []
    for group in sorted(places.values(), key=lambda one: (one[0].name in LAST, _size(one))):
        best = min(group, key=lambda seen: CERTAINTIES.index(seen.certainty))
        use, inside = _use(best, texts, names, mode, target)
        found.append(use)
        if inside is not None and use.called:
            texts[id(best.node)] = inside
    return found


def _with_one(seen: LibraryUse) -> LibraryUse:
    """A call that is another one where it is given one argument: torch.where(mask) gives places, as torch.nonzero."""
    name, first, own, switch = WITH_ONE.get(seen.name, ("", "", "", ""))
    given = seen.arguments or []
    if not name or len(given) != 1 or given[0].name not in (None, first):
        return seen
    on = CallArgument(switch, ast.copy_location(ast.Constant(True), seen.node), Constant(True))
    return replace(seen, name=name, arguments=[replace(given[0], name=own), on])


def _imported(interpreter: Interpreter) -> Iterator[str]:
    """The names that are imported from packages, and the packages' names that are called or derived from."""
    packages = {name.partition(".")[0] for name in interpreter.not_there}
    for module in interpreter.files.values():
        for node in ast.walk(module.scope.source.tree):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] in packages:
                yield from (f"{node.module}.{one.name}" for one in node.names)
    yield from (seen.name for seen in _by_torch(interpreter))


def _by_torch(interpreter: Interpreter) -> Iterator[LibraryUse]:
    """The calls, and the base classes, of packages without rows that train with torch."""
    for source in {module.scope.source.shown: module.scope.source for module in interpreter.files.values()}.values():
        for node in ast.walk(source.tree):
            used = [node.func] if isinstance(node, ast.Call) else node.bases if isinstance(node, ast.ClassDef) else []
            for one in used:
                rank, found = interpreter.values.get(id(one), (0, None))
                if isinstance(found, LibraryName) and library_names.by_torch(found.name):
                    at, arguments = (node, list[CallArgument]()) if isinstance(node, ast.Call) else (one, None)
                    yield LibraryUse(found.name, source, at, arguments, CERTAINTIES[rank], None, (), 0)


def _of_unknown(interpreter: Interpreter, seen: set[int]) -> Iterator[LibraryUse]:
    """Methods of what reading does not know, which are tensors' by their form: x.size(), x.to(device)."""
    files = {module.scope.source.shown: module.scope.source for module in interpreter.files.values()}.values()
    nodes = [(source, node) for source in files for node in ast.walk(source.tree)]
    defined = {node.name for _, node in nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}
    imported = {
        (source.shown, (one.asname or one.name).partition(".")[0])
        for source, node in nodes
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for one in node.names
    }
    for source, node in nodes:
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or id(node) in seen:
            continue
        method, root = node.func.attr, node.func.value
        if method not in OF_TENSORS or method in defined:
            continue
        while isinstance(root, (ast.Attribute, ast.Subscript)):
            root = root.value
        module = isinstance(root, ast.Name) and (source.shown, root.id) in imported
        given = ", ".join(source.text(one) for one in (*node.args, *node.keywords))
        if module or not OF_TENSORS[method].fullmatch(given):
            continue
        arguments = [CallArgument(None, one, Value()) for one in node.args]
        arguments += [CallArgument(one.arg or "**", one.value, Value()) for one in node.keywords]
        receiver = LibraryObject(TENSOR)
        yield LibraryUse(
            f"torch.Tensor.{method}", source, node, arguments, DEFAULT, None, (), len(interpreter.seen), receiver
        )


# methods of tensors that other objects have too -> the arguments that only those of tensors, or of modules, are given
OF_TENSORS = {name: re.compile(pattern) for name, pattern in TABLES["methods_by_form"].items()}


def _names(interpreter: Interpreter, uses: list[LibraryUse]) -> ScriptNames:
    """What the script calls the results of its calls, and the objects of which a file has only one."""
    assigned: dict[int, str] = {}
    statements: set[int] = set()
    text: str | None
    for source in {module.scope.source.shown: module.scope.source for module in interpreter.files.values()}.values():
        assigned |= dict(_assigned(source))
        statements |= {id(node.value) for node in ast.walk(source.tree) if isinstance(node, ast.Expr)}
    for seen in (seen for seen in uses if seen.name in LOADERS and id(seen.node) not in assigned):
        if entry := entry_of(seen.source.tree, seen.node):
            assigned[id(seen.node)] = variable_of(entry)
    several: dict[tuple[str, str], set[str]] = {}
    for seen in uses:
        word, text = _object_of(seen, assigned)
        if word and text:
            several.setdefault((seen.source.shown, word), set()).add(text)
    only = {key: next(iter(texts)) for key, texts in several.items() if len(texts) == 1}
    nearest = words_of_steps(uses)
    modules = frozenset(interpreter.modules_by_use())
    library = {id(seen.node): seen.name for seen in uses if seen.arguments is not None}
    rows = {row.torch for name in set(library.values()) if (row := row_of(name)) is not None}
    of_labels = LABELS["names"] if LABELS["loss"] in rows else None
    return ScriptNames(assigned, only, modules, nearest, frozenset(statements), library, of_labels)


def _assigned(source: ScriptFile) -> Iterator[tuple[int, str]]:
    """The node of every assigned value and of every base class, and the text of the variable or the class's name."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ClassDef):
            yield from ((id(base), node.name) for base in node.bases)
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            pair = node.targets[0], node.value
            if (
                isinstance(pair[0], ast.Tuple)
                and isinstance(pair[1], ast.Tuple)
                and len(pair[0].elts) == len(pair[1].elts)
            ):
                yield from ((id(one), ast.unparse(to)) for to, one in zip(pair[0].elts, pair[1].elts, strict=True))
            yield id(node.value), ast.unparse(node.targets[0]).strip("()")
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            yield id(node.value), ast.unparse(node.target)


def _object_of(seen: LibraryUse, assigned: Texts) -> tuple[str, str]:
    """The word of the rows' code and the variable of an object that is used or made here; empty where there is none."""
    row = row_of(seen.name)
    if row is None or seen.arguments is None or not isinstance(seen.node, ast.Call):
        return "", ""
    made = {"optimizer": "optimizer", "loss": "loss_fn"}.get(row.kind) or (
        "scaler" if row.torch == WORDS["scaler"] else ""
    )
    if made:
        return made, assigned.get(id(seen.node), "")
    trained = row.torch in ("torch.nn.Module.train", "torch.nn.Module.parameters")
    held = seen.node.func.value if trained and isinstance(seen.node.func, ast.Attribute) else None
    if isinstance(held, (ast.Name, ast.Attribute)) and family_of_value(seen.receiver or Value()) != "loss":
        return "net", ast.unparse(held)
    return "", ""


def _size(group: list[LibraryUse]) -> int:
    """The length of a node's source, which is smaller for a node inside."""
    node = group[0].node
    lines = (node.end_lineno or node.lineno) - node.lineno
    return lines * 10_000 + (node.end_col_offset or 0) - node.col_offset


def _use(seen: LibraryUse, texts: Texts, names: ScriptNames, mode: str, target: str) -> tuple[Use, str | None]:
    """The use, and its text as a part of another call, where it has one."""
    row = row_of(seen.name)
    common = {
        "torch": seen.name,
        "file": seen.source.shown,
        "line": seen.node.lineno,
        "source": seen.source.text(seen.node),
        "certainty": NEVER if seen.never else seen.certainty,
        "condition": seen.condition,
        "called": seen.arguments is not None,
    }
    if row is None:
        return Use(way=NO_ROW, **common), None  # type: ignore[arg-type]
    status = status_of(row, mode, target) if row.mindspore else _status_in_words(row, mode, target)
    crossed = Rewritten(left_out(seen, row, texts))
    if common["called"] and row.mindspore and row.kind != "script":
        crossed = rewrite(seen, row, texts)
    crossed, value = applied(row, seen, crossed, texts, statement=id(seen.node) in names.statements)
    only = ONLY_FOR.get(row.torch)  # of one of the row's names, which another does not need
    other = only is not None and seen.name != only
    code = Filled(None) if other else filled(row, seen, texts, names)
    words = code.text
    notes = [*crossed.notes, *(str(error) for error in (crossed.refused, crossed.mistaken) if error), *code.notes]
    if seen.name.startswith("torch.Tensor.") and find(seen.name).in_place and words is None:
        notes.append(IN_PLACE)
    notes += _remarks(seen, row)
    if names.labels and (crossed.text or "").endswith(LABELS["ends"]):
        named = f"{common['source']} {names.assigned.get(id(seen.node), '')}"
        notes += [LABELS["note"]] if re.search(names.labels, named) else []
    printed = value if value is not None else code.inside
    left = left_as_it_is(seen.node, texts, names) if common["called"] else {}
    left = {
        name: None for name in left if re.search(rf"\b{re.escape(name.rpartition('.')[2])}\b", printed or words or "")
    }
    if left:
        notes.append(f"left as the script has it: {', '.join(left)}")
        names.left[id(seen.node)] = left
    use = Use(
        way=_way(row, status, crossed, changed=bool(words or left)),
        status=status,
        row=row.torch,
        kind=row.kind,
        mindspore=crossed.other or row.mindspore,
        rewritten=crossed.text,
        rewrite=words,
        notes=tuple(notes),
        why=row.why,
        refused=without_row(row, crossed.refused) if crossed.refused else None,
        pitfalls=row.pitfalls,
        docs=dict(row.docs),
        **common,  # type: ignore[arg-type]
    )
    return use, printed


def _remarks(seen: LibraryUse, row: Row) -> Iterator[str]:
    """What is to be said of a method by the object that it is called on, of a loader by the table that holds it."""
    if seen.name in LOADERS and (entry := entry_of(seen.source.tree, seen.node)):
        name = variable_of(entry)
        yield f"{entry} is {name} here; what a loop goes over is {name}_batches"
    if not isinstance(seen.node, ast.Call) or not isinstance(seen.node.func, ast.Attribute):
        return
    held = seen.node.func.value
    perhaps = row_of(seen.perhaps) if seen.perhaps else None
    if perhaps is not None:
        yield f"{seen.source.text(held)} is taken for a module; of a {seen.perhaps.rpartition('.')[0]}: {perhaps.why}"
    if seen.name in ("torch.Tensor.to", "torch.Tensor.cuda") and isinstance(held, ast.Call):
        of = row_of(seen.receiver.name) if isinstance(seen.receiver, LibraryObject) else None
        if of is not None and of.torch == "torch.nn.Parameter":
            yield "on a GPU torch gives a plain tensor, which no module registers or trains; here a Parameter stays one"
    while isinstance(held, ast.Call) and isinstance(held.func, ast.Attribute) and row.torch == "torch.Tensor.numpy":
        if held.func.attr == "cpu":
            yield (
                "the array is the tensor's own memory, where cpu() had copied it from a GPU: "
                "before it is written into, .asnumpy().copy()"
            )
        held = held.func.value


def _status_in_words(row: Row, mode: str, target: str) -> str:
    """The status of a row whose counterpart is not a name: something to write in another way, or nothing at all."""
    found = row.status["ascend" if target == "Ascend" else mode]
    return NOT_RUN if target == "GPU" and found != MISSING else found


def _way(row: Row, status: str, crossed: Rewritten, *, changed: bool) -> str:
    if status == MISSING or (crossed.refused and not has_remedy(row, crossed.refused)):
        return MISSING
    if crossed.refused or crossed.mistaken or changed:
        return BY_HAND
    return COMPOSED if crossed.other or row.composed else DIRECT
