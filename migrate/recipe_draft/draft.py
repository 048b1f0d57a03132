"""A recipe drafted from a script: text for a person to read, correct and keep.

Every value names the line of the script that it comes from. A value that could not be read is ???, and everything else
that the script does is listed with its line. Entries that the recipe's reader refuses can be taken out with
`draft_recipe(analysis, check)`: the reader is in another package, so the caller passes it in.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from ...input_files import LARGEST_PYTHON, read_bytes
from ...mappings.aliases import restated
from ...printable import printable, shortened
from .. import library_names as families
from ..analyze.script_analysis import ScriptAnalysis
from ..read_script.abstract_values import (
    LibraryName,
    LibraryObject,
    LibraryUse,
    ParsedArguments,
    ScriptFunction,
    ScriptObject,
    Value,
    is_known,
    known,
)
from ..read_script.command_line import OPTIONS
from ..read_script.expressions import truth
from ..read_script.interpreter import (
    CERTAINTIES,
    DEFAULT,
    LONGEST,
    MOST_FILES,
    OPTION,
    PERHAPS,
    UNCALLED,
    Interpreter,
    joined,
)
from ..read_script.syntax import root
from ..source_files import ScriptFile
from . import loss_sections, optimizer_sections
from .data_flow import Flow, Statement
from .data_section import data
from .lightning import Fit
from .optimizer_sections import unread_model
from .passed_over import RUNS, changes_library, is_part, reason
from .paths import without_a_pass
from .recipe_entries import ASK, DEVICE, MODELS, Comment, Entry, Place, calls, number, place, shown, sources
from .relevance import KNOWN
from .roles import WRAPPERS
from .statement_verdicts import Account
from .trained_model import several_train, trained
from .trainers import Settings, words_of

Check = Callable[[str], tuple[int, str] | None]  # a text -> the line that is refused, and why; None: no line is
TRIES = 60
HEADS = ("fc", "classifier", "head")  # what torchvision and timm call a model's last layer
OF_FILES = re.compile("path|dir|file|cfg|overlay|checkpoint")  # arguments that name files, with weights perhaps
NEEDED = {key: f"{key}: {ASK}" for key in ("model", "optimizer", "loss")}  # what a draft asks for where it has none
LEFT = """\
# What else the script does, with the line. The recipe does not run until each is resolved: remove a line when you have
# dealt with it, or move it under ignore: where it is not to count. A new head, frozen layers and groups of parameters
# have keys of their own, which recipes/fine_tuning.yaml explains."""
UNREAD_DEFAULT = "reading cannot tell this default"
OTHERS = "for your own model: msmigrate parity-step RECIPE --torch FILE.py:FUNCTION --mindspore FILE.py:FUNCTION"


def draft_recipe(analysis: ScriptAnalysis, check: Check | None = None) -> str:
    """Draft a recipe; with a check, refused entries become comments that say why.

    The check takes the text, and returns the line (counted from 1) and the reason of the first refusal, or None.
    """
    drafted = Draft(analysis.interpreter)
    lines = drafted.lines(analysis.name)
    refusals: list[tuple[Place, str]] = []
    for _ in range(TRIES if check is not None else 0):
        refused = check("\n".join(lines) + "\n") if check is not None else None
        if refused is None:
            break
        line, reason = refused
        taken = _take_out(lines, line - 1, reason, analysis.name)
        if taken is None:
            break
        refusals.append(taken)
    found = sorted({*drafted.left(refusals)})
    found += [] if any(place not in drafted.of_libraries for place, _ in found) else drafted.nothing()
    left = [f"{file}:{line}: {text}" for (file, line), text in found]
    if left:
        lines += [
            "",
            *LEFT.split("\n"),
            "not_in_this_recipe:",
            *(f"  - {json.dumps(printable(text), ensure_ascii=False)}" for text in left),
        ]
    return "\n".join(lines) + "\n"


def _take_out(lines: list[str], at: int, reason: str, name: str) -> tuple[Place, str] | None:
    """Turn an entry and all below it into comments, with the reason above; returns its place and what is lost there.

    name: the script's, for an entry whose comments name no place. Returns None where there is no such entry.
    """
    if not 0 <= at < len(lines) or lines[at].lstrip().startswith("#") or not lines[at].strip():
        return None
    if lines[at].lstrip().startswith("name:"):  # a part without its name is no part
        keys = (above for above in range(at - 1, -1, -1) if not lines[above].lstrip().startswith("#"))
        at = next((above for above in keys if lines[above].endswith(":")), at)
    args = next((above for above in range(at - 1, -1, -1) if not lines[above].lstrip().startswith("#")), at)
    below = [line for line in lines[args + 1 :] if not line.lstrip().startswith("#")][:2]  # the lines below args
    alone = len(below) < 2 or len(below[1]) - len(below[1].lstrip()) < len(lines[at]) - len(lines[at].lstrip())
    at = args if lines[args].strip() == "args:" and alone else at  # empty, it would not be a table
    needed = next((text for key, text in NEEDED.items() if lines[at].startswith(f"{key}:")), None)
    if needed == lines[at]:
        return None
    depth = len(lines[at]) - len(lines[at].lstrip())
    end = at + 1
    while end < len(lines) and lines[end].strip() and len(lines[end]) - len(lines[end].lstrip()) > depth:
        end += 1
    above = at  # the first comment of this entry, and not of a removed one above it
    while above > 0 and lines[above - 1].lstrip().startswith("#"):
        if isinstance(lines[above], Comment) and not isinstance(lines[above - 1], Comment):
            break
        above -= 1
    comments = [line for line in lines[above:end] if isinstance(line, Comment)]
    comments = comments or [line for line in reversed(lines[:above]) if isinstance(line, Comment)]  # of its parent
    bare = " ".join(reason.split())
    where = comments[0].at if comments else (name, 1)
    what = comments[0].about if comments and comments[0].about else lines[at].strip()
    for index in range(at, end):
        lines[index] = f"{' ' * depth}# {lines[index][depth:]}"
    lines.insert(at, f"{' ' * depth}# left out: {bare}")
    if needed is not None:
        lines.insert(end + 1, needed)
    return where, f"{what} [left out: {bare}]"


KEPT = {"seen": list, "epochs": list, "rates": list, "made": list, "reached": dict}  # what a second reading leaves


def _read_again(interpreter: Interpreter) -> None:
    """Read the functions that are only handed over once more, with what the script has at its end: an attribute that
    they read may be set, or set anew, behind the call that gets them."""
    sources = {id(module.scope.source.tree): module.scope.source for module in interpreter.files.values()}
    calls = [node for one in sources.values() for node in ast.walk(one.tree) if isinstance(node, ast.Call)]
    values = {id(call.func): interpreter.values.get(id(call.func), (0, None))[1] for call in calls}
    called = {id(one.node) for one in values.values() if isinstance(one, ScriptFunction)}
    kept, certainty = {name: getattr(interpreter, name) for name in KEPT}, interpreter.certainty
    before, varied = dict(interpreter.values), set(interpreter.varied)
    for given in (one for call in calls for one in (*call.args, *(k.value for k in call.keywords))):
        rank, value = interpreter.values.get(id(given), (0, None))
        if not isinstance(value, ScriptFunction) or id(value.node) in called or CERTAINTIES[rank] == OPTION:
            continue
        for name, empty in KEPT.items():
            setattr(interpreter, name, empty())
        interpreter.certainty = CERTAINTIES[rank]
        if isinstance(value.node, ast.Lambda):
            interpreter.value(value.node, value.scope)
        else:
            interpreter.call(value, [], by_script=True if id(value.node) in interpreter.commands else None)
    for name, one in kept.items():
        setattr(interpreter, name, one)
    first = {one for one in interpreter.varied - varied if one not in before or type(before[one][1]) is Value}
    interpreter.varied -= first  # what had no value has its only one
    interpreter.certainty = certainty


def _unread_defaults(account: Account) -> Iterator[tuple[Place, str]]:
    """The options whose default stands in the script, and reading cannot tell it, where what trains reads them: the
    place of each, and its words."""
    flow, listed = account.flow, {line.statement.place for line in account.listed}
    nodes = [node for one in flow.statements if account.reaches(one) for node in one.nodes]
    every = any(_gives_options(flow, node) for node in nodes if isinstance(node, ast.Call))
    read, local = families.names_read(nodes), {one.id for one in nodes if isinstance(one, ast.Name)}
    for name, source, node in flow.interpreter.unread:
        texts = [one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)]
        at, device = (source.shown, node.lineno), any(map(DEVICE.fullmatch, texts)) or "device" in name
        parameter = getattr(node.func, "attr", getattr(node.func, "id", "")) in OPTIONS and name in local
        if (not name or name in read or parameter or every) and at not in listed and not device:
            yield at, f"{shown(source.text(node))} [{UNREAD_DEFAULT}]"


def _gives_options(flow: Flow, call: ast.Call) -> bool:
    """Whether a call gives all options to something that was not read, which may read any of them."""
    given = (flow.value(one) for one in (*call.args, *(k.value for k in call.keywords)))
    unread = flow.function_of(call) is None and getattr(call.func, "id", "") not in (*KNOWN, "vars", "dict")
    return unread and not flow.passed(call.func) and any(isinstance(one, ParsedArguments) for one in given)


def accumulate(interpreter: Interpreter) -> tuple[int, list[str], set[str]]:
    """The number of micro-batches of a step, where it is written, and the condition.

    It is N where the only optimizer steps under `… % N == 0`, directly or through a GradScaler, while backward passes
    run without that condition, and gradients are cleared only under it.
    """
    if several_train(interpreter):
        return 1, [], set()
    for seen in interpreter.seen:
        steps = seen.name.endswith(".step") and getattr(seen.receiver, "family", "") == families.OPTIMIZER
        if not steps and not seen.name.endswith("GradScaler.step"):
            continue
        for test, scope in seen.tests:
            if not _every_batch(interpreter, test, scope.source):
                continue
            for node in ast.walk(test):
                modulo = node.left if isinstance(node, ast.Compare) else None
                if isinstance(modulo, ast.BinOp) and isinstance(modulo.op, ast.Mod):
                    value = interpreter.value(modulo.right, scope)
                    count = known(value)
                    if type(count) is int and 1 <= count <= 4096 and truth(value):
                        text = scope.source.text(test)
                        return count, [place(seen), *sources(value)], {shortened(text, LONGEST)}
    return 1, [], set()


def _every_batch(interpreter: Interpreter, test: ast.expr, source: ScriptFile) -> bool:
    """Whether backward passes run outside of a condition, and gradients are cleared only inside of it."""
    inside: dict[str, list[bool]] = {"backward": [], "zero_grad": []}
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.If) or node.test is not test:
            continue
        within = {id(inner) for statement in node.body for inner in ast.walk(statement)}
        loops = [one for one in ast.walk(source.tree) if isinstance(one, (ast.For, ast.While)) and node in one.body]
        for inner in ast.walk(loops[0]) if loops else ():
            if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr in inside:
                inside[inner.func.attr].append(id(inner) in within)
    return not any(inside["backward"]) and bool(inside["backward"]) and all(inside["zero_grad"])


class Draft:
    """The sections of a recipe drafted from a script, and the account of the script's statements."""

    def __init__(self, interpreter: Interpreter) -> None:
        _read_again(interpreter := interpreter.living())
        flow = Flow(interpreter, reason)
        micro_batches, why, conditions = accumulate(interpreter)
        fit = Fit.of(flow) or Settings.of(flow)
        by_library = fit.accumulates() if fit is not None and micro_batches == 1 else None
        micro_batches = by_library.value if by_library is not None else micro_batches
        loss, smoothing = loss_sections.loss(interpreter, flow, fit)
        mixup = loss_sections.mixup(interpreter, smoothing)
        if mixup is not None and not mixup.out:
            loss_sections.unsmoothed(loss)
        sections = [
            model(interpreter, flow),
            data(interpreter, flow, micro_batches, fit),
            mixup,
            loss,
            optimizer_sections.optimizer(interpreter, flow, fit),
            optimizer_sections.schedule(interpreter, fit),
            optimizer_sections.clip(interpreter, flow, fit),
            by_library or (Entry("accumulate", micro_batches, why) if micro_batches > 1 else None),
            *(loss_sections.amp(interpreter) or (fit.precision() if fit is not None else [])),
            loss_sections.ema(interpreter),
            loss_sections.sync(interpreter),
            optimizer_sections.train(interpreter, flow, fit),
            optimizer_sections.seed_of(interpreter),
        ]
        self.sections = [section for section in sections if section is not None]
        live = [section for section in self.sections if not section.out]
        roots = {node: role for section in live for node, role in section.roots.items()}
        said = set().union(*(section.places(asked=False) for section in live))
        said |= fit.said if fit is not None else set()
        for seen in loss_sections.switched_off(interpreter):
            roots[id(seen.node)] = "scaler"
            said.add((seen.source.shown, seen.node.lineno))
        asked = set().union(*(section.places(asked=True) for section in live))
        seed = next((section.value for section in live if section.key == "seed"), None)
        self.account = Account(flow, roots, said, asked, micro_batches, conditions, seed)
        _say_values(live, flow, self.account.counting.all_values, {id(line.statement) for line in self.account.listed})

    def lines(self, name: str) -> list[str]:
        """The lines of the recipe, without the list of what it does not cover."""
        lines = [
            f"# Drafted from {name}, which was read and not run. Every value names the line that it comes from; what",
            f"# the script does not say is {ASK}, for you to write. recipes/resnet50.yaml explains every key.",
        ]
        for section in self.sections:
            lines += ["", *section.lines()]
        return lines

    def left(self, refusals: list[tuple[Place, str]]) -> Iterator[tuple[Place, str]]:
        """What the recipe does not cover, with its place; refusals: entries that its reader refused."""
        yield from refusals
        for section in self.sections:
            if not section.out:
                yield from section.all_left()
        flow, unread = self.account.flow, self.account.interpreter.unreadable.get("too long", "")
        if unread:
            yield flow.statements[0].place, unread.partition(": ")[2]
        if flow.ended is not None:
            yield flow.ended, "too much to follow from here on: the rest of the script is not accounted for"
        for line in self.account.listed:
            yield line.statement.place, line.text
        yield from _unread_defaults(self.account)
        yield from ((one.place, f"{shown(one.text)} [{RUNS}]") for one in self._in_training())

    def _in_training(self) -> Iterable[Statement]:
        """The calls and loops by which the model runs in training mode and no backward pass follows."""
        flow, account = self.account.flow, self.account

        def reaches(statement: Statement) -> bool:
            made = flow.class_of(statement.owner) if statement.owner is not None else None
            return account.reaches(statement) and (made is None or not is_part(made))

        return without_a_pass(flow, lambda one: "model" in account.kinds(one), reaches).values()

    @property
    def of_libraries(self) -> set[Place]:
        """The places of listed lines that only set something of what was not read, or call it."""
        places = (line.statement for line in self.account.listed)
        return {one.place for one in places if changes_library(self.account.flow, one)}

    def nothing(self) -> Iterator[tuple[Place, str]]:
        """Words for a script in which nothing that trains was found: filled in by hand, its recipe would seem whole."""
        flow = self.account.flow
        steps = any(getattr(call.func, "attr", "") in ("backward", "step") for s in flow.statements for call in s.calls)
        if not steps and not flow.interpreter.epochs and not calls(flow.interpreter, "optimizer") and flow.statements:
            nothing, of = "no step, no loop over epochs and no optimizer was found: what trains?", _importing(flow)
            other = f" Draft the script that does; this one is imported by {of}." if of else ""
            yield flow.statements[-1].place, nothing + other


def model(interpreter: Interpreter, flow: Flow) -> Entry:
    """The section `model`: the model that the optimizer trains; every recipe has one."""
    made = trained(interpreter)
    if isinstance(made, ScriptObject) and made.source is not None and made.node is not None:
        at = (made.source.shown, made.node.lineno)
        again = {
            id(one.node): one for one in made.arguments if id(one.node) in interpreter.varied and is_known(one.value)
        }
        words = [f"{made.source.text(one.node)} is {known(one.value)!r}" for one in again.values()]  # of this object
        text = made.source.text(made.node) + f" [{', '.join(words)}]" * bool(words)
        of = flow.of.get(id(made.node))
        rank, conditions = interpreter.reached.get(id(of.node), (0, ())) if of is not None else (0, ())
        if of is None or CERTAINTIES[rank] != PERHAPS or not conditions:
            said = [Comment(at, text), "a model of the script's own", OTHERS]
            return Entry("model", ASK, said, roots={id(made.node): "model"})
        which = f"only where {joined(conditions)}"  # another one may be trained
        said = [Comment(at, f"{text}, {which}"), "a model of the script's own", OTHERS]
        left = [(of.place, f"{printable(' '.join(of.text.split()))} [{which}]")]
        return Entry("model", ASK, said, roots={id(made.node): "model"}, left=left)
    seen = made.seen if isinstance(made, LibraryObject) else None
    if seen is None:
        return Entry("model", ASK, [unread_model(flow), *_trained_from(flow), OTHERS])
    roots = {id(seen.node): "model"}
    name = _model_name(seen)
    if name is None:
        comments = [
            *_inside(seen, flow),
            place(seen),
            *sources(seen.get("name", 0)),
            f"a recipe names {', '.join(MODELS)}, torchvision:NAME",
            OTHERS,
        ]
        return Entry("model", ASK, comments, roots=roots)
    by_text = seen.name.endswith(("create_model", "get_model"))
    if by_text and (own := _registered(flow, name.rpartition(":")[2])) is not None:
        comments = [place(seen), *sources(seen.get("name", 0)), own, OTHERS]
        return Entry("model", ASK, comments, roots=roots)
    section = Entry("model", comments=[place(seen), *sources(seen.get("name", 0))], roots=roots)
    args = []
    for argument in seen.arguments or []:
        if argument.name in (None, "*", "**", "model_name", "name", "weights", "pretrained", "progress"):
            continue
        value = known(argument.value)
        drafted = isinstance(value, (int, float, bool)) and (name not in MODELS or argument.name in _ARGUMENTS[name])
        plain = name not in MODELS and is_known(argument.value) and not OF_FILES.search(str(argument.name))
        if drafted or plain:
            args.append(Entry(str(argument.name), value, sources(argument.value)))
        elif name not in MODELS or argument.name in _ARGUMENTS[name]:
            args.append(Entry(str(argument.name), ASK, [f"{seen.source.text(argument.node)} could not be read"]))
    head = _new_head(interpreter, made)
    if head is not None:
        args = [head, *(entry for entry in args if entry.key != "num_classes")]
    taken = [entry.key for entry in args]
    by_name = () if _is_class_call(seen) else ("0",)  # create_model("resnet18")
    section.leave(seen, *taken, *by_name, "model_name", "name", "weights", "pretrained", "progress")
    weights = next((seen.get(key) for key in ("weights", "pretrained") if seen.get(key)), None)
    section.below = [Entry("name", name), *([Entry("args", below=args)] if args else [])]
    if weights is not None and known(weights, True):
        comments = ["it starts from trained weights: save its state_dict, and name the file"]
        section.below.append(Entry("checkpoint", ASK, comments))
    return section


def _inside(seen: LibraryUse, flow: Flow) -> Iterator[str]:
    """Words for the model in a wrapper, of which nothing was read: the line that makes it."""
    wraps = [one.node for one in (seen.arguments or [])[:1] if set(restated(seen.name)) & set(WRAPPERS)]
    for one in (one for node in wraps for one in flow.behind(node) if isinstance(one, ast.Call)):
        statement = flow.of.get(id(one))
        if statement is not None and statement.alone is None and one is not seen.node:
            yield words_of(statement, "what this makes was not read")
            return


def _trained_from(flow: Flow) -> Iterator[str]:
    """Words for a script whose steps stand in functions that it does not call, where other scripts import it."""
    reached, main = flow.interpreter.reached, flow.interpreter.files["__main__"].scope.source
    own = (s for s in flow.statements if s.source is main)
    steps = [s for s in own if any(getattr(call.func, "attr", "") in ("backward", "step") for call in s.calls)]
    if not steps or any(CERTAINTIES[reached.get(id(s.node), (0, ()))[0]] != UNCALLED for s in steps):
        return
    if found := _importing(flow):
        yield f"nothing here calls its steps: draft the script that does; it is imported by {found}"


def _importing(flow: Flow) -> str:
    """The scripts of the folder that import this one; "" where there are none."""
    path = flow.interpreter.files["__main__"].scope.source.path
    others = sorted(one for one in path.parent.glob("*.py") if one.name != path.name)
    return ", ".join([one.name for one in others[:MOST_FILES] if _imports(one, path.stem)][:3])


def _imports(path: Path, name: str) -> bool:
    try:
        text = read_bytes(path, LARGEST_PYTHON).decode("utf-8", "replace")
    except OSError:
        return False
    return (
        re.search(rf"^\s*(from\s+\.?{re.escape(name)}\s+import|import\s+{re.escape(name)}\b)", text, re.M) is not None
    )


def _new_head(interpreter: Interpreter, made: Value | None) -> Entry | None:
    """The number of classes in a new last layer that a script gives the model: model.fc = Linear(…, 12)."""
    found: list[Entry] = []
    for seen in interpreter.seen:
        linear = "torch.nn.Linear" in restated(seen.name) and seen.arguments is not None
        assigned = (node for node in ast.walk(seen.source.tree) if isinstance(node, ast.Assign)) if linear else ()
        for target in (node.targets[0] for node in assigned if node.value is seen.node):
            of = target.value if isinstance(target, (ast.Attribute, ast.Subscript)) else None
            named = isinstance(of, ast.Attribute) if isinstance(target, ast.Subscript) else True
            holder = of.value if isinstance(target, ast.Subscript) and isinstance(of, ast.Attribute) else of
            last = target.attr if isinstance(target, ast.Attribute) else getattr(of, "attr", "")
            if holder is None or not named or last not in HEADS:
                continue
            if interpreter.values.get(id(holder), (0, None))[1] is made and seen.certainty == DEFAULT:
                value = seen.get("out_features", 1)
                if number(value) is not None:
                    found.append(Entry("num_classes", number(value), [str(place(seen)), *sources(value)]))
    return found[0] if len(found) == 1 else None


_ARGUMENTS = {name: ("num_classes", *arguments) for name, arguments in MODELS.items()}


def _is_class_call(seen: LibraryUse) -> bool:
    return any(one.startswith("torchvision.models.") for one in restated(seen.name)) and not seen.name.endswith(
        "get_model"
    )


def _model_name(seen: LibraryUse) -> str | None:
    """The recipe's name of the model that a torchvision or timm call makes; None where it could not be read."""
    names_ = restated(seen.name)
    last = seen.name.rpartition(".")[2]
    if any(name.startswith("torchvision.models.") for name in names_) and last[:1].islower() and last != "get_model":
        return last if last in MODELS else f"torchvision:{last}"
    written = known(seen.get("model_name", 0) or seen.get("name", 0), None)
    if not isinstance(written, str) or not written.replace("_", "").replace(".", "").isalnum():
        return None
    if "timm.create_model" in names_ or "timm.models.create_model" in names_:
        return f"timm:{written}"
    if last == "get_model" and any(name.startswith("torchvision.models.") for name in names_):
        return written if written in MODELS else f"torchvision:{written}"
    return None


def _registered(flow: Flow, name: str) -> Comment | None:
    """The place where a script registers a model of its own under a library's name for models; None where it does not:
    a function or class of this name under `@register_model`, such a call, an entry of a table of the library's."""
    for statement in flow.statements:
        marks = getattr(statement.node, "decorator_list", [])
        called = [ast.unparse(one.func if isinstance(one, ast.Call) else one) for one in (*marks, *statement.calls)]
        targets = [one for one in getattr(statement.node, "targets", ()) if isinstance(one, ast.Subscript)]
        puts = [one for one in targets if isinstance(flow.value(root(one)), LibraryName)]
        registers = any(one.rpartition(".")[2].startswith("register") for one in called) or puts
        given = {getattr(one, "value", getattr(one, "id", "")) for one in statement.nodes}
        if registers and name in given | {getattr(statement.node, "name", "")}:
            return Comment(statement.place, f"a model of the script's own is registered as {name}")
    return None


def _say_values(sections: Iterable[Entry], flow: Flow, values: Callable[[Statement], str], listed: set[int]) -> None:
    """Add to the lines that are named where a draft asks for something what their names are, as in a listed line.

    values: gives them in words. listed: statements (their ids) that say it themselves.
    """
    waiting, known = list(sections), dict[int, str]()
    while waiting:
        entry = waiting.pop(0)
        waiting += entry.below or []
        asks = entry.asks or any(one.asks for part in entry.below or [] for one in (part, *(part.below or [])))
        for index, comment in enumerate(entry.comments if asks and not entry.out else []):
            at = {comment.at} if isinstance(comment, Comment) else set()
            for statement in (s for s in flow.statements if s.stands_at(at) and id(s) not in listed | known.keys()):
                said = known[id(statement)] = values(statement)
                if said and isinstance(comment, Comment):
                    entry.comments[index] = Comment(comment.at, f"{comment.about} [{said}]".lstrip())
