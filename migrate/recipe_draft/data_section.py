"""The section `data` of a recipe: which loaders it runs on, their batches, and the transforms of their data sets."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from ...mappings.aliases import restated, row_of
from ..library_names import DATASET, OPTIMIZER
from ..read_script.abstract_values import (
    CallArgument,
    Constant,
    DictValue,
    LibraryName,
    LibraryObject,
    LibraryUse,
    ListValue,
    ScriptClass,
    ScriptFunction,
    ScriptObject,
    Value,
    is_known,
    is_none,
    known,
)
from ..read_script.interpreter import CERTAINTIES, DEFAULT, OPTION, PERHAPS, UNCALLED, Interpreter, joined
from .data_flow import LOOPS, Flow, Statement
from .recipe_entries import (
    ASK,
    DATA,
    Comment,
    Entry,
    Place,
    argument_text,
    calls,
    computed,
    number,
    part,
    partly_unread,
    place,
    setting,
    shown,
    source_of,
    sources,
    surely,
    unread,
)
from .relevance import named, names_in
from .roles import LOADER, Roles
from .trained_model import either
from .trainers import Given, not_found

LOADER_ARGUMENTS: tuple[str, ...] = (
    *("0", "1", "2", "dataset", "batch_size", "shuffle", "num_workers", "pin_memory", "drop_last", "timeout"),
    *("persistent_workers", "prefetch_factor", "pin_memory_device"),
)
TIMM_LOADER: tuple[str, ...] = (
    *("0", "dataset", "batch_size", "is_training", "num_workers", "pin_memory", "use_prefetcher", "distributed"),
    *("persistent_workers", "worker_seeding"),
)
DATASET_ARGUMENTS = ("root", "train", "split", "transform", "download")
SAMPLER, BATCH_SAMPLER = ("sampler", "3"), ("batch_sampler", "4")
ACCUMULATING = ("gradient_accumulation_steps", "accumulate_grad_batches")  # options of accelerate, Trainers, Lightning
OTHER = "one call makes several loaders: which of them is for validation, if any?"
SEVERAL = "one of several loaders that a step runs on; a recipe has one for training"
EXPORT = "folder:PATH takes a folder of colour images for each class, arrays:FILE an .npz of anything else"


def data(interpreter: Interpreter, flow: Flow, accumulate: int, fit: Given | None) -> Entry:
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
    made_too = [seen for seen in loaders if seen is not training]
    others = [seen for seen in made_too if not runs_over(flow, training, "step") or read(flow, seen)]
    looped = [seen for seen in others if looped_over(flow, seen)]  # of those that are made, some may not be used
    evaluating = [seen for seen in others if evaluates(seen, flow)]
    both = [seen for seen in evaluating if seen in looped]
    evaluation = next(iter(both or (looped if len(looped) == 1 else evaluating)), None)
    if checked is not None:
        evaluation = next((s for s in others if s.node is checked[0].node), None) if len(checked) == 1 else None
    other = next((seen for seen in made_too if training is not None and either(training, seen)), None)
    if training is not None and other is not None:
        loaders, training = [training, other], None  # only one of them is made, for both purposes
    assert section.below is not None
    if training is None:
        unclear = "which loader is trained on could not be read"
        several = [f"{place(seen)}: {SEVERAL if len(found) > 1 else unclear}" for seen in found or loaders]
        section.comments += several or [not_found(flow, "no data loader was found"), *moved(flow)]
        made = [seen for seen in loaders if seen.certainty != PERHAPS]
        sizes = [entry for seen in made for entry in _batch(seen, flow, "batch", factor)]
        loops = around_steps(flow)  # which may read no loader at all
        reads = [getattr(call.func, "id", "") for s in flow.statements if {*s.around} & {*loops} for call in s.calls]
        none = loops and not found and all(_counts(loop) for loop in loops) and "next" not in reads
        same = len(sizes) > 1 and len({entry.value for entry in sizes}) == 1 and not none  # whichever trains
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
            begins = next((a.value for a in loader.arguments or [] if a.name == "worker_init_fn"), Constant(None))
            if is_none(begins) or isinstance(getattr(begins, "node", None), ast.FunctionDef):
                taken += ("worker_init_fn",)  # its statements are accounted for
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
    if evaluation is None and checked is None and len(runs) > 1:
        section.below.append(Entry("validation", ASK, [*_made_for(flow, training.node), OTHER]))
    section.below += _agreed([_batch(seen, flow, "batch", factor) for seen in runs])
    section.below += _agreed([_batch(seen, flow, "eval_batch", 1) for seen in checks])
    section.below += _agreed([transforms(seen, "transforms", flow) for seen in runs])
    section.below += _agreed([transforms(seen, "eval_transforms", flow) for seen in checks])
    section.below += _agreed([_fetching(seen) for seen in runs])
    return section


def accumulated_by_library(flow: Flow, drafted: ast.expr | None) -> str | None:
    """Words for another call that has a library add up the gradients of several batches; None where there is none."""
    for statement in flow.statements:
        for call in statement.calls:
            given = next((k.value for k in call.keywords if k.arg in ACCUMULATING), None)
            own = isinstance(flow.value(call.func), (ScriptFunction, ScriptClass))
            once = given is not None and is_known(value := flow.value(given)) and known(value) in (None, 1)
            if given is not None and not own and not once and call is not drafted:
                words = f"{shown(statement.text)}: a step of the optimizer takes several batches of a loader"
                return str(Comment(statement.place, words))
    return None


def _made_for(flow: Flow, node: ast.expr) -> list[str]:
    """The places that call the function in which a loader is made."""
    callers = (statement for statement, *_ in flow.calls.get(id(flow.of[id(node)].function), []))
    return [str(Comment(one.place, shown(one.text))) for one in dict.fromkeys(callers)]


def around_steps(flow: Flow) -> list[Statement]:
    """The loops around the steps of the optimizers, and around the calls of their functions; none where not all of
    these are known."""
    steps = [s for s in flow.interpreter.seen if s.name.endswith(".step")]
    steps = [s for s in steps if getattr(s.receiver, "family", "") == OPTIMIZER]
    runs = [s for s in steps if s.certainty not in (OPTION, UNCALLED)]
    nodes = [s.node for s in runs or steps]
    waiting, done = [flow.of[id(node)] for node in nodes if id(node) in flow.of], dict[int, Statement]()
    while waiting:
        statement = waiting.pop()
        callers = flow.calls.get(id(statement.function), [])
        if statement.function is not None and not callers:
            return []
        waiting += [one for one, _, _ in callers if id(one) not in done]
        done[id(statement)] = statement
    return list({id(head): head for s in done.values() for head in s.around if isinstance(head.node, LOOPS)}.values())


def _counts(loop: Statement) -> bool:
    """Whether a loop only counts: for step in tqdm(range(4000))."""
    over = getattr(loop.node, "iter", None)
    return isinstance(over, ast.Call) and any(getattr(part, "id", "") in ("range", "trange") for part in ast.walk(over))


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


def _samplers(loader: LibraryUse, flow: Flow) -> Iterator[tuple[Place, str]]:
    """The samplers of a loader, which a recipe does not have, each with its place and the DistributedSamplers in it."""
    given = [one for one in (_given_to(loader, SAMPLER), _given_to(loader, BATCH_SAMPLER)) if one is not None]
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
            comments.append(f"[{words}: {SHARED}{_order(flow, flow.of[id(node)])}]")
        yield (loader.source.shown, argument.node.lineno), " ".join(comments)


def _order(flow: Flow, sampler: Statement) -> str:
    """Words for a DistributedSampler that is not reshuffled, or only under a condition that its making has not."""
    reached = flow.interpreter.reached
    calls = [s for s in flow.statements if any(getattr(call.func, "attr", "") == "set_epoch" for call in s.calls)]
    _, known_ = reached.get(id(sampler.node), (0, ()))
    more = [[one for one in reached.get(id(s.node), (0, ()))[1] if one not in known_] for s in calls]
    only = " or ".join(map(joined, more))
    where = "" if not calls else f" where not ({only})"
    return "" if calls and not all(more) else f", and without set_epoch every epoch has the same order{where}"


def _batches(loader: LibraryUse) -> LibraryUse | None:
    """The call with a loader's batch size: its own, or its BatchSampler's; None where neither has it."""
    argument = _given_to(loader, BATCH_SAMPLER)
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
    if key == "validation" and (cut := cut_of(loader)) is not None:
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
    sampled = _given_to(loader, SAMPLER) is not None or _given_to(loader, BATCH_SAMPLER) is not None
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


# which loaders, where the script has a loop of its own

# loaders, where the script has a loop of its own
EVALUATION = re.compile(r"(?:^|[^a-z])(?:val|valid|validation|dev|test|eval)(?:$|[^a-z])|train=False|testset|valset")
TRAINING = re.compile(r"(?:^|[^a-z])(?:train|training|trn|fit)(?:$|[^a-z])")
CUTS = ("Subset", "random_split")
SHARES = "torch.utils.data.DistributedSampler"
SHARED = "each process's share, as msmigrate train --nproc does"


def steps_over(flow: Flow, loader: LibraryUse) -> bool:
    """Whether a loop over this loader holds a backward pass, itself or in a function that it calls."""

    def holds(node: ast.AST, depth: int = 0) -> bool:
        for inner in ast.walk(node):
            if not isinstance(inner, ast.Call):
                continue
            if isinstance(inner.func, ast.Attribute) and inner.func.attr in ("backward", "step"):
                return True
            function = flow.function_of(inner)
            if function is not None and depth < 4 and function is not node and holds(function, depth + 1):
                return True
        return False

    return any(holds(loop) for loop in loops_over(flow, loader))


def loops_over(flow: Flow, loader: LibraryUse) -> list[ast.For | ast.AsyncFor]:
    """The loops over this loader."""
    roles = Roles(flow, {id(loader.node): LOADER}, 1)
    loops = [s.node for s in flow.statements if isinstance(s.node, (ast.For, ast.AsyncFor))]
    return [loop for loop in loops if roles.loops_over(loop.iter) == LOADER]


def trained_on(flow: Flow, loaders: list[LibraryUse]) -> list[LibraryUse]:
    """The loaders that a training step surely runs on; where reading cannot tell, those with such a step in a loop over
    them, and of several those that are not for evaluation."""
    known_ = flow.interpreter.batches["step"] or flow.interpreter.batches["backward"]
    ranks = {id(seen): CERTAINTIES[known_.get(id(seen.node), len(CERTAINTIES) - 1)] for seen in loaders}
    for sure in (DEFAULT, PERHAPS):
        found = [seen for seen in loaders if ranks[id(seen)] == sure]
        if found and (sure == DEFAULT or len(found) == 1):
            return found
    found = [seen for seen in loaders if steps_over(flow, seen)] or found
    return found if len(found) < 2 else [seen for seen in found if not evaluates(seen, flow)]


def runs_over(flow: Flow, loader: LibraryUse | None, what: str = "over") -> bool:
    """Whether code that runs loops over this loader; what: or makes a step on it."""
    rank = flow.interpreter.batches[what].get(id(loader.node)) if loader is not None else None
    return rank is not None and CERTAINTIES[rank] in (DEFAULT, PERHAPS)


def read(flow: Flow, loader: LibraryUse) -> bool:
    """Whether a statement that may run reads a loader, other than for its length: it is not made in vain."""
    if runs_over(flow, loader):
        return True
    names = names_in(named(flow))
    for statement in flow.statements:
        rank, _ = flow.interpreter.reached.get(id(statement.node), (0, ()))
        unused = id(statement.node) in flow.interpreter.unnamed  # a method of that name is another one
        unused = unused or (statement.owner is not None and getattr(statement.function, "name", None) not in names)
        unused = unused and CERTAINTIES[rank] == UNCALLED
        if CERTAINTIES[rank] == OPTION or unused or isinstance(statement.node, ast.Return):
            continue
        plain = (call for call in statement.calls if getattr(call.func, "id", "") in ("len", "print", "type", "str"))
        counted = {id(one) for call in plain for one in call.args}
        for node in statement.nodes:
            made = flow.value(node) if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) else None
            same = isinstance(made, LibraryObject) and made.seen is not None and made.seen.node is loader.node
            if same and isinstance(getattr(node, "ctx", None), ast.Load) and id(node) not in counted:
                return True
    return False


def looped_over(flow: Flow, loader: LibraryUse) -> bool:
    """Whether a loop goes over this loader, by its name or as an element of a table."""
    rank = flow.interpreter.batches["over"].get(id(loader.node))
    return (rank is not None and CERTAINTIES[rank] != OPTION) or bool(loops_over(flow, loader))


def _keys_of(seen: LibraryUse, flow: Flow) -> Iterator[str]:
    """The keys under which a loader stands in a table: {"train": loader}, loaders["val"] = …, dict(test=…)."""
    found: list[tuple[ast.expr | None, ast.expr]] = []
    for statement in flow.statements:
        for node in statement.nodes:
            if isinstance(node, ast.Dict):
                found += zip(node.keys, node.values, strict=True)
            elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "dict":
                found += ((ast.Constant(k.arg), k.value) for k in node.keywords)
            elif isinstance(node, ast.Subscript) and isinstance(statement.node, ast.Assign):
                found += [(node.slice, statement.node.value)] if node in statement.node.targets else []
    for key, value in found:
        made = flow.value(value)
        same = isinstance(made, LibraryObject) and made.seen is not None and made.seen.node is seen.node
        if same and isinstance(key, ast.Constant) and isinstance(key.value, str):
            yield key.value.lower()


def evaluates(seen: LibraryUse, flow: Flow) -> bool:
    """Whether a loader is for validation or test, by its key in a table, or the names in its call."""
    keys = list(_keys_of(seen, flow))
    for pattern in (TRAINING, EVALUATION):
        if any(pattern.search(key) for key in keys):
            return pattern is EVALUATION
    argument = next((argument for argument in seen.arguments or [] if argument.name in (None, "dataset")), None)
    texts, made = [seen.source.text(argument.node)] if argument is not None else [], dataset_of(seen)
    if made is not None:
        texts += [made.source.text(inner.node) for inner in made.arguments or []]
        texts += [f"{inner.name}={known(inner.value)}" for inner in made.arguments or [] if inner.name == "train"]
        texts += [text for inner in made.arguments or [] if isinstance(text := known(inner.value), str)]
    return any(EVALUATION.search(text) or EVALUATION.search(text.lower()) for text in texts)


def dataset_of(seen: LibraryUse | None) -> LibraryUse | None:
    """The call that made a loader's data set."""
    value = seen.get("dataset", 0) if seen is not None else None
    while isinstance(value, LibraryObject) and isinstance(value.of, LibraryObject):
        value = value.of
    return value.seen if isinstance(value, LibraryObject) else None


def cut_of(seen: LibraryUse) -> str | None:
    """The source of what takes a part of a loader's data set, such as `Subset(data, fold)`; None where it has all."""
    value = seen.get("dataset", 0)
    while isinstance(value, LibraryObject):
        if value.name.rpartition(".")[2] in CUTS:
            return shown(value.seen.source.text(value.seen.node)) if value.seen is not None else value.name
        value = value.of
    return None


def moved(flow: Flow) -> list[str]:
    """The lines that call a sampler's set_epoch."""
    calls = (s for s in flow.statements for call in s.calls if getattr(call.func, "attr", "") == "set_epoch")
    return [Comment(s.place, f"{' '.join(s.text.split())}: a sampler that gives {SHARED}") for s in calls]


def sharing(flow: Flow, node: ast.expr) -> list[ast.Call]:
    """The calls behind an expression that make a DistributedSampler, or an object of a class derived from it."""
    found: dict[int, ast.Call] = {}
    for call in (inner for one in flow.behind(node) for inner in ast.walk(one) if isinstance(inner, ast.Call)):
        called = flow.value(call.func)
        lineage = called.lineage() if isinstance(called, ScriptClass) else [called]
        names = [one.name for one in lineage if isinstance(one, LibraryName)]
        if any(SHARES in restated(name) for name in names):
            found[id(call)] = call
    return list(found.values())


# transforms

COMPOSED = ("Compose", "Sequential")
# an image to a tensor of bytes, and that to floats: together these are a recipe's ToTensor
BYTES, FLOATS = ("PILToTensor", "ToImage", "ToImageTensor"), ("ToDtype", "ConvertImageDtype", "ConvertDtype")
NOTHING = ("ToPureTensor", "Identity")


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


def _made_at(value: Value, flow: Flow) -> ast.expr | None:
    """The first expression with this value; for an object of the script, the call that made it."""
    if isinstance(value, ScriptObject) and value.node is not None and id(value.node) in flow.of:
        return value.node
    every = (node for s in flow.statements for node in s.nodes)
    return next((one for one in every if isinstance(one, ast.expr) and flow.value(one) is value), None)


def _all_transforms(found: list[Value]) -> bool:
    return any(isinstance(step, LibraryObject) and "transforms" in step.name for step in found)


def _entries(steps: list[Value], flow: Flow) -> Iterator[Entry]:
    bytes_at: LibraryUse | None = None
    for step in steps:
        seen = step.seen if isinstance(step, LibraryObject) else None
        if seen is None:
            node = _made_at(step, flow)
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
        elif last in FLOATS and bytes_at is not None and _to_floats(seen):
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


def _to_floats(seen: LibraryUse) -> bool:
    """Whether a transform returns floats from 0 to 1."""
    dtype = seen.get("dtype", 0)
    floats = dtype is None or (isinstance(dtype, LibraryName) and dtype.name in ("torch.float", "torch.float32"))
    return floats and (not seen.name.endswith("ToDtype") or known(seen.get("scale", 1)) is True)


def _given_to(seen: LibraryUse, names: tuple[str, str]) -> CallArgument | None:
    """The argument of a call with this name, or at this position, where it is not None."""
    found = (a for i, a in enumerate(seen.arguments or []) if (a.name or str(i)) in names)
    return next((a for a in found if not (isinstance(a.value, Constant) and a.value.other is None)), None)
