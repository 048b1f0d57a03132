"""A recipe drafted from a script: text for a person to read, correct and keep.

Every value names the line of the script that it comes from. A value that could not be read is ???, and everything else
that the script does is listed with its line. Entries that the recipe's reader refuses can be taken out with
`draft_recipe(analysis, check)`: the reader is in another package, so the caller passes it in.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator
from typing import Any

from ...mappings.aliases import restated, row_of
from ...printable import printable
from ..analyze.script_analysis import ScriptAnalysis
from ..source.infer.abstract_values import (
    CallArgument,
    Constant,
    DictValue,
    LibraryObject,
    LibraryUse,
    ListValue,
    ScriptFunction,
    ScriptObject,
    Value,
    is_known,
    known,
)
from ..source.infer.interpreter import PERHAPS, Interpreter
from ..source.library_names import DATASET
from . import step_sections, trainers, training_sections
from .account import Account
from .entries import (
    ASK,
    DATA,
    MODELS,
    Comment,
    Entry,
    Place,
    argument_text,
    calls,
    computed,
    either,
    given_to,
    new_head,
    number,
    part,
    partly_unread,
    place,
    setting,
    source_of,
    sources,
    surely,
    to_floats,
    trained,
    unread,
)
from .flow import Flow
from .reach import say_values
from .silence import reason
from .step_order import accumulate, accumulated_by_library
from .step_sections import SHARED, dataset_of, evaluates, looped_over, moved, sharing, trained_on
from .training_sections import unread_model

Check = Callable[[str], tuple[int, str] | None]  # a text -> the line that is refused, and why; None: no line is
TRIES = 60
EXPORT = "folder:PATH takes a folder of colour images for each class, arrays:FILE an .npz of anything else"
NEEDED = {key: f"{key}: {ASK}" for key in ("model", "optimizer", "loss")}  # what a draft asks for where it has none
LEFT = """\
# What else the script does, with the line. The recipe does not run until each is resolved: remove a line when you have
# dealt with it, or move it under ignore: where it is not to count. A new head, frozen layers and groups of parameters
# have keys of their own, which recipes/fine_tuning.yaml explains."""
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
    found = sorted({*drafted.left(refusals)}) or list(drafted.nothing())
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


class Draft:
    """The sections of a recipe drafted from a script, and the account of the script's statements."""

    def __init__(self, interpreter: Interpreter) -> None:
        flow = Flow(interpreter := interpreter.living(), reason)
        micro_batches, why, conditions = accumulate(interpreter)
        fit = training_sections.found(flow)
        by_library = fit.accumulates() if fit is not None and micro_batches == 1 else None
        micro_batches = by_library.value if by_library is not None else micro_batches
        loss, smoothing = step_sections.loss(interpreter, flow, fit)
        mixup = step_sections.mixup(interpreter, smoothing)
        if mixup is not None and not mixup.out:
            step_sections.unsmoothed(loss)
        sections = [
            model(interpreter, flow),
            data(interpreter, flow, micro_batches, fit),
            mixup,
            loss,
            training_sections.optimizer(interpreter, flow, fit),
            training_sections.schedule(interpreter, fit),
            training_sections.clip(interpreter, fit),
            by_library or (Entry("accumulate", micro_batches, why) if micro_batches > 1 else None),
            *(step_sections.amp(interpreter) or (fit.precision() if fit is not None else [])),
            step_sections.ema(interpreter),
            step_sections.sync(interpreter),
            training_sections.train(interpreter, flow, fit),
            training_sections.seed_of(interpreter),
        ]
        self.sections = [section for section in sections if section is not None]
        live = [section for section in self.sections if not section.out]
        roots = {node: role for section in live for node, role in section.roots.items()}
        said = set().union(*(section.places(asked=False) for section in live))
        said |= fit.said if fit is not None else set()
        for seen in step_sections.switched_off(interpreter):
            roots[id(seen.node)] = "scaler"
            said.add((seen.source.shown, seen.node.lineno))
        asked = set().union(*(section.places(asked=True) for section in live))
        seed = next((section.value for section in live if section.key == "seed"), None)
        self.account = Account(flow, roots, said, asked, micro_batches, conditions, seed)
        say_values(live, flow, self.account.counting.values, {id(line.statement) for line in self.account.listed})

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

    def nothing(self) -> Iterator[tuple[Place, str]]:
        """Words for a script in which nothing that trains was found: filled in by hand, its recipe would seem whole."""
        flow = self.account.flow
        steps = any(getattr(call.func, "attr", "") in ("backward", "step") for s in flow.statements for call in s.calls)
        if not steps and not flow.interpreter.epochs and not calls(flow.interpreter, "optimizer") and flow.statements:
            yield flow.statements[-1].place, "no step, no loop over epochs and no optimizer was found: what trains?"


def model(interpreter: Interpreter, flow: Flow) -> Entry:
    """The section `model`: the model that the optimizer trains; every recipe has one."""
    made = trained(interpreter)
    if isinstance(made, ScriptObject) and made.source is not None and made.node is not None:
        at = (made.source.shown, made.node.lineno)
        again = {
            id(one.node): one for one in made.arguments if id(one.node) in interpreter.varied and is_known(one.value)
        }
        words = [f"{made.source.text(one.node)} is {known(one.value)!r}" for one in again.values()]  # of this object
        where = Comment(at, made.source.text(made.node) + f" [{', '.join(words)}]" * bool(words))
        return Entry("model", ASK, [where, "a model of the script's own", OTHERS], roots={id(made.node): "model"})
    seen = made.seen if isinstance(made, LibraryObject) else None
    if seen is None:
        return Entry("model", ASK, [unread_model(flow), OTHERS])
    roots = {id(seen.node): "model"}
    name = _model_name(seen)
    if name is None:
        comments = [
            place(seen),
            *sources(seen.get("name", 0)),
            f"a recipe names {', '.join(MODELS)}, torchvision:NAME",
            OTHERS,
        ]
        return Entry("model", ASK, comments, roots=roots)
    section = Entry("model", comments=[place(seen), *sources(seen.get("name", 0))], roots=roots)
    args = []
    for argument in seen.arguments or []:
        if argument.name in (None, "*", "**", "model_name", "name", "weights", "pretrained", "progress"):
            continue
        value = known(argument.value)
        drafted = isinstance(value, (int, float, bool)) and (name not in MODELS or argument.name in _ARGUMENTS[name])
        if drafted:
            args.append(Entry(str(argument.name), value, sources(argument.value)))
        elif name not in MODELS or argument.name in _ARGUMENTS[name]:
            args.append(Entry(str(argument.name), ASK, [f"{seen.source.text(argument.node)} could not be read"]))
    head = new_head(interpreter, made)
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


LOADER_ARGUMENTS: tuple[str, ...] = (
    *("0", "1", "2", "dataset", "batch_size", "shuffle", "num_workers", "pin_memory", "drop_last", "timeout"),
    *("persistent_workers", "prefetch_factor", "pin_memory_device", "worker_init_fn"),
)
TIMM_LOADER: tuple[str, ...] = (
    *("0", "dataset", "batch_size", "is_training", "num_workers", "pin_memory", "use_prefetcher", "distributed"),
    *("persistent_workers", "worker_seeding"),
)
DATASET_ARGUMENTS = ("root", "train", "split", "transform", "download")
SEVERAL = "one of several loaders that a step runs on; a recipe has one for training"
COMPOSED = ("Compose", "Sequential")
# an image to a tensor of bytes, and that to floats: together these are a recipe's ToTensor
BYTES, FLOATS = ("PILToTensor", "ToImage", "ToImageTensor"), ("ToDtype", "ConvertImageDtype", "ConvertDtype")
NOTHING = ("ToPureTensor", "Identity")


def data(interpreter: Interpreter, flow: Flow, accumulate: int, fit: trainers.Given | None) -> Entry:
    """The section `data` of a recipe."""
    section = Entry("data", below=[])
    made = surely(calls(interpreter, DATA))
    loaders = list({id(seen.node): seen for seen in reversed(made)}.values())[::-1]  # the first run of each call
    drafted = fit.trainer.node if fit is not None and "accumulate_grad_batches" in fit.taken else None
    factor = accumulated_by_library(flow, drafted) or accumulate
    handed, checked = (fit.loaders(way) if fit is not None else None for way in ("train", "val"))
    stepped = [s for s in loaders if s.node in [one.node for one in handed]] if handed else trained_on(flow, loaders)
    plain = [seen for seen in loaders if not evaluates(seen, flow)]
    alone = plain if len(plain) == 1 else loaders if len(loaders) == 1 else []
    found = stepped or [seen for seen in alone if seen.certainty != PERHAPS]  # the others may be for evaluation
    training = found[0] if len(found) == 1 else None
    others = [seen for seen in loaders if seen is not training]
    looped = [seen for seen in others if looped_over(flow, seen)]  # of those that are made, some may not be used
    evaluating = [seen for seen in others if evaluates(seen, flow)]
    both = [seen for seen in evaluating if seen in looped]
    evaluation = next(iter(both or (looped if len(looped) == 1 else evaluating)), None)
    if checked is not None:
        evaluation = next((s for s in others if s.node is checked[0].node), None) if len(checked) == 1 else None
    if training is not None and evaluation is not None and either(training, evaluation):
        loaders, training = [training, evaluation], None  # only one of them is made, for both purposes
    assert section.below is not None
    if training is None:
        unclear = "which loader is trained on could not be read"
        several = [f"{place(seen)}: {SEVERAL if len(found) > 1 else unclear}" for seen in found or loaders]
        section.comments += several or [trainers.not_found(flow, "no data loader was found"), *moved(flow)]
        made = [seen for seen in loaders if seen.certainty != PERHAPS]
        sizes = [entry for seen in made for entry in _batch(seen, flow, "batch", factor)]
        same = len(sizes) > 1 and len({entry.value for entry in sizes}) == 1  # whichever trains
        handed_over = fit.batch() if fit is not None and not loaders else []
        agreed = sizes[0] if same else (*handed_over, Entry("batch", ASK))[0]
        section.below += [Entry("source", ASK), agreed, Entry("transforms", ASK), *handed_over[1:]]
        return section
    section.comments.append(place(training))
    for loader in (training, evaluation):
        if loader is not None:
            section.roots[id(loader.node)] = "loader" if loader is training else "evaluation"
            section.comments += [place(loader)] if loader is evaluation else []
            of_torch = "torch.utils.data.DataLoader" in restated(loader.name)
            taken: tuple[str, ...] = LOADER_ARGUMENTS if of_torch else TIMM_LOADER
            if loader is evaluation:  # a recipe validates on every sample once, in order
                off = {a.name or str(at) for at, a in enumerate(loader.arguments or []) if known(a.value) is False}
                taken = tuple(one for one in taken if one in off or one not in ("2", "shuffle", "drop_last"))
            section.leave(loader, *taken, *SAMPLER, *BATCH_SAMPLER, "**")
            for run in (seen for seen in made if seen.node is loader.node):
                section.left += [one for one in _samplers(run, flow) if one not in section.left]
            of = dataset_of(loader)
            if of is not None and source_of(of.name) is not None:
                section.leave(of, "0", "1", *DATASET_ARGUMENTS)
    section.comments += moved(flow) if not any(SHARED in text for _, text in section.left) else []
    runs = [seen for seen in made if seen.node is training.node]  # one call may make several
    section.below += _agreed([_source(seen, "source") for seen in runs])
    checks = [seen for seen in made if evaluation is not None and seen.node is evaluation.node]
    section.below += _agreed([_source(seen, "validation") for seen in checks])
    section.below += _agreed([_batch(seen, flow, "batch", factor) for seen in runs])
    section.below += _agreed([_batch(seen, flow, "eval_batch", 1) for seen in checks])
    section.below += _agreed([transforms(seen, "transforms", flow) for seen in runs])
    section.below += _agreed([transforms(seen, "eval_transforms", flow) for seen in checks])
    section.below += _agreed([_fetching(seen) for seen in runs])
    return section


def _values(entry: Entry) -> list[str]:
    """The lines of an entry; without the comments, which say where it comes from, where nothing in it is ???."""
    bare = [line for line in entry.lines() if not line.lstrip().startswith("#")]
    return entry.lines() if any(ASK in line for line in bare) else bare


def _agreed(several: list[list[Entry]]) -> list[Entry]:
    """The entries of a call that runs several times; entries that differ are ???."""
    found: list[Entry] = []
    for key in dict.fromkeys(entry.key for entries in several for entry in entries):
        same = [entry for entries in several for entry in entries if entry.key == key]
        agree = len(same) == len(several) and all(_values(entry) == _values(same[0]) for entry in same)
        comments = dict.fromkeys(one for entry in same for one in entry.comments if isinstance(one, Comment))
        several_ = "one call makes several, with different values"
        found.append(same[0] if agree else Entry(key, ASK, [*comments, several_]))
    return found


SAMPLER, BATCH_SAMPLER = ("sampler", "3"), ("batch_sampler", "4")


def _samplers(loader: LibraryUse, flow: Flow) -> Iterator[tuple[Place, str]]:
    """The samplers of a loader, which a recipe does not have, each with its place and the DistributedSamplers in it."""
    order = "" if moved(flow) else ", and without set_epoch every epoch has the same order"
    given = [one for one in (given_to(loader, SAMPLER), given_to(loader, BATCH_SAMPLER)) if one is not None]
    unpacked = {id(a.node): a for a in loader.arguments or [] if a.name == "**" or (a.name and a.at and not given)}
    for argument in (*given, *unpacked.values()):
        shares = sharing(flow, argument.node)
        if argument not in given and not shares and argument.name != "**":
            continue  # nothing in it is a sampler
        whole = CallArgument("**", argument.node, argument.value)
        comments = [f"{argument_text(loader, argument if argument in given else whole)} of {loader.name}"]
        for node in shares:
            at = flow.of[id(node)].source
            words = f"{' '.join(at.text(node).split())} at {at.shown}:{node.lineno} is a DistributedSampler"
            comments.append(f"[{words}: {SHARED}{order}]")
        yield (loader.source.shown, argument.node.lineno), " ".join(comments)


def _batches(loader: LibraryUse) -> LibraryUse | None:
    """The call with a loader's batch size: its own, or its BatchSampler's; None where neither has it."""
    argument = given_to(loader, BATCH_SAMPLER)
    if argument is None:
        return loader
    made = argument.value.seen if isinstance(argument.value, LibraryObject) else None
    return made if made is not None and "torch.utils.data.BatchSampler" in restated(made.name) else None


def _source(loader: LibraryUse, key: str) -> list[Entry]:
    made = dataset_of(loader)
    if made is None:
        own = loader.get("dataset", 0)
        comments = [place(loader), f"a recipe cannot read its data set: {EXPORT}"]
        if isinstance(own, ScriptObject) and own.source is not None and own.node is not None:
            comments.append(Comment((own.source.shown, own.node.lineno), " ".join(own.source.text(own.node).split())))
        return [Entry(key, ASK, comments)]
    written = source_of(made.name)
    path = made.get("root", 0)
    text = known(path)
    if key == "validation" and (cut := step_sections.cut_of(loader)) is not None:
        comments = [place(made), f"{cut} takes a part of this, and a recipe reads all of a folder: name its own"]
        return [Entry(key, ASK, comments)]
    if written is not None and "PATH" not in written:
        return [Entry(key, written, [place(made)])]
    if written is None:
        comments = [place(made), f"a recipe cannot read such a data set: {EXPORT}"]
        return [Entry(key, ASK, comments)]
    if not isinstance(text, str) or not text or not text.isprintable():
        comments = [place(made), f"its path could not be read: write it here as {written}"]
        return [Entry(key, ASK, comments)]
    comments = [place(made), *sources(path), "a relative path starts at this recipe's folder"]
    return [Entry(key, written.replace("PATH", text), comments)]


def _batch(loader: LibraryUse, flow: Flow, key: str, factor: int | str) -> list[Entry]:
    """A batch size; factor: how many such batches make a step, or words where that is not known."""
    made = _batches(loader)
    if made is None:
        return [Entry(key, ASK, [f"{place(loader)}: its batch_sampler alone says how large batches are"])]
    value = made.get("batch_size", 1)
    given = next((a.node for a in made.arguments or [] if a.value is value), None)
    size = number(value)
    if value is None and not partly_unread(made):
        size = 1  # torch's default
    written = [place(made)] if made is not loader else []
    if isinstance(factor, str):
        return [Entry(key, ASK, [*written, factor, *computed(given, value, flow)])]
    if not isinstance(size, int) or size < 1:
        comments = [*written, f"{place(loader)}: its batch_size could not be read"]
        comments += [f"{factor} such batches are one of a recipe"] if factor > 1 else []
        return [Entry(key, ASK, [*comments, *computed(given, value, flow)])]
    comments = [*written, *computed(given, value, flow)]
    if factor > 1:
        comments.append(f"{factor} micro-batches of {size}")
    return [Entry(key, size * factor, comments)]


def _fetching(loader: LibraryUse) -> list[Entry]:
    found = []
    if "torch.utils.data.DataLoader" not in restated(loader.name):
        return []  # timm's loaders shuffle and drop by is_training
    made, shuffle = _batches(loader), setting(loader, "shuffle", 2)
    sampled = given_to(loader, SAMPLER) is not None or given_to(loader, BATCH_SAMPLER) is not None
    drop_last = setting(made, "drop_last", 8 if made is loader else 2) if made is not None else True
    if made is loader and any(
        one.name == "batch_size" and (is_known(one.value) and known(one.value) is None)
        for one in loader.arguments or []
    ):
        drop_last = ASK  # what its sampler or its data set gives is the batch
    for key, value in (("shuffle", sampled or shuffle), ("drop_last", drop_last)):
        if value == ASK:
            found.append(Entry(key, ASK, [place(loader), unread(key)]))
        elif not value:
            comments = ["torch's loaders do not shuffle by default"] if key == "shuffle" and value is None else []
            found.append(Entry(key, False, comments))
    workers = loader.get("num_workers", 5)
    count = number(workers)
    if isinstance(count, int) and count > 0:
        found.append(Entry("workers", count, sources(workers)))
    return found


# transforms


def transforms(loader: LibraryUse, key: str, flow: Flow) -> list[Entry]:
    """The list of transforms of a loader's data set."""
    made = dataset_of(loader)
    value = next((made.get(name) for name in ("transform", "transforms") if made and made.get(name)), None)
    if made is not None and value is None:  # ImageFolder(root, transform)
        value = next((a.value for a in made.arguments or [] if a.name is None and _holds_transforms(a.value)), None)
    steps = list(_flat(value)) if value is not None else []
    if not steps:
        own = loader.get("dataset", 0)
        inside = own.of.find("__getitem__") if made is None and isinstance(own, ScriptObject) else None
        line = f" ({inside.scope.source.shown} line {inside.node.lineno})" if isinstance(inside, ScriptFunction) else ""
        return [Entry(key, ASK, [f"{place(made or loader)}: what its data set does to a sample was not read{line}"])]
    entries = list(_entries(steps, flow))
    if all(entry.out for entry in entries):
        return [Entry(key, ASK, [comment for entry in entries for comment in entry.comments])]
    section = Entry(key, below=entries)
    for entry in entries:
        if entry.out:
            placed = next((comment for comment in entry.comments if isinstance(comment, Comment)), None)
            at = placed.at if placed is not None else (loader.source.shown, loader.node.lineno)
            what = placed.about if placed is not None and placed.about else entry.value["name"]
            section.left.append((at, f"the transform {what}"))
    return [section]


def _holds_transforms(value: Value) -> bool:
    return any(
        isinstance(step, LibraryObject) and step.name.startswith("torchvision.transforms") for step in _flat(value)
    )


def _flat(value: Value | None, depth: int = 0) -> Iterator[Value]:
    """The transforms one by one, from Compose, lists and objects of the script's classes."""
    if depth > 8 or value is None:
        return
    if isinstance(value, ListValue):
        for item in value.items:
            yield from _flat(item, depth + 1)
    elif isinstance(value, LibraryObject) and value.name.rpartition(".")[2] in COMPOSED and value.seen is not None:
        for argument in value.seen.arguments or []:
            yield from _flat(argument.value, depth + 1)
    elif isinstance(value, ScriptObject):
        own = value.attributes if value.of.family() == DATASET else {"": value.attributes.get(_handed_to(value))}
        each = (list(_flat(held, depth + 1)) for held in own.values())
        yield from next((found for found in each if _all_transforms(found)), [value])
    elif not isinstance(value, (Constant, DictValue)):
        yield value


def _handed_to(of: ScriptObject) -> str:
    """The attribute whose result is an object's whole result: `return self.steps(image)`; "" where it does more."""
    call = next((found for name in ("__call__", "forward") if (found := of.of.find(name)) is not None), None)
    body = call.node.body if isinstance(call, ScriptFunction) and isinstance(call.node.body, list) else []
    body = [one for one in body if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))]
    given = body[0].value if len(body) == 1 and isinstance(body[0], ast.Return) else None
    if not isinstance(given, ast.Call) or not isinstance(given.func, ast.Attribute) or given.keywords:
        return ""
    plain = len(given.args) == 1 and isinstance(given.args[0], ast.Name)
    return given.func.attr if plain and isinstance(given.func.value, ast.Name) and given.func.value.id == "self" else ""


def _all_transforms(found: list[Value]) -> bool:
    return any(isinstance(step, LibraryObject) and "transforms" in step.name for step in found)


def _entries(steps: list[Value], flow: Flow) -> Iterator[Entry]:
    bytes_at: LibraryUse | None = None
    for step in steps:
        seen = step.seen if isinstance(step, LibraryObject) else None
        if seen is None:
            node = flow.node_of(step)
            at = flow.of[id(node)].source if node is not None else None
            what = " ".join(at.text(node).split()) if at is not None and node is not None else "a step"
            where: list[str] = [Comment((at.shown, node.lineno), what)] if at is not None and node is not None else []
            where.append(f"a recipe has no transform such as {what}")
            yield Entry("-", {"name": what}, where, out=True)
            continue
        last = seen.name.rpartition(".")[2]
        row = row_of(seen.name)
        if last in BYTES:
            bytes_at = seen
        elif last in FLOATS and bytes_at is not None and to_floats(seen):
            yield Entry("-", {"name": "ToTensor"}, [f"{place(bytes_at)}, then {last} to floats"])
            bytes_at = None
        elif last in NOTHING:
            continue
        elif row is None or row.kind != "transform" or row.mindspore is None:
            why = "the mapping table has no row of it" if row is None else "a recipe has no such transform"
            yield Entry("-", {"name": last}, [place(seen), why], out=True)
        else:
            yield _step(seen, row)
    if bytes_at is not None:
        comment = f"{place(bytes_at)}: bytes that nothing turns into floats; ToTensor gives floats from 0 to 1"
        yield Entry("-", {"name": "ToTensor"}, [comment])


def _step(seen: LibraryUse, row: Any) -> Entry:
    step = part(seen, row, brief=True)
    comments = [place(seen), *(comment for entry in step.args for comment in entry.comments), *step.comments]
    args = {entry.key: entry.value for entry in step.args if not entry.out}
    value = {"name": step.name, "args": args} if args else {"name": step.name}
    unread = ASK in args.values()  # the recipe's reader would report it as missing
    return Entry("-", value, list(dict.fromkeys(comments)), out=step.incomplete or unread)
