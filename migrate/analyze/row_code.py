"""The code of a row that is more than a call, with the script's own names and values in it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from shlex import quote
from typing import NamedTuple

from ...mappings.aliases import index, restated, row_of
from ...mappings.rows import Row
from ..library_names import MODULE, TABLES, dtype_name, is_dtype
from ..read_script.abstract_values import (
    CallArgument,
    DictValue,
    LibraryObject,
    LibraryUse,
    ScriptFunction,
    ScriptObject,
    Value,
    is_known,
    known,
)
from ..source_files import all_parameters
from . import script_steps
from .rewritten_call import Texts, operand, replaced, rewrite, text_of
from .script_steps import Batches, Function, Sample, batches_of, function_of, names_of, parents, sample_of, step_of

NAMES_TO_FILL = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*\b")
FILLED_BY: dict[str, dict[str, str | None]] = TABLES["filled_by"]
WORDS: dict[str, str] = TABLES["words"]
OWN_CODE: dict[str, str] = TABLES["own_code"]
SUBSET = "torch.utils.data.Subset"


@dataclass(frozen=True)
class ScriptNames:
    """What the script itself calls its objects.

    assigned: the node of a call (or of a base class) -> the variable that its result becomes, or the class. only: the
    file and a word of the rows' code -> the one such object of the file.
    """

    assigned: Mapping[int, str] = field(default_factory=dict)
    only: Mapping[tuple[str, str], str] = field(default_factory=dict)
    modules: frozenset[tuple[str, str]] = frozenset()  # the file and the name of what is a module by its use
    nearest: Mapping[int, Mapping[str, str]] = field(default_factory=dict)  # at a call's node: words and variables
    statements: frozenset[int] = frozenset()  # the nodes of calls whose result is not used
    library: Mapping[int, str] = field(default_factory=dict)  # the node of a call -> what of a library it calls
    labels: str | None = None  # what names of labels match, where whole numbers of theirs have to be of 32 bits
    left: dict[int, dict[str, None]] = field(default_factory=dict)  # at a call's node: what its text has of a library


Capitals = dict[str, str]  # the name of an argument -> its text
# changes the code and these texts; returns the code, and what is to be said
Filler = Callable[[LibraryUse, str, Capitals, Texts, ScriptNames], tuple[str, list[str]]]


class Filled(NamedTuple):
    """A row's code with the script's own names and values.

    inside: as a part of another call, where it is one expression that has everything of the call.
    """

    text: str | None
    inside: str | None = None
    notes: tuple[str, ...] = ()


def filled(row: Row, seen: LibraryUse, texts: Texts, names: ScriptNames) -> Filled:
    """The row's text on what to write by hand, with the call's own arguments in place of the names in capitals, and
    the script's own variables in place of `net`, `optimizer` and the like.

    `BATCH_SIZE` is the call's `batch_size`, or torch's default where the call gives none; a name in capitals that no
    argument has (EPOCHS, COLUMNS) is left for the reader to fill in, as are all where the function is not called.
    """
    if row.rewrite is None:
        return Filled(None)
    template = next((OWN_CODE[name] for name in restated(seen.name) if name in OWN_CODE), row.rewrite)
    notes: list[str] = []
    capitals, given = _arguments(row, seen, texts)
    capitals.setdefault("inputs", ", ".join(text if key.isdigit() else f"{key}={text}" for key, text in given.items()))
    fill = FILLERS.get(row.torch)
    if seen.arguments is None:
        template = NAMED.get(row.torch, lambda name, template: template)(seen.name, template)
    elif fill is not None:
        template, notes = fill(seen, template, capitals, texts, names)
    own, receiver = _own_words(row, seen, texts, names) if row.kind == "script" else ({}, None)
    used: set[str] = set()

    def filling(found: re.Match[str]) -> str:
        text = own.get(found[0], capitals.get(found[0].lower(), found[0]))
        used.add(found[0] if found[0] in own else found[0].lower())
        return text

    # not in a string, not as an attribute, not as an argument's name, and not as a word of a remark
    words = "".join(rf"(?<!the )(?<![\w.\"'])(?:{re.escape(name)})(?![\w\"'=])|" for name in own)
    text = re.sub(words + NAMES_TO_FILL.pattern, filling, template)
    for name, remark in TABLES["not_carried"].get(row.torch, {}).items():
        if name in given:
            notes.append(f"{name}={given[name]}: {remark}")
    if row.kind == "script" and row.cases and seen.arguments is not None:
        crossed = rewrite(seen, row, texts)  # for what it says of values that have no counterpart
        notes += [str(error) for error in (crossed.refused, crossed.mistaken) if error]
    lost = set(given) - used - {"*", "**"}
    whole = not lost and "*" not in given and "**" not in given and (receiver is None or receiver in used)
    return Filled(text, _expression(text, own) if whole and seen.arguments is not None else None, tuple(notes))


def _expression(text: str, own: Mapping[str, str]) -> str | None:
    """The one expression that the code is; of an assignment to the variable of the result, what is assigned."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if len(tree.body) != 1 or NAMES_TO_FILL.search(re.sub(r"([\"']).*?\1|#.*|\bO\d\b", "", text)):
        return None
    (statement,) = tree.body
    if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) in (*TABLES["results"], *own.values()):
        return ast.get_source_segment(text, statement.value)
    return ast.get_source_segment(text, statement.value) if isinstance(statement, ast.Expr) else None


def _arguments(row: Row, seen: LibraryUse, texts: Texts) -> tuple[dict[str, str], dict[str, str]]:
    """The texts of the names in capitals, and those of all arguments that are given, by their names."""
    names = FILLED_BY.get(row.torch, {})
    if seen.arguments is None:
        return {}, {}
    unpacked = any(argument.name in ("*", "**") for argument in seen.arguments)  # these may hold any argument
    capitals: dict[str, str] = {name: text for name, text in names.items() if text is not None and not unpacked}
    by_position = () if row.torch in TABLES["keywords_only"] else tuple(names)
    given: dict[str, str] = {}
    plain = [argument for argument in seen.arguments if argument.name is None]
    for place, argument in enumerate(plain):
        given[by_position[place] if place < len(by_position) else f"{place}"] = _written_out(seen, argument, texts)
    given |= {argument.name: _written_out(seen, argument, texts) for argument in seen.arguments if argument.name}
    capitals |= {name: text for name, text in given.items() if name in names}
    for name in TABLES["whole_numbers"].get(row.torch, ()):
        capitals[name] = _whole(capitals.get(name, name.upper()))
    for name, least in TABLES["at_least"].get(row.torch, {}).items():
        if name in given:
            capitals[name] = _at_least(least, given[name])
    return capitals, given


def _written_out(seen: LibraryUse, argument: CallArgument, texts: Texts) -> str:
    text = " ".join(f"{text_of(seen, argument.node, texts)}{argument.at}".split())
    return re.sub(r"\btorch\.(\w+)\b(?!\()", lambda it: dtype_name(it[1]) if is_dtype(it[1]) else it[0], text)


def _whole(text: str) -> str:
    """A number as an int, which MindSpore takes only; an expression is converted when it runs."""
    try:
        number = float(text)
    except ValueError:
        return text if text.isupper() else f"int({text})"
    return str(int(number)) if number.is_integer() else text


def _at_least(least: int, text: str) -> str:
    """A number that is no smaller; of an expression when it runs."""
    return str(max(least, int(text))) if text.isdigit() else f"max({least}, {text})"


def _own_words(row: Row, seen: LibraryUse, texts: Texts, names: ScriptNames) -> tuple[dict[str, str], str | None]:
    """The script's variables for the words of a row's code, and the word that is the receiver of the method."""
    own = {word: text for (file, word), text in names.only.items() if file == seen.source.shown}
    own |= names.nearest.get(id(seen.node), {})
    result = names.assigned.get(id(seen.node))
    for name in TABLES["results"] if result is not None else ():
        own[name] = result or name
    own |= {"batches": f"{script_steps.variable_of(result)}_batches"} if result and "," not in result else {}
    for argument in seen.arguments or []:
        for word, family in WORDS.items():
            if family == family_of_value(argument.value) and argument.name not in ("*", "**"):
                own[word] = text_of(seen, argument.node, texts)
    receiver = None
    called = isinstance(seen.node, ast.Call) and isinstance(seen.node.func, ast.Attribute)
    if called and (seen.receiver is not None or ast.unparse(seen.node).startswith("super(")):
        assert isinstance(seen.node, ast.Call) and isinstance(seen.node.func, ast.Attribute)
        owner = row.torch.rpartition(".")[0]
        receiver = next((word for word, of in WORDS.items() if OWNER_OF.get(of, of) == owner), None)
        held = seen.node.func.value
        text = text_of(seen, held, texts)
        if receiver is not None:
            own[receiver] = result if result and isinstance(held, ast.Call) and receiver == "net" else operand(text)
    return own, receiver


OWNER_OF = {family: owners[0] for family, owners in TABLES["owners"].items()}


def family_of_value(value: Value) -> str:
    if isinstance(value, ScriptObject):
        return value.of.family()
    if isinstance(value, LibraryObject):
        row = row_of(value.name) if value.name else None
        return "loss" if row is not None and row.kind == "loss" else value.family or (row.torch if row else "")
    return ""


# what a row's code takes from a call besides the texts of its arguments: the code, and what is to be said

STATES = ("torch.nn.Module.state_dict", "torch.optim.Optimizer.state_dict")


def _parameters(
    seen: LibraryUse, template: str, capitals: Capitals, texts: Texts, names: ScriptNames
) -> tuple[str, list[str]]:
    """model.parameters(): a list has no next()."""
    if not script_steps.next_takes(seen.source.tree, seen.node):
        return template, []
    return template.replace("trainable_params()", "trainable_params()[0]"), ["in place of next(…), which takes no list"]


def _saved(
    seen: LibraryUse, template: str, capitals: Capitals, texts: Texts, names: ScriptNames
) -> tuple[str, list[str]]:
    """torch.save: the cell whose parameters are saved, and what of the file is not carried."""
    notes: list[str] = []
    script_steps.checkpoint(capitals, notes)
    value = seen.get("obj", 0)
    held = value.pairs if isinstance(value, DictValue) else {"": value}
    states = {key: one.seen for key, one in held.items() if isinstance(one, LibraryObject) and one.seen is not None}
    cells = {key: of for key, of in states.items() if of.name in STATES and isinstance(of.node, ast.Call)}
    first = next((key for key, of in cells.items() if of.name == STATES[0]), next(iter(cells), None))
    if first is not None:
        capitals["obj"] = _here(cells[first], seen, texts)
        if not capitals["obj"]:
            del capitals["obj"]
            notes.append(f"OBJ: the cell whose {cells[first].source.text(cells[first].node)} is saved")
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


def _here(method: LibraryUse, call: LibraryUse, texts: Texts) -> str:
    """What is the object of a method at another call: in the function that is called there, what it is given as; empty
    where that is not known."""
    assert isinstance(method.node, ast.Call) and isinstance(method.node.func, ast.Attribute)
    held = method.node.func.value
    inside = function_of(method.source.tree, method.node)
    if inside is function_of(call.source.tree, call.node):
        return text_of(method, held, texts)
    given = next((part for part in ast.walk(call.node) if part is not call.node and isinstance(part, ast.Call)), None)
    if given is None or not isinstance(inside, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return ""
    names = [one.arg for one in all_parameters(inside.args)]
    owner = given.func.value if isinstance(given.func, ast.Attribute) else None
    if names[:1] in (["self"], ["cls"]):
        own = ast.unparse(held)
        if owner is not None and own.partition(".")[0] == "self":
            return text_of(call, owner, texts) + own.removeprefix("self")
        names = names[1:]
    values = dict(zip(names, given.args, strict=False)) | {one.arg: one.value for one in given.keywords if one.arg}
    return text_of(call, values[held.id], texts) if isinstance(held, ast.Name) and held.id in values else ""


def _loaded(
    seen: LibraryUse, template: str, capitals: Capitals, texts: Texts, names: ScriptNames
) -> tuple[str, list[str]]:
    """torch.load: the file's name, and a whole model in it."""
    notes: list[str] = []
    before = capitals.get("f", "")
    script_steps.checkpoint(capitals, notes)
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


def _device(
    seen: LibraryUse, template: str, capitals: Capitals, texts: Texts, names: ScriptNames
) -> tuple[str, list[str]]:
    """torch.device: what set_device does not return, where the script reads it."""
    result = names.assigned.get(id(seen.node), "")
    read = any(
        isinstance(part, ast.Attribute) and part.attr in ("type", "index") and ast.unparse(part.value) == result
        for part in ast.walk(seen.source.tree)
    )
    around = parents(seen.source.tree).get(seen.node)
    if not (read if result else isinstance(around, (ast.Return, ast.Attribute, ast.IfExp))):
        return template, []
    form = TABLES["read_results"]["torch.device"]
    return template + (form if result else form.replace("RESULT = ", "")).replace("RESULT", result), []


def _loader(
    seen: LibraryUse, template: str, capitals: Capitals, texts: Texts, names: ScriptNames
) -> tuple[str, list[str]]:
    """DataLoader: the samples that it takes, the columns of the script's own data set, and the script's own loop."""
    forms: dict[str, str] = TABLES["loaders"]
    data: Value | None = seen.get("dataset", 0)
    unset = {one.name for one in seen.arguments or [] if is_known(one.value) and known(one.value) is None}
    given = {one.name for one in seen.arguments or []} - unset
    part = data.seen if isinstance(data, LibraryObject) else None
    elsewhere = [forms["whole"]] * ("batch_size" in unset)
    if "batch_sampler" in given:
        template = forms["drawn"] + template.replace(forms["shuffle"], forms["drawn_samples"])
        template = template.replace(forms["size"], forms["drawn_size"])
        capitals["drawn"] = f"{script_steps.variable_of(names.assigned.get(id(seen.node), ''))}_drawn".removeprefix("_")
    elif "sampler" in given:
        template = template.replace(forms["shuffle"], forms["sampler"])
    if "batch_size" in unset:
        template = "\n".join(line for line in template.splitlines() if forms["size"] not in line)
    if not given & {"sampler", "batch_sampler"} and part is not None and SUBSET in restated(part.name):
        own, _ = _arguments(index()[SUBSET], part, texts)
        near = function_of(part.source.tree, part.node) is function_of(seen.source.tree, seen.node)
        if near and {"dataset", "indices"} <= own.keys():
            capitals |= {"dataset": own["dataset"], "indices": own["indices"]}
            shuffled = forms.get(f"part_{capitals.get('shuffle')}", forms["part"])
            template = template.replace(forms["shuffle"], shuffled)
        else:
            elsewhere += [forms["part_elsewhere"].replace("DATASET", capitals.get("dataset", "DATASET"))]
    while isinstance(data, LibraryObject) and data.of is not None:
        data = data.of
    sample = None
    if isinstance(data, ScriptObject):
        of = data.of

        def method(name: str) -> Function | None:
            found = of.find(name)
            node = found.node if isinstance(found, ScriptFunction) else None
            return None if isinstance(node, ast.Lambda) else node

        item = method("__getitem__")
        sample = None if item is None else sample_of(item, method)
    batches = batches_of(seen.source.tree, seen.node, names.assigned.get(id(seen.node), ""))
    target, made, columns, notes = _columns(sample, batches)
    if (sample is not None and sample.keys) or batches.keys:
        template = template.replace(forms["tuples"], forms["dicts"])
    if columns:
        capitals["columns"] = f"[{', '.join(repr(name) for name in columns)}]".replace("'", '"')
    template = template.replace(forms["loop"], f"{target} in") if target else template
    return template.replace("...", "\n        ".join([*made, "..."])), [*elsewhere, *notes]


def _columns(sample: Sample | None, batches: Batches) -> tuple[str, list[str], list[str], list[str]]:
    """The loop's variables, the lines that make the script's own of them, the columns, and what is to be said."""
    target, notes = batches.target, []
    keys = list(sample.keys if sample is not None and sample.keys else batches.keys)
    if keys:
        of = "__getitem__ gives" if sample is not None and sample.keys else "the loop reads"
        note = f"columns: the keys that {of}; GeneratorDataset takes no dict: return a tuple of the values there"
        return target or "batch", [], keys, [note]
    own = target.split(", ") if "," in target and target.replace(", ", "").isidentifier() else []
    parts = sample.parts if sample is not None else ()
    names = own if len(own) == len(parts) else [part[0] if len(part) == 1 else "" for part in parts]
    names = [name if name and names.count(name) == 1 else f"value{place}" for place, name in enumerate(names)]
    inside = [
        [one or f"{name}_{number}" for number, one in enumerate(part)] if len(part) > 1 else [name]
        for name, part in zip(names, parts, strict=True)
    ]
    made = [f"{name} = [{', '.join(some)}]" for name, some in zip(names, inside, strict=True) if len(some) > 1]
    columns = [one for some in inside for one in some] if parts else own
    if made:
        notes.append(f"__getitem__ gives lists inside, of which batch(…) makes one array: return {', '.join(columns)}")
        return ", ".join(columns), made, columns, notes
    if len(parts) == 1:
        notes.append("__getitem__ gives one value: each batch is a list of one")
        target = f"{target or columns[0]},"
    elif parts and own and len(parts) != len(own):
        notes.append(f"__getitem__ gives {len(parts)} values, of which the loop takes {len(own)}")
    elif not parts and target and not own:
        notes.append(f"{target} is a list of the columns; where __getitem__ gives one value alone: for {target}, in …")
    notes += [
        f"{name}[0]: where __getitem__ gives a list there, batch(…) makes one array of it, and {name}[0] is the first "
        "sample: return its values one by one, each with a column"
        for name in batches.items
    ]
    return target or ", ".join(columns), [], columns, notes


def _clipped(
    seen: LibraryUse, template: str, capitals: Capitals, texts: Texts, names: ScriptNames
) -> tuple[str, list[str]]:
    """clip_grad_norm_, whose result the script keeps."""
    kept = names.assigned.get(id(seen.node))
    return template, [f"{kept} is the norm before clipping in torch; these are the gradients"] if kept else []


def _model(
    seen: LibraryUse, template: str, capitals: Capitals, texts: Texts, names: ScriptNames
) -> tuple[str, list[str]]:
    """A model of a library, as the command line names it: torchvision:resnet18(num_classes=10)."""
    library, _, name = seen.name.partition(".models.")
    plain = [argument.value for argument in seen.arguments or [] if argument.name is None]
    words = {argument.name: argument.value for argument in seen.arguments or [] if argument.name}
    if name in ("get_model", "") or library.startswith("timm"):
        first = known(next(iter([*plain[:1], *(words[one] for one in ("name", "model_name") if one in words)]), None))
        if not isinstance(first, str) or not first.isidentifier():
            return template, []
        name = first
    files = [words[one] for one in ("pretrained", "weights") if one in words]
    own = [f"{key}={known(value)!r}" for key, value in words.items() if is_known(value) and key not in OF_FILES]
    name = name.rpartition(".")[2]
    model = f"{library.partition('.')[0]}:{name}"
    capitals["model"], capitals["name"] = quote(f"{model}({', '.join(own)})") if own else model, name
    note = "the trained weights: save its state_dict in torch, and give convert-model that file as --weights"
    return template, [note] if any(known(value) or not is_known(value) for value in files) else []


OF_FILES = ("pretrained", "weights", "progress", "name", "model_name")  # arguments of models about files of weights


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


def _named_tensor(name: str, template: str) -> str:
    """torch.LongTensor where it is not called: the dtype that it names, in x.type(torch.LongTensor)."""
    kind = name.rpartition(".")[2].removesuffix("Tensor")
    dtype = TABLES["legacy_dtypes"].get(kind)
    return (
        f"mindspore.{dtype}  # as a dtype; of values: {template.replace('DTYPE', f'mindspore.{dtype}')}"
        if dtype
        else template
    )


NAMED: dict[str, Callable[[str, str], str]] = {"torch.Tensor": _named_tensor}


def _scaler(
    seen: LibraryUse, template: str, capitals: Capitals, texts: Texts, names: ScriptNames
) -> tuple[str, list[str]]:
    """GradScaler: a factor that MindSpore's scaler refuses."""
    factor = capitals.get("growth_factor", "")
    refused = factor.replace(".", "", 1).isdigit() and not factor.isdigit()
    return template, [f"growth_factor={factor}: DynamicLossScaler takes an int only"] if refused else []


def _in_mindspore(line: ast.stmt, seen: LibraryUse, texts: Texts) -> list[str]:
    """The source of a line, with the calls inside it rewritten; what torch's contexts hold stands without them."""
    if isinstance(line, ast.With):
        called = [one.context_expr for one in line.items]
        names = [ast.unparse(one.func if isinstance(one, ast.Call) else one).rpartition(".")[2] for one in called]
        cut = TABLES["contexts_without_gradient"]
        if all(name in (*cut, *TABLES["contexts_of_running"]) for name in names):
            body = [text for inner in line.body for text in _in_mindspore(inner, seen, texts)]
            sets = dict.fromkeys(name for inner in line.body for name in names_of(inner, ast.Store))
            constant = sets if any(name in cut for name in names) else {}
            return [*body, *(f"{name} = mindspore.ops.stop_gradient({name})" for name in constant)]
    if isinstance(line, ast.Assign) and len(line.targets) == 1:
        value = text_of(seen, line.value, texts)
        if value == ast.unparse(line.targets[0]):  # x = x.to(device)
            return []
    return ast.unparse(replaced(line, lambda part: texts.get(id(part)))).split("\n")


def left_as_it_is(node: ast.AST, texts: Texts, names: ScriptNames) -> dict[str, None]:
    """The calls of a library inside a node that have no text in MindSpore, and so stand there as in torch."""
    found: dict[str, None] = {}
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.withitem):
            continue
        if id(child) in names.left:
            found |= names.left[id(child)]
        elif id(child) in names.library and id(child) not in texts:
            found[names.library[id(child)]] = None
        elif id(child) not in texts:
            found |= left_as_it_is(child, texts, names)
    return found


def _backward(
    seen: LibraryUse, template: str, capitals: Capitals, texts: Texts, names: ScriptNames
) -> tuple[str, list[str]]:
    """backward(): the script's own lines as the function that MindSpore differentiates."""
    forms: dict[str, str] = TABLES["steps"]
    call = seen.node
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return template, []
    argument = next((one.node for one in seen.arguments or [] if one.name in (None, "tensors")), None)
    result = call.func.value if seen.receiver is not None else argument or call.func.value
    own = names.nearest.get(id(call), {})
    notes = []
    if "optimizer" not in own and (seen.source.shown, "optimizer") not in names.only:
        capitals["weights"] = "OPTIMIZER.parameters"
        notes.append("OPTIMIZER: MindSpore's optimizer of these weights, which makes the step")
    else:
        capitals["weights"] = f"{own.get('optimizer') or names.only[seen.source.shown, 'optimizer']}.parameters"
    step = step_of(seen.source.tree, call, result, lambda line: not _in_mindspore(line, seen, texts))
    target = ast.unparse(result) if isinstance(result, (ast.Name, ast.Attribute)) else "value"
    capitals["target"] = capitals["result"] = target
    capitals["where"] = "from a batch"
    if step.lines:
        capitals["first"], capitals["last"] = str(step.lines[0].lineno), str(call.lineno)
        capitals["where"] = f"in lines {capitals['first']} to {capitals['last']}"
    if not step.readable:
        form = "by_hand"
    else:
        lines = [text for line in step.lines for text in _in_mindspore(line, seen, texts)]
        left = [name for line in step.lines for name in left_as_it_is(line, texts, names)]
        notes += [f"left as the script has it: {', '.join(dict.fromkeys(left))}"] if left else []
        capitals["lines"] = "\n    ".join(lines)
        capitals["inputs"] = ", ".join(step.inputs)
        capitals["result"] = ", ".join([text_of(seen, result, texts), *step.kept])
        capitals["target"] = f"({', '.join([target, *step.kept])})" if step.kept else target
        form = "read_with_more" if step.kept else "read"
    earlier = own.get("earlier")
    if earlier:
        notes.append(
            f"torch adds these gradients to those of line {earlier}: where both are of the same weights, "
            "grads = tuple(one + more for one, more in zip(those, grads))"
        )
    return forms[form] + forms["summed"] * ("summed" in own), notes


def _updated(
    seen: LibraryUse, template: str, capitals: Capitals, texts: Texts, names: ScriptNames
) -> tuple[str, list[str]]:
    """step() in a function that computes no gradients."""
    passed = "passed" in names.nearest.get(id(seen.node), {})
    return template, ["grads are computed in another function: pass them on to this one"] if passed else []


def _cleared(
    seen: LibraryUse, template: str, capitals: Capitals, texts: Texts, names: ScriptNames
) -> tuple[str, list[str]]:
    """zero_grad(), where the script adds up the gradients of several batches."""
    return (TABLES["steps"]["cleared"] if "summed" in names.nearest.get(id(seen.node), {}) else template), []


FILLERS: dict[str, Filler] = {
    "torch.Tensor.backward": _backward,
    "torch.optim.Optimizer.step": _updated,
    "torch.optim.Optimizer.zero_grad": _cleared,
    "torch.nn.Module.parameters": _parameters,
    "torch.save": _saved,
    "torch.load": _loaded,
    "torch.nn.Module.load_state_dict": _load_state,
    "torch.nn.Module.register_buffer": _attribute,
    "torch.nn.Module.register_parameter": _attribute,
    "torch.utils.data.DataLoader": _loader,
    "torch.nn.utils.clip_grad_norm_": _clipped,
    "torch.Tensor": _tensor,
    "torch.amp.GradScaler": _scaler,
    "torch.device": _device,
    "torchvision.models.get_model": _model,
    "timm.create_model": _model,
}
