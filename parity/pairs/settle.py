"""The alignment of a run's pair: made by the parent once both workers have told their structure, read by both."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ...errors import Ambiguous, BadInput
from ...input_files import read_json
from ...migrate.name_map import read_rules, write_rules
from ...train.recipe import FOLDER, Recipe
from ..worker import Options, wait_for
from .align import align, everything
from .alignment import IDENTITY, Alignment, Lack, Left, Match, Scope, Tensor, Unlike
from .structure import Structure, file, read

ALIGNMENT = "alignment.json"
FORMAT = 2
MOST = 3  # of what is not alike, in one message


def settle(folder: Path, options: Options) -> None:
    """Align the two structures that lie in `folder`, and leave alignment.json there.

    Raises Ambiguous for what the user has to settle by a map, BadInput for models that have nothing in common.
    """
    if options.pair is None:
        return
    rules = read_rules(options.pair.map_file)
    torch, mindspore = read(file(folder, "torch")), read(file(folder, "mindspore"))
    found = align(torch, mindspore, rules)
    check(found)
    classes = torch.outputs[0][1] if torch.outputs and len(torch.outputs[0]) > 1 else 0
    found = replace(found, classes=classes, logits=_logits(torch), scope=scope(torch, mindspore))
    partial = folder / f"{ALIGNMENT}.partial"
    partial.write_text(json.dumps({"format": FORMAT, **asdict(found)}, indent=1), encoding="utf-8")
    partial.replace(folder / ALIGNMENT)


def check(found: Alignment) -> None:
    """Raise Ambiguous where only the user can say which is which, BadInput where nothing at all corresponds."""
    if found.ask:
        more = f" (and {len(found.ask) - 1} more such groups)" if len(found.ask) > 1 else ""
        raise Ambiguous(f"{found.ask[0]}{more}")
    if found.unlike and not any(not found.other_shape(name) for name in found.parameters):
        shown = "; ".join(each.text for each in found.unlike[:MOST])
        raise BadInput(
            f"the two models have nothing in common that could be compared: {shown}: name the two that belong "
            "together, or say what corresponds with --map"
        )


def _logits(torch: Structure) -> tuple[int, ...]:
    return torch.outputs[0] if len(torch.outputs) == 1 else ()


def scope(torch: Structure, mindspore: Structure) -> Scope:
    """What both sides can record."""
    own = {*torch.own, *mindspore.own}
    step, optimizer = "step" in own, "optimizer" in own
    return Scope(
        image_gradient=not (torch.tokens or step),
        optimizer_state=not optimizer,
        rates=not optimizer,
        given_gradients=True,
        given_logits=len(torch.outputs) == 1 and len(mindspore.outputs) == 1,
    )


def read_alignment(options: Options) -> Alignment:
    """The run's alignment, waiting for the parent to write it; the identity for a recipe's own models.

    Raises BadInput for a file that is no alignment.
    """
    if options.pair is None:
        return IDENTITY
    if options.alone:  # of a net that is elsewhere nothing is known: everything may have a counterpart
        torch = read(file(options.folder, "torch"))
        return replace(everything(torch), logits=_logits(torch), scope=scope(torch, torch))
    path = wait_for(options.folder / ALIGNMENT)
    try:
        document = read_json(path)
        if document.pop("format") != FORMAT:
            raise ValueError("another format")
        return _alignment(document)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadInput(f"{path}: is no alignment: {' '.join(str(error).split())[:300]}") from None


def _alignment(document: dict[str, Any]) -> Alignment:
    modules = tuple(Match(**fields) for fields in document["modules"])
    calls = tuple((ours, k, theirs, their_k) for ours, k, theirs, their_k in document["calls"])
    parameters = {n: Tensor(**{**f, "shape": tuple(f["shape"])}) for n, f in document["parameters"].items()}
    left = tuple(Left(**fields) for fields in document["left"])
    unlike = tuple(Unlike(**{**fields, "lack": Lack(fields["lack"])}) for fields in document["unlike"])
    logits, classes = tuple(document["logits"]), document["classes"]
    texts = [text for m in modules for text in asdict(m).values()] + [c[0] for c in calls] + [c[2] for c in calls]
    texts += [text for name, t in parameters.items() for text in (name, t.mindspore, t.owner, t.how, t.sure)]
    texts += [str(text) if isinstance(text, Lack) else text for each in unlike for text in vars(each).values()]
    counts = [n for c in calls for n in (c[1], c[3])] + [*logits, classes]
    counts += [n for tensor in parameters.values() for n in tensor.shape]
    repeated = {str(side): dict(paths) for side, paths in document["counts"].items()}
    if not all(type(n) is int and n > 0 for paths in repeated.values() for n in paths.values()):
        raise ValueError("a layer runs so many times that it is no number")
    flags = document["scope"]
    if not all(type(text) is str for text in texts) or not all(type(n) is int and n >= 0 for n in counts):
        raise ValueError("a name is no text, or a number is none")
    if not all(type(flag) is bool for flag in flags.values()):
        raise ValueError("the scope is not made of true and false")
    return Alignment(modules, calls, parameters, left, classes, logits, Scope(**flags), (), unlike, repeated)


def write_map(folder: Path, path: Path) -> None:
    """Write the alignment of a run as a map to edit. Raises BadInput."""
    try:
        document = read_json(folder / ALIGNMENT)
        found = _alignment({key: value for key, value in document.items() if key != "format"})
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadInput(f"{folder / ALIGNMENT}: is no alignment: {' '.join(str(error).split())[:300]}") from None
    pairs = [(m.torch, m.mindspore, f"{m.how}, {m.sure}") for m in found.modules if m.torch and m.mindspore]
    below = {m.torch for m in found.modules}
    pairs += [
        (name, t.mindspore, f"{t.how}, {t.sure}")
        for name, t in found.parameters.items()
        if name.rpartition(".")[0] not in below
    ]
    write_rules(path, pairs)


def recipe_of(options: Options, classes: int) -> Recipe:
    """The recipe of a compared step, for a pair's number of classes, checkpoint and folder of images."""
    recipe, pair = options.step_recipe, options.pair
    if pair is None:
        return recipe
    model = recipe.model.model_copy(update={"args": {"num_classes": classes}, "checkpoint": pair.checkpoint})
    data = recipe.data
    if pair.batch is not None and str(pair.batch).startswith(FOLDER):
        data = data.model_copy(update={"source": str(pair.batch)})
    return recipe.model_copy(update={"model": model, "data": data})


def batch_file(options: Options) -> Path | None:
    """The file of the user's batches, None where the images come from the recipe or a folder."""
    pair = options.pair
    return None if pair is None or pair.batch is None or str(pair.batch).startswith(FOLDER) else pair.batch
