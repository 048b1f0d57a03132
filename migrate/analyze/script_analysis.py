"""`msmigrate analyze train.py`: every use of torch and its libraries in a script, and its conversion."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ...errors import BadInput
from ...mappings import table
from ...mappings.aliases import find, row_of
from ...mappings.rows import MISSING, NOT_RUN, Row
from ..source import library_names
from ..source.infer.abstract_values import (
    DictValue,
    LibraryObject,
    LibraryUse,
    ScriptFunction,
    ScriptObject,
    Value,
    known,
)
from ..source.infer.interpreter import CERTAINTIES, DEFAULT, Interpreter
from ..source.library_names import MODULE, TABLES
from ..source.source_files import ScriptFile
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
from .rewritten_call import (
    WORDS,
    Capitals,
    Filled,
    Filler,
    Rewritten,
    ScriptNames,
    Texts,
    family_of_value,
    filled,
    left_out,
    rewrite,
    text_of,
)

NEVER = "never"  # the certainty of what only another script runs
WAYS = (DIRECT, COMPOSED, BY_HAND, MISSING, NO_ROW)  # from the best to the worst
# rows whose text is about only one of their names -> that name
ONLY_FOR = {"torch.zeros": "torch.empty", "torch.zeros_like": "torch.empty_like"}
TRIFLES = ("torch.Tensor", "torch.nn.Module", "torch.dtype", "torch.device")  # in annotations and isinstance


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
    def pitfalls(self) -> dict[str, list[Use]]:
        """The faults that rows warn of and the script can have -> the uses of these rows."""
        found: dict[str, list[Use]] = {}
        for use in self.uses:
            for fault in use.pitfalls:
                found.setdefault(fault, []).append(use)
        text = "\n".join(line for file in self.interpreter.files.values() for line in file.scope.source.lines)
        faults = table.faults()
        possible = [
            fault for fault in found if faults[fault].needs is None or re.search(faults[fault].needs or "", text)
        ]
        return {fault: found[fault] for fault in possible}

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
                at = next((one for one in inside if one.name.lower() in ends and (one.is_dir() or one.is_file())), at)
                if at.name.lower() not in ends:
                    break
            else:
                found = os.path.relpath(at, self.interpreter.folder)
                if Path(found.removesuffix(".py")).parts[-len(parts) :] != tuple(parts):
                    return found
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
    imports neither torch nor its libraries.
    """
    check_target(mode, target)
    script = Path(path)
    interpreter = Interpreter(script.parent)
    try:
        interpreter.read(script)
    except RecursionError:
        raise BadInput(f"{path}: nested too deeply to be read") from None
    if not any(name in library_names.FRAMEWORKS for name in interpreter.libraries):
        tops = ", ".join(library_names.FRAMEWORKS[:4])
        already = any(name.partition(".")[0] == "mindspore" for name in interpreter.not_there)
        hint = (
            "; it is MindSpore's already, and msmigrate mappings NAME says what a name is in torch" if already else ""
        )
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
        if not unseen and (seen.arguments is not None or seen.name not in TRIFLES):
            places.setdefault((id(seen.node), seen.name), []).append(seen)
    texts: dict[int, str] = {}
    names = _names(interpreter, [group[0] for group in places.values()])
    found = []
    for group in sorted(places.values(), key=_size):
        best = min(group, key=lambda seen: CERTAINTIES.index(seen.certainty))
        use, inside = _use(best, texts, names, mode, target)
        found.append(use)
        if inside is not None and use.called:
            texts[id(best.node)] = inside
    return found


def _names(interpreter: Interpreter, uses: list[LibraryUse]) -> ScriptNames:
    """What the script calls the results of its calls, and the objects of which a file has only one."""
    assigned: dict[int, str] = {}
    text: str | None
    for source in {module.scope.source.shown: module.scope.source for module in interpreter.files.values()}.values():
        assigned |= dict(_assigned(source))
    several: dict[tuple[str, str], set[str]] = {}
    for seen in uses:
        word, text = _object_of(seen, assigned)
        if word and text:
            several.setdefault((seen.source.shown, word), set()).add(text)
    only = {key: next(iter(texts)) for key, texts in several.items() if len(texts) == 1}
    steps = sorted((seen.source.shown, seen.node.lineno, text) for seen in uses if (text := _stepped(seen)))
    trained = {
        seen.source.shown + text: net
        for seen in uses
        if (text := assigned.get(id(seen.node))) and (net := _trained(seen))
    }
    nearest: dict[int, dict[str, str]] = {}
    for seen in uses:
        row = row_of(seen.name)
        if row is not None and row.torch == "torch.Tensor.backward":
            after = next((t for file, line, t in steps if file == seen.source.shown and line >= seen.node.lineno), "")
            net = trained.get(seen.source.shown + after, "")
            nearest[id(seen.node)] = {word: text for word, text in (("optimizer", after), ("net", net)) if text}
    return ScriptNames(assigned, only, frozenset(interpreter.modules_by_use()), nearest)


def _stepped(seen: LibraryUse) -> str:
    """The optimizer that makes a step here."""
    row = row_of(seen.name)
    if row is None or not isinstance(seen.node, ast.Call) or not isinstance(seen.node.func, ast.Attribute):
        return ""
    if row.torch == "torch.optim.Optimizer.step":
        return ast.unparse(seen.node.func.value)
    return ast.unparse(seen.node.args[0]) if row.torch == "torch.amp.GradScaler.step" and seen.node.args else ""


def _trained(seen: LibraryUse) -> str:
    """The one module of whose parameters an optimizer is made."""
    row = row_of(seen.name)
    if row is None or row.kind != "optimizer" or seen.arguments is None:
        return ""
    parts = [part for argument in seen.arguments for part in ast.walk(argument.node)]
    methods = [
        part for part in parts if isinstance(part, ast.Attribute) and part.attr in ("parameters", "named_parameters")
    ]
    nets = {ast.unparse(part.value) for part in methods}
    (net,) = nets if len(nets) == 1 else ("",)
    return "" if "." in net.removeprefix("self.") else net  # not for one layer of it


def _assigned(source: ScriptFile) -> Iterator[tuple[int, str]]:
    """The node of every assigned value and of every base class, and the text of the variable or the class's name."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ClassDef):
            yield from ((id(base), node.name) for base in node.bases)
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
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
    only = ONLY_FOR.get(row.torch)  # of one of the row's names, which another does not need
    other = only is not None and seen.name != only
    code = Filled(None) if other else filled(row, seen, texts, names, FILLERS.get(row.torch))
    words = code.text
    notes = [*crossed.notes, *(str(error) for error in (crossed.refused, crossed.mistaken) if error), *code.notes]
    if seen.name.startswith("torch.Tensor.") and find(seen.name).in_place and words is None:
        notes.append(IN_PLACE)
    notes += _remarks(seen, row)
    use = Use(
        way=_way(row, status, crossed, words),
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
    return use, crossed.text if crossed.text is not None else code.inside


def _remarks(seen: LibraryUse, row: Row) -> Iterator[str]:
    """What is to be said of a method by the object that it is called on."""
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


def _way(row: Row, status: str, crossed: Rewritten, words: str | None) -> str:
    if status == MISSING or (crossed.refused and not has_remedy(row, crossed.refused)):
        return MISSING
    if crossed.refused or crossed.mistaken or words:
        return BY_HAND
    return COMPOSED if crossed.other or row.composed else DIRECT


# what a row's code takes from a call besides the texts of its arguments: the code, and what is to be said

STATES = ("torch.nn.Module.state_dict", "torch.optim.Optimizer.state_dict")
OF_TORCH = re.compile(r"\.(pth\.tar|pth|pt|bin|pkl|tar|ckpt)(?=[\"'])")  # how files of weights end


def _checkpoint(capitals: Capitals, notes: list[str]) -> None:
    """The path of a file in MindSpore's format, in place of torch's."""
    text = capitals.get("f", "")
    ends = [*OF_TORCH.finditer(text)]
    if ends:
        capitals["f"] = f"{text[: ends[-1].start()]}.ckpt{text[ends[-1].end() :]}"
    elif text:
        notes.append(f"{text}: a str that ends in .ckpt; save_checkpoint adds the ending, load_checkpoint asks for it")


def _saved(
    seen: LibraryUse, template: str, capitals: Capitals, texts: Texts, names: ScriptNames
) -> tuple[str, list[str]]:
    """torch.save: the cell whose parameters are saved, and what of the file is not carried."""
    notes: list[str] = []
    _checkpoint(capitals, notes)
    value = seen.get("obj", 0)
    held = value.pairs if isinstance(value, DictValue) else {"": value}
    states = {key: one.seen for key, one in held.items() if isinstance(one, LibraryObject) and one.seen is not None}
    cells = {key: of for key, of in states.items() if of.name in STATES and isinstance(of.node, ast.Call)}
    first = next((key for key, of in cells.items() if of.name == STATES[0]), next(iter(cells), None))
    if first is not None:
        node = cells[first].node
        assert isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        capitals["obj"] = text_of(cells[first], node.func.value, texts)
        template = template.partition("  #")[0]
    elif family_of_value(value or Value()) == MODULE or (seen.source.shown, capitals.get("obj", "")) in names.modules:
        template = template.partition("  #")[0]
        notes.append("the parameters only: the model itself is made by its class before they are loaded")
    left = [repr(key) for key in held if key != first and key != ""]
    if left and isinstance(value, DictValue):
        notes.append(
            f"not carried: {', '.join(left)}; numbers and texts as append_dict={{...}}, another cell or an optimizer "
            "by a save_checkpoint of its own"
        )
        if first is None:
            capitals.pop("obj", None)
    return template, notes


def _loaded(
    seen: LibraryUse, template: str, capitals: Capitals, texts: Texts, names: ScriptNames
) -> tuple[str, list[str]]:
    """torch.load: the file's name, and a whole model in it."""
    notes: list[str] = []
    before = capitals.get("f", "")
    _checkpoint(capitals, notes)
    if before[:1] in "\"'" and capitals["f"] != before and len(before.split()) == 1:
        template = template.replace("FILE.pth FILE.ckpt", f"{before[1:-1]} {capitals['f'][1:-1]}")
    result = names.assigned.get(id(seen.node), "")
    if (seen.source.shown, result) in names.modules:
        template = template.replace("parameters", "weights")
        notes.append(
            f"the file holds a whole model: make {result} by its class, then "
            f"mindspore.load_param_into_net({result}, weights)"
        )
    return template, notes


def _load_state(
    seen: LibraryUse, template: str, capitals: Capitals, texts: Texts, names: ScriptNames
) -> tuple[str, list[str]]:
    """load_state_dict: MindSpore's file has no entries inside of entries; strict=False leaves the check out."""
    state = next((argument.node for argument in seen.arguments or [] if argument.name in (None, "state_dict")), None)
    while isinstance(state, ast.Subscript) and isinstance(state.slice, ast.Constant):
        state = state.value
        capitals["state_dict"] = text_of(seen, state, texts)
    strict = seen.get("strict", 1)
    if strict is not None and known(strict) is not True:
        template = template.partition("\n")[0]
    return template, []


def _attribute(
    seen: LibraryUse, template: str, capitals: Capitals, texts: Texts, names: ScriptNames
) -> tuple[str, list[str]]:
    """register_buffer and register_parameter: the attribute of that name."""
    try:
        name = ast.literal_eval(capitals.get("name", ""))
    except (ValueError, SyntaxError):
        name = None
    value = template.partition(" = ")[2].partition("  #")[0]
    if capitals.get("tensor", capitals.get("param")) == "None":
        value = "None"
    if isinstance(name, str) and name.isidentifier():
        return f"net.{name} = {value}", []
    return f"setattr(net, NAME, {value})", []


def _loader(
    seen: LibraryUse, template: str, capitals: Capitals, texts: Texts, names: ScriptNames
) -> tuple[str, list[str]]:
    """DataLoader: the columns that the script's own data set gives, where they are known."""
    data: Value | None = seen.get("dataset", 0)
    while isinstance(data, LibraryObject) and data.of is not None:
        data = data.of
    item = data.of.find("__getitem__") if isinstance(data, ScriptObject) else None
    if not isinstance(item, ScriptFunction) or isinstance(item.node, ast.Lambda):
        return template, []
    given = [part.value for part in ast.walk(item.node) if isinstance(part, ast.Return) and part.value is not None]
    numbers = {len(one.elts) if isinstance(one, ast.Tuple) else 1 for one in given}
    if any(isinstance(one, ast.Dict) for one in given):
        return template, ["__getitem__ returns a dict: GeneratorDataset takes a tuple, in the order of COLUMNS"]
    elements = given[0].elts if len(given) == 1 and isinstance(given[0], ast.Tuple) else []
    columns = [one.id for one in elements if isinstance(one, ast.Name)]
    if len(numbers) != 1 or not elements:
        return template, []
    notes = []
    if len(elements) != 2:
        notes.append(f"__getitem__ returns {len(elements)} values: as many columns, and names in the loop over batches")
    if len(columns) == len(elements) == len(set(columns)):
        capitals["columns"] = f"[{', '.join(repr(name) for name in columns)}]".replace("'", '"')
        template = template.replace("for image, label in", f"for {', '.join(columns)} in")
    return template, notes


def _clipped(
    seen: LibraryUse, template: str, capitals: Capitals, texts: Texts, names: ScriptNames
) -> tuple[str, list[str]]:
    """clip_grad_norm_, whose result the script keeps."""
    kept = names.assigned.get(id(seen.node))
    return template, [f"{kept} is the norm before clipping in torch; these are the gradients"] if kept else []


def _tensor(
    seen: LibraryUse, template: str, capitals: Capitals, texts: Texts, names: ScriptNames
) -> tuple[str, list[str]]:
    """torch.Tensor and torch.LongTensor: of values by the dtype of the class, or of sizes."""
    kind = seen.name.rpartition(".")[2].removesuffix("Tensor")
    capitals["dtype"] = f"mindspore.{TABLES['legacy_dtypes'].get(kind, 'float32')}"
    given = [known(argument.value) for argument in seen.arguments or []]
    if len(given) != 1 or isinstance(given[0], int):
        sizes = ", ".join(seen.source.text(argument.node) for argument in seen.arguments or [])
        return f"mindspore.ops.zeros(({sizes},), DTYPE)" if given else "mindspore.Tensor([], DTYPE)", []
    return template, []


def _scaler(
    seen: LibraryUse, template: str, capitals: Capitals, texts: Texts, names: ScriptNames
) -> tuple[str, list[str]]:
    """GradScaler: a factor that MindSpore's scaler refuses."""
    factor = capitals.get("growth_factor", "")
    refused = factor.replace(".", "", 1).isdigit() and not factor.isdigit()
    return template, [f"growth_factor={factor}: DynamicLossScaler takes an int only"] if refused else []


FILLERS: dict[str, Filler] = {
    "torch.save": _saved,
    "torch.load": _loaded,
    "torch.nn.Module.load_state_dict": _load_state,
    "torch.nn.Module.register_buffer": _attribute,
    "torch.nn.Module.register_parameter": _attribute,
    "torch.utils.data.DataLoader": _loader,
    "torch.nn.utils.clip_grad_norm_": _clipped,
    "torch.Tensor": _tensor,
    "torch.amp.GradScaler": _scaler,
}
