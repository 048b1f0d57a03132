"""A recipe drafted from a script: text that a person reads, corrects and keeps.

Every value names the line of the script that it comes from; what could not be told stands at the recipe's default, or
as a comment. What the recipe's reader refuses can be taken out with `draft_recipe(analysis, check)`: the reader stands
in another room, so the caller brings it.
"""

from __future__ import annotations

from collections.abc import Callable

from . import names, recipe_data, recipe_keys, recipe_losses, recipe_optimizing, recipe_precision
from .analysis import ScriptAnalysis
from .calling import family_of_class
from .noting import SURENESS
from .reading import Reader
from .recipe_keys import MODELS, calls, options, surely
from .recipe_values import Entry, number, place, sources
from .values import Seen, known

Check = Callable[[str], tuple[int, str] | None]  # a text -> the line that is refused, and why; None: none is
TRIES = 60
NEEDED = {  # a recipe without them is none
    "model": "model: {name: resnet50, args: {num_classes: 1000}}",
    "optimizer": "optimizer: {name: SGD, args: {lr: 0.1}}",
}
OTHERS = "for a model of one's own: msmigrate parity-step RECIPE --torch FILE.py:FUNCTION --mindspore FILE.py:FUNCTION"


def draft_recipe(analysis: ScriptAnalysis, check: Check | None = None) -> str:
    """Draft a recipe; with a check, what it refuses is turned into comments that say why.

    The check is given the text, and returns the line (counted from 1) and the reason of the first refusal, or None.
    """
    lines = _lines(analysis.reader, analysis.name)
    for _ in range(TRIES if check is not None else 0):
        refused = check("\n".join(lines) + "\n") if check is not None else None
        if refused is None:
            break
        line, reason = refused
        if not _take_out(lines, line - 1, reason):
            break
    return "\n".join(lines) + "\n"


def _take_out(lines: list[str], at: int, reason: str) -> bool:
    """Turn an entry and all below it into comments, with the reason above it; False where there is no such entry."""
    if not 0 <= at < len(lines) or lines[at].lstrip().startswith("#") or not lines[at].strip():
        return False
    needed = next((text for key, text in NEEDED.items() if lines[at].startswith(f"{key}:")), None)
    if needed == lines[at]:
        return False
    depth = len(lines[at]) - len(lines[at].lstrip())
    end = at + 1
    while end < len(lines) and lines[end].strip() and len(lines[end]) - len(lines[end].lstrip()) > depth:
        end += 1
    for index in range(at, end):
        bare = lines[index][depth:]
        lines[index] = f"{' ' * depth}# {bare}"
    lines.insert(at, f"{' ' * depth}# left out: {' '.join(reason.split())}")
    if needed is not None:
        lines.insert(end + 1, needed)
    return True


def _lines(reader: Reader, name: str) -> list[str]:
    micro_batches, why = recipe_optimizing.accumulate(reader)
    loss, smoothing = recipe_losses.loss(reader)
    mixup = recipe_losses.mixup(reader, smoothing)
    if mixup is not None and not mixup.out and loss is not None:
        _unsmoothed(loss)
    sections = [
        model(reader),
        recipe_data.data(reader, micro_batches),
        mixup,
        loss,
        recipe_optimizing.optimizer(reader),
        recipe_optimizing.schedule(reader),
        recipe_optimizing.clip(reader),
        Entry("accumulate", micro_batches, why) if micro_batches > 1 else None,
        *recipe_precision.amp(reader),
        recipe_precision.ema(reader),
        _sync(reader),
        train(reader),
        _seed(reader),
    ]
    lines = [
        f"# Drafted from {name}, which was read and not run. Every value names the line that it comes from; what could",
        "# not be told is at its default or a comment. recipes/resnet50.yaml explains every key.",
    ]
    for section in sections:
        if section is not None:
            lines += ["", *section.lines()]
    return lines


def _unsmoothed(loss: Entry) -> None:
    """A recipe that mixes smooths the labels there, and not in the loss."""
    for entry in loss.below or []:
        if entry.key == "args" and entry.below is not None:
            for argument in entry.below:
                if argument.key == "label_smoothing":
                    argument.out = True
                    argument.comments.append("mixup smooths the labels itself")
            if all(argument.out for argument in entry.below):
                entry.out = True
    if isinstance(loss.value, dict):
        loss.value.pop("args", None)


def model(reader: Reader) -> Entry:
    """The section `model`; every recipe has one."""
    made = [seen for seen in reader.seen if seen.arguments is not None and _makes_model(seen)]
    chosen = next(iter(surely(recipe_keys.by_sureness(made))), None)
    default = {"name": "resnet50", "args": {"num_classes": 1000}}
    if chosen is None:
        return Entry("model", default, _own_models(reader))
    last = chosen.name.rpartition(".")[2]
    told = known(next((chosen.get(key) for key in ("model_name", "name") if chosen.get(key)), chosen.get("", 0)), "")
    name = last if last in MODELS else str(told)
    comments = [place(chosen), *sources(chosen.get("name", 0))]
    if name not in MODELS:
        return Entry("model", default, [*comments, f"a recipe names {', '.join(MODELS)}", OTHERS])
    args = []
    for argument in ("num_classes", *MODELS[name]):
        value = chosen.get(argument)
        if value is None:
            continue
        if type(known(value)) in (int, bool):
            args.append(Entry(argument, known(value), sources(value)))
        else:
            comments.append(f"{argument} cannot be told: write it under args")
    weights = next((chosen.get(key) for key in ("weights", "pretrained") if chosen.get(key)), None)
    if weights is not None and known(weights, True):
        comments.append("it starts from trained weights: save its state_dict, and name the file under checkpoint")
    below = [Entry("name", name), *([Entry("args", below=args)] if args else [])]
    return Entry("model", comments=comments, below=below)


def _makes_model(seen: Seen) -> bool:
    made_by = ("torchvision.models.", "timm.create_model", "timm.models.", "torch.hub.load")
    return any(name.startswith(made_by) for name in names.restated(seen.name)) and not seen.receiver


def _own_models(reader: Reader) -> list[str]:
    """The classes of the script that it makes a model of."""
    own = [made for made in reader.made if family_of_class(made.of) == names.MODULE and made.node is not None]
    own.sort(key=lambda made: SURENESS.index(made.certainty or "uncalled"))
    for made in own:
        if made.source is None or made.node is None:
            continue
        where = f"{made.source.shown} line {made.node.lineno}: {made.source.text(made.node)}"
        return [where, f"a recipe names {', '.join(MODELS)}", OTHERS]
    return ["no model was found: the recipe's usual one"]


def _sync(reader: Reader) -> Entry | None:
    found = calls(reader, recipe_keys.SYNC)
    for seen in surely(found):
        return Entry("sync_batchnorm", True, [place(seen)])
    for seen in options(found):
        return Entry("sync_batchnorm", True, [f"{place(seen)}, only where {seen.condition}"], out=True)
    return None


def _seed(reader: Reader) -> Entry | None:
    for seen in surely(calls(reader, recipe_keys.SEED)):
        value = seen.get("seed", 0)
        told = number(value)
        if isinstance(told, int) and 0 <= told < 2**31:
            return Entry("seed", told, [place(seen), *sources(value)])
    return None


def train(reader: Reader) -> Entry | None:
    """The section `train`."""
    below = []
    bounds = sorted(reader.epochs, key=lambda found: SURENESS.index(found[2]))
    for value, origin, _ in bounds[:1]:
        count = number(value)
        where = f"{origin.file} line {origin.line}: for … in {origin.text}"
        if isinstance(count, int) and count > 0:
            below.append(Entry("epochs", count, [where, *sources(value)]))
        else:
            below.append(Entry("epochs", 90, [f"{where}: cannot be told"]))
    for seen in surely(calls(reader, recipe_keys.TENSORBOARD))[:1]:
        below.append(Entry("tensorboard", True, [place(seen)]))
    return Entry("train", below=below) if below else None
