"""Match, Alignment, Scope; alignment.json read and written; the map to edit.

In this order, each step only for what the ones before left open: the user's map; equal names whose classes and shapes
agree; the order of execution, with classes and shapes; the only candidate of its class and shape. Containers go by the
layers they span. What these cannot decide the user is asked about; nothing is guessed.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from pathlib import Path

import numpy as np
from pydantic import NonNegativeInt, PositiveInt

from ...errors import Ambiguous, BadInput, BadRecipe
from ...input_files import read_json, typed
from ...migrate.checkpoint.user_map import TOGETHER, line, write_rules
from ...printable import few
from ...training.models.model_names import is_file
from ...training.recipe.schema import FINE_TUNING, Recipe
from ...workers.worker import wait_for
from ..job import ParityJob
from .layers import Calls, Layers, across_blocks, describe, torch_class
from .model_structure import Shape, Structure, Values, file, parent, read


def everything(torch: Structure) -> Alignment:
    """A model aligned with itself: what torch can record as long as nothing is known of the MindSpore net."""
    layers = Layers(torch)
    return Alignment(
        tuple(Match(module.path, module.path, NAME, CERTAIN) for module in torch.modules),
        tuple((call.path, call.call, call.path, call.call) for call in layers.calls),
        {
            name: Tensor(name, torch_class(torch.by_path[parent(name)].kind), held.shape, NAME, CERTAIN)
            for name, held in torch.tensors().items()
        },
        counts={torch.framework: layers.several()},
    )


MAP, NAME, ORDER, ONLY, SPAN = "map file", "same name", "order, type and shape", "type and shape", "the layers inside"
CERTAIN, LIKELY = "certain", "likely"


@dataclass(frozen=True)
class Match:
    """Two modules, by path, that are the same; how that was found, and how sure it is."""

    torch: str
    mindspore: str
    how: str
    sure: str


@dataclass(frozen=True)
class Tensor:
    """Where a torch parameter or buffer is in the MindSpore net: its path there, the torch class of its layer, its
    shape in torch, and how that was found."""

    mindspore: str
    owner: str
    shape: Shape
    how: str
    sure: str


@dataclass(frozen=True)
class Cut:
    """A tensor that one net has whole and the other in consecutive parts along an axis, such as the projection of
    query, key and value. It is compared in torch's form.

    torch, mindspore: the names on each side; one side has a single name, the whole. owner: the torch class of the
    layer, or of the first layer, that torch has it in. shape: of the whole, with torch's axes; axis: which of these is
    cut; sizes: of the parts, along it.
    """

    torch: tuple[str, ...]
    mindspore: tuple[str, ...]
    owner: str
    shape: Shape
    axis: NonNegativeInt
    sizes: tuple[NonNegativeInt, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of MindSpore's parameters where all others have torch's names."""
        if len(self.torch) > 1:
            return (TOGETHER.join(self.torch),)
        return tuple(f"{self.torch[0]} (part {i} of {len(self.sizes)})" for i in range(1, len(self.sizes) + 1))

    @property
    def part_shapes(self) -> tuple[Shape, ...]:
        """The shape of each part, with torch's axes."""
        return tuple((*self.shape[: self.axis], size, *self.shape[self.axis + 1 :]) for size in self.sizes)

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """The shape of each of MindSpore's parameters, with torch's axes."""
        return self.part_shapes if len(self.torch) == 1 else (self.shape,)

    def as_torch(self, arrays: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
        """The arrays of MindSpore's parameters in torch's form, by torch's names."""
        return self._between(self.torch, arrays)

    def as_mindspore(self, arrays: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
        """The arrays of torch's tensors in MindSpore's form, by `names`."""
        return self._between(self.names, arrays)

    def _between(self, names: tuple[str, ...], arrays: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
        if len(names) > 1:
            (whole,) = arrays
            if whole.shape != self.shape:  # one number for the whole tensor, such as a count of steps
                return dict.fromkeys(names, whole)
            return dict(zip(names, np.split(whole, np.cumsum(self.sizes)[:-1], self.axis), strict=True))
        if tuple(array.shape for array in arrays) == self.part_shapes:
            return {names[0]: np.concatenate(arrays, self.axis)}
        return {names[0]: arrays[0]} if all(np.array_equal(arrays[0], array) for array in arrays) else {}


@dataclass(frozen=True)
class Left:
    """What has no counterpart and need not have one: a module without tensors of its own, or a constant."""

    framework: str
    name: str
    why: str


class Lack(str, Enum):
    """How a tensor differs between the two nets."""

    MISSING = "missing"  # torch alone has it
    CONSTANT = "constant"  # MindSpore has it as a plain Tensor, not as a Parameter
    SHARED = "shared"  # MindSpore shares it with another parameter, torch does not
    EXTRA = "extra"  # MindSpore alone has it
    UNSHARED = "unshared"  # torch shares it with another parameter, MindSpore does not
    FROZEN = "frozen"  # it trains in torch alone
    TRAINS = "trains"  # it trains in MindSpore alone
    SHAPE = "shape"  # it has another shape


IN_TORCH_ALONE = (Lack.MISSING, Lack.CONSTANT, Lack.SHARED)
IN_MINDSPORE_ALONE = (Lack.EXTRA, Lack.UNSHARED)


@dataclass(frozen=True)
class Unlike:
    """A tensor that differs between the two nets: a mismatch that is known before anything runs.

    name: what it is recorded as, torch's where torch has it; mindspore: its path in MindSpore's net, of a plain Tensor
    too, empty where it has none; owner: the torch class of its layer, or MindSpore's where torch has none; module: the
    outermost module (torch path, else MindSpore's) that one side lacks with all its tensors, empty where both have its
    layer; within: the torch path of the innermost module around it that both have; text: what is wrong, with the place
    in the user's file; fix: what to write in MindSpore.
    """

    lack: Lack
    name: str
    mindspore: str
    owner: str
    module: str
    within: str
    text: str
    fix: str


@dataclass(frozen=True)
class Question:
    """What only a map can decide: the reason, a text that the likely pairs are appended to; the names on either side
    that could be counterparts; and the pairs in the order in which these run or are defined."""

    text: str
    torch: tuple[str, ...]
    mindspore: tuple[str, ...]
    likely: tuple[tuple[str, str], ...]

    @property
    def message(self) -> str:
        """All of it, with the lines of a map that would decide it."""
        return f"{self.text}: {'; '.join(f'- {line(*pair)}' for pair in self.likely)}"


@dataclass(frozen=True)
class Scope:
    """What both sides can record, given what the user's functions brought.

    own_step: whether a side has a step of its own: then gradients are recorded as the optimizer gets them, and the
    recipe's accumulation, clipping, loss scale and moving average are not compared on given values.
    """

    image_gradient: bool = True
    optimizer_state: bool = True
    rates: bool = True
    given_logits: bool = True
    own_step: bool = False


ALL = Scope()


@dataclass(frozen=True)
class Alignment:
    """What corresponds in the two models.

    calls: (torch path, call, MindSpore path, call) of the layers that run; parameters: torch state name -> Tensor,
    in the torch model's order; classes: how many the torch model tells apart; logits, values: the shape and the
    numbers of its output; ask: what has to be decided by a map first; unlike: the tensors that differ between the
    two nets; left_alone: the parameters that torch's model does not compute with, and MindSpore's net freezes;
    freezes: whether it does so for this step alone; counts: framework -> path -> how often a layer runs in one
    pass, where that is not once; chains: torch path -> the Cells that compute one after the other what it does,
    none where no Cells do; shapes: torch path -> its output's shape without the first axis, where MindSpore's has
    the axes grouped otherwise, or the channels elsewhere; for_all: torch paths of what MindSpore's net computes
    once for all examples of a batch, and torch for each; aliases: further names of tensors that several of torch's
    modules have -> the first; cuts: the tensors that one side has in parts, which are not in `parameters`; order:
    torch's names in its model's order, where there are cuts; identity: a recipe's own models, whose names are
    equal.
    """

    modules: tuple[Match, ...] = ()
    calls: tuple[tuple[str, NonNegativeInt, str, NonNegativeInt], ...] = ()
    parameters: Mapping[str, Tensor] = field(default_factory=dict)
    left: tuple[Left, ...] = ()
    classes: NonNegativeInt = 0
    logits: Shape = ()
    values: Values = Values.ANY
    scope: Scope = ALL
    ask: tuple[Question, ...] = ()
    unlike: tuple[Unlike, ...] = ()
    left_alone: tuple[str, ...] = ()
    freezes: bool = False
    counts: Mapping[str, Mapping[str, PositiveInt]] = field(default_factory=dict)
    chains: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    for_all: tuple[str, ...] = ()
    aliases: Mapping[str, str] = field(default_factory=dict)
    cuts: tuple[Cut, ...] = ()
    order: tuple[str, ...] = ()
    identity: bool = False

    def mindspore_path(self, torch_path: str) -> str | None:
        """The Cell that is the counterpart of this torch module, None where there is none."""
        if self.identity:
            return torch_path
        return next((m.mindspore for m in self.modules if m.torch == torch_path), None)

    def torch_path(self, mindspore_path: str) -> str | None:
        """The torch module whose counterpart is this Cell, None where there is none."""
        if self.identity:
            return mindspore_path
        return next((m.torch for m in self.modules if m.mindspore == mindspore_path), None)

    @cached_property
    def mindspore_layers(self) -> set[str]:
        """The Cells of a pair that count as layers and have a counterpart; Cells inside them are not compared."""
        return {path for _, _, path, _ in self.calls}

    @cached_property
    def _torch_calls(self) -> dict[tuple[str, int], tuple[str, int]]:
        return {
            (mindspore, mindspore_call): (torch, torch_call)
            for torch, torch_call, mindspore, mindspore_call in self.calls
        }

    @cached_property
    def _compared(self) -> set[tuple[str, int]]:
        return {(torch, torch_call) for torch, torch_call, _, _ in self.calls}

    def torch_call(self, mindspore_path: str, call: int) -> tuple[str, int] | None:
        """The torch path and call of a layer's call; None where it has no counterpart.

        Micro-batches pass one after the other, so calls go on counting.
        """
        if self.identity:
            return mindspore_path, call
        passes, call = divmod(call, self._count("mindspore", mindspore_path))
        found = self._torch_calls.get((mindspore_path, call))
        return None if found is None else (found[0], found[1] + passes * self._count("torch", found[0]))

    def compared(self, torch_path: str, call: int) -> bool:
        """Whether this call of a torch layer has a counterpart."""
        return self.identity or (torch_path, call % self._count("torch", torch_path)) in self._compared

    @cached_property
    def lacks(self) -> dict[str, Unlike]:
        """Name -> how that tensor differs."""
        return {each.name: each for each in self.unlike}

    @cached_property
    def torch_names(self) -> frozenset[str]:
        """The tensors that torch records: what has a counterpart, or should have one."""
        alone = (each.name for each in self.unlike if each.lack in IN_TORCH_ALONE)
        return frozenset([*self.parameters, *alone, *(name for cut in self.cuts for name in cut.torch)])

    def alike(self, name: str) -> bool:
        """Whether both nets train this parameter, in one shape; only such parameters get given values."""
        return name not in self.lacks

    def other_shape(self, name: str) -> bool:
        """Whether a tensor's counterpart has another shape, and so cannot hold its values."""
        return name in self.lacks and self.lacks[name].lack is Lack.SHAPE

    def as_torch(self, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The arrays of MindSpore's parameters, joined or cut as torch has them; a tensor of which a part is missing is
        left out."""
        found = _regrouped(arrays, [(cut.names, cut.as_torch) for cut in self.cuts])
        return {name: found[name] for name in (*(name for name in self.order if name in found), *found)}

    def as_mindspore(self, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The arrays of torch's tensors, joined or cut as MindSpore's net has them."""
        return _regrouped(arrays, [(cut.torch, cut.as_mindspore) for cut in self.cuts])

    def _count(self, framework: str, path: str) -> int:
        return self.counts.get(framework, {}).get(path, 1)


def _regrouped(
    arrays: Mapping[str, np.ndarray],
    groups: Sequence[tuple[tuple[str, ...], Callable[[Sequence[np.ndarray]], Mapping[str, np.ndarray]]]],
) -> dict[str, np.ndarray]:
    """The arrays, in order; at the place of its first name, each group of names is replaced by its joined or cut
    arrays."""
    begins = {names[0]: (names, make) for names, make in groups}
    grouped = {name for names, _ in groups for name in names}
    found: dict[str, np.ndarray] = {}
    for name, array in arrays.items():
        if name not in grouped:
            found[name] = array
        elif name in begins:
            names, make = begins[name]
            found |= make([arrays[each] for each in names]) if all(each in arrays for each in names) else {}
    return found


IDENTITY = Alignment(identity=True)

ALIGNMENT = "alignment.json"
OPEN = f"{ALIGNMENT}.partial"  # the alignment so far, where something is left to decide
FORMAT = 3
MOST = 3  # of what is not alike, in one message
MOST_NAMES = 5  # in one note


def _logits(torch: Structure) -> tuple[int, ...]:
    return torch.outputs[0] if len(torch.outputs) == 1 else ()


def scope(torch: Structure, mindspore: Structure) -> Scope:
    """What both sides can record."""
    own = {*torch.own, *mindspore.own}
    step, optimizer = "step" in own, "optimizer" in own
    unknown_loss = any("step" in side.own and "loss" not in side.own for side in (torch, mindspore))
    return Scope(
        image_gradient=not (torch.tokens or step),
        optimizer_state=not optimizer,
        rates=not optimizer,
        given_logits=len(torch.outputs) == 1 and len(mindspore.outputs) == 1 and not unknown_loss,
        own_step=step,
    )


def read_alignment(options: ParityJob) -> Alignment:
    """The run's alignment, waiting for the parent to write it; the identity for a recipe's own models.

    Raises BadInput for a file that is no alignment.
    """
    if options.pair is None:
        return IDENTITY
    if options.alone:  # nothing is known of a net on another machine: everything may have a counterpart
        torch = read(file(options.folder, "torch"))
        return replace(everything(torch), logits=_logits(torch), values=torch.values, scope=scope(torch, torch))
    return _read(wait_for(options.folder / ALIGNMENT))


def _read(path: Path) -> Alignment:
    try:
        document = read_json(path)
        if document.pop("format") != FORMAT:
            raise ValueError("another format")
        return typed(Alignment, document)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadInput(f"{path}: is no alignment: {' '.join(str(error).split())[:300]}") from None


def _pairs_of(cut: Cut) -> list[tuple[str, str]]:
    """(torch name, its entry in a map) for a tensor that is cut."""
    numbers = range(1, len(cut.sizes) + 1)
    parts = [f"{cut.mindspore[0]} [{number} of {len(cut.sizes)}]" for number in numbers]
    return [*zip(cut.torch, parts if len(cut.torch) > 1 else [TOGETHER.join(cut.mindspore)], strict=True)]


def map_lines(cut: Cut) -> list[str]:
    """The lines of a map for a tensor that is cut."""
    return [line(*pair) for pair in _pairs_of(cut)]


def write_map(folder: Path, path: Path) -> None:
    """Write the alignment of a run, a refused one too, as a map to edit: what was found, and as comments what is open.

    Raises BadInput where there is none.
    """
    whole = folder / ALIGNMENT
    found = _read(whole if whole.exists() else folder / OPEN)
    asked = {name for question in found.ask for name in question.torch}
    pairs = [
        (m.torch, m.mindspore, f"{m.how}, {m.sure}")
        for m in found.modules
        if m.torch and m.mindspore and m.torch not in asked
    ]
    below = {m.torch for m in found.modules}
    pairs += [
        (name, t.mindspore, f"{t.how}, {t.sure}")
        for name, t in found.parameters.items()
        if name.rpartition(".")[0] not in below
    ]
    for cut in found.cuts:
        pairs += [(*pair, f"cut otherwise, {LIKELY}") for pair in _pairs_of(cut)]
    holding = {name[:end] for name in found.parameters for end, c in enumerate(name) if c == "."}
    write_rules(path, pairs, {m.torch for m in found.modules} - holding, _open(found))


def _open(found: Alignment) -> Iterator[tuple[str, Iterable[tuple[str, str]]]]:
    """What a map has to decide, or could: the reason, and each candidate pair."""
    for question in found.ask:
        every = [(torch, mindspore) for torch in question.torch for mindspore in question.mindspore]
        yield question.text, dict.fromkeys([*question.likely, *every])
    asked = {name for question in found.ask for name in (*question.torch, *question.mindspore)}
    alone = [
        each
        for each in found.unlike
        if each.lack in (Lack.MISSING, Lack.EXTRA) and not {each.name, each.mindspore} & asked
    ]
    mindspore = dict.fromkeys(each.module or each.mindspore for each in alone if each.lack is Lack.EXTRA)
    for text, name in {each.text: each.module or each.name for each in alone if each.lack is Lack.MISSING}.items():
        yield text, [(name, other) for other in mindspore]
    for each in alone if not any(each.lack is Lack.MISSING for each in alone) else ():
        yield each.text, []


def pair_notes(alignment: Alignment) -> list[str]:
    """How the pair was aligned, what has no counterpart, and what is not compared because of it."""
    if alignment.identity:
        return []
    how = Counter(match.how for match in alignment.modules)
    likely = [match for match in alignment.modules if match.sure == LIKELY]
    tensors = len(alignment.parameters) + sum(len(cut.torch) for cut in alignment.cuts)
    found = [
        f"{len(alignment.modules)} modules and {tensors} tensors were aligned: "
        + ", ".join(f"{count} by {name}" for name, count in how.most_common())
        + (f"; {len(likely)} of them likely rather than certain" if likely else "")
    ]
    if alignment.cuts:
        shown = f"torch's {', '.join(alignment.cuts[0].torch)} and MindSpore's {', '.join(alignment.cuts[0].mindspore)}"
        more = f" (and {len(alignment.cuts) - 1} more such)" if len(alignment.cuts) > 1 else ""
        found.append(f"the same values, cut otherwise, in this order, and compared as torch has them: {shown}{more}")
    for framework, name in (("torch", "torch's"), ("mindspore", "MindSpore's")):
        left = [left for left in alignment.left if left.framework == framework]
        if left:
            shown = ", ".join(f"{one.name} ({one.why})" for one in left[:MOST_NAMES])
            more = f" and {len(left) - MOST_NAMES} more" if len(left) > MOST_NAMES else ""
            found.append(f"without a counterpart, and so not compared alone, of {name}: {shown}{more}")
    if alignment.left_alone:
        shown = few(alignment.left_alone, MOST_NAMES)
        step = ", for this step (in training, freeze what your inputs do not reach)" if alignment.freezes else ""
        found.append(
            f"frozen in MindSpore{step}; torch's model does not compute with them, and leaves them alone: {shown}"
        )
    scope = alignment.scope
    without = {
        "the gradient of the input": scope.image_gradient,
        "optimizer state": scope.optimizer_state,
        "learning rates and weight decays": scope.rates,
        "the loss on given logits": scope.given_logits,
    }
    lacks = [name for name, there in without.items() if not there]
    if lacks:
        found.append(f"not recorded for this pair: {', '.join(lacks)}")
    return found


def check(found: Alignment) -> None:
    """Raise Ambiguous where only the user can say which is which, BadInput where nothing at all corresponds."""
    if found.ask:
        more = f" (and {len(found.ask) - 1} more such groups)" if len(found.ask) > 1 else ""
        raise Ambiguous(f"{found.ask[0].message}{more}")
    if found.unlike and not found.cuts and all(found.other_shape(name) for name in found.parameters):
        shown = "; ".join(each.text for each in found.unlike[:MOST])
        raise BadInput(
            f"the two models have nothing in common that could be compared: {shown}: name the two that belong "
            "together, or say what corresponds with --map"
        )


def check_recipe(recipe: Recipe, found: Alignment) -> None:
    """Raise BadRecipe where training would understand what the recipe says of its model differently than the proof."""
    model = recipe.model
    if model.classes is not None and found.classes and model.classes != found.classes:
        raise BadRecipe(f"model.classes is {model.classes}, and {model.name} gives {found.classes} numbers per image")
    other = next((match for match in found.modules if match.torch != match.mindspore), None)
    named = [f"model.{key}" for key in (*FINE_TUNING, "checkpoint") if getattr(model, key)]
    named += ["optimizer.groups"] if recipe.optimizer.groups else []
    if other is not None and named and is_file(model.name):
        raise BadRecipe(
            f"{named[0]} uses torch's names, and training MindSpore's: {other.torch} is {other.mindspore} in "
            f"{model.source}; name its attributes as {model.name} does, as convert-model writes them"
        )


Pairs = dict[str, tuple[str, str, str]]


def doubts(torch: Layers, mindspore: Layers, pairs: Pairs, calls: Calls) -> list[Question]:
    """One question for each group of layers that could change places, with the lines of a map that would decide it.

    Branches that start from one tensor and look alike run in an order that means nothing. Where the order of definition
    agrees with it on both sides they are paired in it; where it does not, the user has to say. The user is also asked
    about layers whose inputs come from layers that are not each other's counterparts.
    """
    by_order = [call for call in calls if pairs.get(call[0], ("", "", ""))[1] in (ORDER, ONLY)]
    by_order = [call for call in by_order if torch.by_path[call[0]].tensors]
    groups = [*_forks(torch, mindspore, by_order), *_crossed(torch, mindspore, by_order, pairs)]
    questioned: set[str] = set()
    found = []
    for mine, its in groups:
        if not set(mine) & questioned:
            questioned |= set(mine)
            found.append(_question(torch, mindspore, mine, its))
    return found


def _forks(torch: Layers, mindspore: Layers, calls: Calls) -> list[tuple[list[str], list[str]]]:
    groups: dict[tuple[object, ...], list[tuple[str, str]]] = {}
    for path, k, mindspore_path, mindspore_k in calls:
        one, other = torch.by_call[path, k], mindspore.by_call[mindspore_path, mindspore_k]
        if one.inputs and other.inputs:
            key = (one.inputs[0], other.inputs[0], torch.branch(one), mindspore.branch(other))
            groups.setdefault(key, []).append((path, mindspore_path))
    found = []
    for members in groups.values():
        torch_paths, mindspore_paths = [a for a, _ in members], [b for _, b in members]
        if len(set(torch_paths)) < 2:
            continue
        defined = torch.structure.position, mindspore.structure.position
        if not all(
            _rising([position[path] for path in paths])
            for position, paths in zip(defined, (torch_paths, mindspore_paths), strict=True)
        ):
            found.append((torch_paths, mindspore_paths))
    return found


def _rising(numbers: list[int]) -> bool:
    return all(a <= b for a, b in itertools.pairwise(numbers))


def _crossed(torch: Layers, mindspore: Layers, calls: Calls, pairs: Pairs) -> list[tuple[list[str], list[str]]]:
    """The layers whose output goes straight to a pair of layers, and which were not paired with each other."""
    partner = {path: target for path, (target, _, _) in pairs.items()}
    found = []
    for path, k, mindspore_path, mindspore_k in calls:
        one, other = torch.by_call[path, k], mindspore.by_call[mindspore_path, mindspore_k]
        if not one.inputs or not other.inputs:
            continue
        before = torch.producers(one.inputs[0]), mindspore.producers(other.inputs[0])
        made = {partner[p] for p in before[0] if p in partner}
        mindspore_made = {p for p in before[1] if p in partner.values()}
        elsewhere = any(
            across_blocks(torch, partner, p, its) for p in before[0] if p in partner for its in mindspore_made
        )
        if made and mindspore_made and not made & mindspore_made and not elsewhere:
            doubtful = [c for c in calls if c[0] in before[0] or c[2] in before[1]]
            if doubtful:
                found.append(([c[0] for c in doubtful], [c[2] for c in doubtful]))
    return found


def _question(torch: Layers, mindspore: Layers, mine: list[str], its: list[str]) -> Question:
    def shown(layers: Layers, paths: list[str]) -> str:
        return ", ".join(dict.fromkeys(describe(layers.by_path[path]) for path in paths))

    return Question(
        f"{shown(torch, mine)} and {shown(mindspore, its)} look alike, and their order of execution does not say which "
        "is which: write it into a map and give it with --map; in the order in which they run it would be",
        tuple(dict.fromkeys(mine)),
        tuple(dict.fromkeys(its)),
        tuple(dict.fromkeys(zip(mine, its, strict=True))),
    )
