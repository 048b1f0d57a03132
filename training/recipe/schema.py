"""What a recipe may say: the types of its sections, and the recipe itself."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeInt,
    PositiveInt,
    ValidationError,
    field_validator,
    model_validator,
)

from ...errors import BadInput, BadRecipe
from ...mappings import table
from ...mappings.rows import build
from ...migrate import model_spec
from ...printable import quoted
from ..models import model_names
from ..options import DEVICE
from .digest import OUTSIDE_THE_STEP, step_digest

StrictT = TypeVar("StrictT", bound="Strict")


class Strict(BaseModel):
    """A model without unknown fields, conversions or infinite values, that cannot be changed afterwards."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    def write(self, file: Path) -> None:
        """Store a job for the processes that do it."""
        file.write_text(self.model_dump_json(indent=2), encoding="utf-8")

    @classmethod
    def read(cls: type[StrictT], file: Path) -> StrictT:
        """Read what write() stored."""
        return cls.model_validate_json(file.read_text(encoding="utf-8"))


class Part(Strict):
    """Something the mapping table has a row for: its torch name and its torch arguments."""

    name: str
    args: dict[str, Any] = Field(default_factory=dict)

    @field_validator("args")
    @classmethod
    def _plain(cls, args: dict[str, Any]) -> dict[str, Any]:
        refuse_odd(args)
        return args


class Model(Part):
    """The network by name, and optionally the checkpoint that training starts from, and which of its parts train.

    source: for a torchvision or timm model, the MindSpore source that convert-model wrote; None: it is converted when
    it is needed. For a model of the user's own, FILE.py:NAME, the file of its counterpart, which has to exist. classes:
    how many classes a model of the user's has, where no argument num_classes says so. fresh: weights that are not taken
    from the checkpoint, such as a new head's; they start as the model draws them. freeze: parameters that do not train.
    freeze_statistics: norms whose running statistics neither move nor are replaced by the batch's while training. These
    three are globs over torch's names, where "!PATTERN" excludes names again. A name alone stands for a model, as on
    the command line: torchvision:resnet18(num_classes=10).
    """

    checkpoint: Path | None = Field(default=None, strict=False)
    source: Path | None = Field(default=None, strict=False)
    classes: PositiveInt | None = None
    fresh: list[str] = Field(default_factory=list)
    freeze: list[str] = Field(default_factory=list)
    freeze_statistics: list[str] = Field(default_factory=list)

    @property
    def num_classes(self) -> int:
        """How many classes it has: the model's own default where nothing says so."""
        return self.classes or model_names.num_classes(self.name, self.args)

    @property
    def known_classes(self) -> int | None:
        """How many classes it has; None for a model of the user's where nothing says so: it may have no classes."""
        said = self.classes or self.args.get("num_classes")
        return said if said is None and model_names.is_file(self.name) else self.num_classes

    @property
    def draws(self) -> bool:
        """Whether any of the weights that training starts from are drawn by the model."""
        return self.checkpoint is None or bool(self.fresh)

    @model_validator(mode="before")
    @classmethod
    def _named(cls, given: Any) -> Any:
        keys = {"name": given} if isinstance(given, str) else given
        name = keys.get("name") if isinstance(keys, dict) else None
        if not isinstance(name, str) or "args" in keys:
            return keys
        try:
            spec = model_spec.parse(name)
        except BadInput:  # one of msmigrate's own models, or no model
            return keys
        return keys if spec.args or spec.words else {**keys, "name": f"{spec.place}:{spec.name}", "args": spec.kwargs}


FOLDER = "folder:"
ARRAYS, ARRAY_SUFFIXES = "arrays:", (".npz", ".safetensors")  # a file of arrays, and the suffixes of its name
IN_FOLDERS = (FOLDER, "cifar10:", "cifar100:")
PLACES = (*IN_FOLDERS, ARRAYS)  # the sources that name a path on this machine


class Data(Strict):
    """Where the images come from, how many make a step, and how they are prepared; or, with a source `arrays:FILE`,
    arrays that the model takes as they are: tokens, several inputs, whatever the file holds.

    batch: images of one optimizer step in one process. transforms: for training; they may be random. eval_transforms:
    for validation, evaluation and prediction; None: the same, which must then not be random. The other keys say how the
    images are fetched and change nothing in a step, except fast_transforms, drop_last and shuffle.
    """

    source: str = "photographs"
    validation: str | None = None
    batch: PositiveInt = 8
    eval_batch: PositiveInt | None = None
    transforms: list[Part] = Field(default_factory=lambda: [Part(name="ToTensor")])
    eval_transforms: list[Part] | None = None
    fast_transforms: bool = False
    shuffle: bool = True
    drop_last: bool = True
    workers: PositiveInt = 2
    cache: bool = False
    on_corrupt: Literal["fail", "skip"] = "fail"

    @model_validator(mode="before")
    @classmethod
    def _as_they_are(cls, given: Any) -> Any:
        """Arrays get no transforms by default."""
        of_arrays = isinstance(given, dict) and str(given.get("source")).startswith(ARRAYS)
        return {"transforms": [], **given} if of_arrays else given

    @property
    def of_arrays(self) -> bool:
        """Whether these are arrays of a file, and not images."""
        return self.source.startswith(ARRAYS)

    @property
    def unit(self) -> str:
        """The word for examples in messages."""
        return "rows" if self.of_arrays else "images"


class Mixup(Strict):
    """timm's Mixup in batch mode: mixing or cutting and pasting images with the batch in reverse order.

    An alpha of 0 turns that kind off. prob: the probability of mixing a batch at all. switch_prob: that of CutMix when
    both are on. label_smoothing: of the soft targets; the loss then smooths nothing itself.
    """

    mixup_alpha: float = Field(default=0.8, ge=0)
    cutmix_alpha: float = Field(default=1.0, ge=0)
    prob: float = Field(default=1.0, ge=0, le=1)
    switch_prob: float = Field(default=0.5, ge=0, le=1)
    label_smoothing: float = Field(default=0.1, ge=0, lt=1)

    @model_validator(mode="after")
    def _mixes_something(self) -> Mixup:
        if not self.mixup_alpha and not self.cutmix_alpha:
            raise ValueError("mixup_alpha and cutmix_alpha are both 0: leave mixup out")
        return self


class Loss(Part):
    """The loss and its arguments; source: for a loss of the user's own, FILE.py:NAME, the file of its counterpart."""

    source: Path | None = Field(default=None, strict=False)

    @property
    def own(self) -> bool:
        """Whether it is the user's: a function of (outputs, labels), or a class of such functions."""
        return model_names.is_file(self.name)

    @property
    def counterpart(self) -> str:
        """The same loss in MindSpore: the function or class of the same name in `source`."""
        return f"{self.source}:{self.name.rpartition(':')[2]}"


class Group(Strict):
    """Parameters by glob patterns over their state_dict names, and the optimizer arguments they get instead."""

    params: list[str] = Field(min_length=1)
    args: dict[str, Any]

    @field_validator("args")
    @classmethod
    def _plain(cls, args: dict[str, Any]) -> dict[str, Any]:
        refuse_odd(args)
        return args


class Optimizer(Part):
    """The optimizer, its arguments, the parameters without weight decay, and further groups."""

    no_weight_decay: list[Literal["norm", "bias"]] = Field(default_factory=list)
    groups: list[Group] = Field(default_factory=list)


class Schedule(Part):
    """The learning-rate schedule; it moves after every optimizer step, or after every epoch."""

    per: Literal["step", "epoch"] = "step"


class Clip(Strict):
    """Clipping of the gradients by their global L2 norm, after unscaling and after the reduction over processes."""

    max_norm: float = Field(gt=0)


class DynamicLossScale(Strict):
    """torch.amp.GradScaler's rule: shrink at once when gradients overflow, grow after growth_interval good steps."""

    init_scale: float = Field(default=65536.0, gt=0)
    growth_factor: float = Field(default=2.0, gt=1)
    backoff_factor: float = Field(default=0.5, gt=0, lt=1)
    growth_interval: PositiveInt = 2000


class Amp(Strict):
    """Mixed precision, with float32 master weights at every level.

    O1: convolutions and linear layers in `dtype`, as torch.autocast. O2: everything but the norms and the loss. O3:
    everything but the loss.
    """

    level: Literal["O0", "O1", "O2", "O3"] = "O1"
    dtype: Literal["float16", "bfloat16"] = "float16"


class Ema(Strict):
    """An exponential moving average of weights and buffers, by the rule of timm's ModelEmaV2 and, with warmup, V3.

    decay: after the warm-up. warmup: let the decay rise as 1 - (1 + step / warmup_gamma) ** -warmup_power.
    """

    decay: float = Field(default=0.9998, gt=0, lt=1)
    warmup: bool = False
    warmup_gamma: float = Field(default=1.0, gt=0)
    warmup_power: float = Field(default=2 / 3, gt=0)
    min_decay: float = Field(default=0.0, ge=0, lt=1)
    update_after_step: NonNegativeInt = 0


class Watch(Strict):
    """Watchpoints: what is checked every `every` steps in gradients, weights and activations; a number is the bound at
    which a warning is logged, None turns that watch off.

    vanishing, exploding: bounds on a gradient's largest absolute value. unchanged: a weight that an update did not
    change. large_change: an update larger than this share of the weight's norm. dead_relu: a ReLU with at least this
    share of zeros in its output.
    """

    every: PositiveInt = 100
    vanishing: float | None = Field(default=None, gt=0)
    exploding: float | None = Field(default=None, gt=0)
    unchanged: bool = False
    large_change: float | None = Field(default=None, gt=0)
    dead_relu: float | None = Field(default=None, gt=0, le=1)


class Train(Strict):
    """How long training runs, where, and what it leaves behind; nothing here changes what one step computes.

    epochs: passes over the data. validate_every, checkpoint_every: in epochs; checkpoint_steps: also every this many
    steps. keep: how many checkpoints are kept, besides the best one. log_every: in steps. max_steps: stop earlier.
    finite: what is checked before an update reaches the weights: all gradients, or only the loss; with a loss scale or
    several processes it is the gradients. all_reduce_fusion: on Ascend, the indices of gradients (in the optimizer's
    order) after which another message starts, MindSpore's all_reduce_fusion_config.
    """

    epochs: PositiveInt = 90
    max_steps: PositiveInt | None = None
    validate_every: PositiveInt = 1
    checkpoint_every: PositiveInt = 1
    checkpoint_steps: PositiveInt | None = None
    keep: PositiveInt = 3
    log_every: PositiveInt = 10
    tensorboard: bool = False
    target: Literal["Ascend", "GPU", "CPU"] | None = None
    mode: Literal["graph", "pynative"] = "graph"
    device_id: NonNegativeInt = 0
    finite: Literal["gradients", "loss"] = "gradients"
    all_reduce_fusion: list[NonNegativeInt] = Field(default_factory=list)
    watch: Watch | None = None


def decay(ema: Ema, update: int) -> float:
    """The share of the average that stays in the given update, counted from 1.

    Without warmup and update_after_step it is constant, as in timm.utils.ModelEmaV2. With either it is ModelEmaV3's
    get_decay of that update: 0, so that the average is a copy, up to and including update_after_step + 1.
    """
    if not ema.warmup and not ema.update_after_step:
        return ema.decay
    step = max(0, update - ema.update_after_step - 1)
    if step == 0:
        return 0.0
    if not ema.warmup:
        return ema.decay
    warmed = 1 - (1 + step / ema.warmup_gamma) ** -ema.warmup_power
    return max(min(warmed, ema.decay), ema.min_decay)


def refuse_odd(value: Any, where: str = "") -> None:
    """Raise ValueError unless `value` is made of words, finite numbers, true, false, null, lists and mappings.

    YAML also has numbers as keys, .nan and .inf, which no argument of a recipe takes and JSON cannot hold.
    """
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise ValueError(f"the key {quoted(key)}{where} is not a word")
            refuse_odd(item, f" in {quoted(key)}")
    elif isinstance(value, (list, tuple)):
        for item in value:
            refuse_odd(item, where)
    elif type(value) is int and abs(value) >= 10**18:  # JSON allows it, and no float may be near it
        raise ValueError(f"{quoted(value)}{where} is a whole number of more than 18 digits")
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value}{where} is not a finite number")
    elif value is not None and not isinstance(value, (bool, int, float, str)):
        raise ValueError(f"{quoted(value)}{where} is neither a number, a word, true, false nor null")


ASK = "???"  # in a draft, the value that the script does not say
FINE_TUNING = ("fresh", "freeze", "freeze_statistics")  # the patterns of a recipe's model


class Devices(Strict):
    """Where parity-step and record run each side unless the command line says otherwise: torch's device, MindSpore's
    target, and the number of its device. Training runs on `train.target`."""

    torch: str = Field(default="cpu", pattern=f"^({DEVICE})$")
    mindspore: Literal["CPU", "Ascend", "GPU"] = "CPU"
    device_id: NonNegativeInt = 0


class Recipe(Strict):
    """One training step (model, data, mixing, loss, optimizer, schedule, clipping, accumulation, loss scale, mixed
    precision, moving average, seed), and under `train` how the whole run goes.

    not_in_this_recipe: in a draft, lines of the script that the recipe does not do, as FILE:LINE: and the line's text;
    nothing runs while there are any. ignore: the same for lines that the user decided to leave out.
    """

    model: Model
    data: Data = Field(default_factory=Data)
    loss: Loss = Field(default_factory=lambda: Loss(name="CrossEntropyLoss"))
    optimizer: Optimizer
    schedule: Schedule | None = None
    clip: Clip | None = None
    accumulate: PositiveInt = 1
    loss_scale: float | None = Field(default=None, gt=0)
    dynamic_loss_scale: DynamicLossScale | None = None
    amp: Amp | None = None
    ema: Ema | None = None
    mixup: Mixup | None = None
    sync_batchnorm: bool = False
    train: Train = Field(default_factory=Train)
    devices: Devices = Field(default_factory=Devices)
    seed: int = Field(default=42, ge=0, lt=2**31)
    not_in_this_recipe: list[str] = Field(default_factory=list)
    ignore: list[str] = Field(default_factory=list)

    @field_validator("not_in_this_recipe", "ignore")
    @classmethod
    def _placed(cls, lines: list[str]) -> list[str]:
        odd = next((line for line in lines if not re.match(r"[^\n]*?:\d+: ", line)), None)
        if odd is not None:
            raise ValueError(f"{quoted(odd)} does not begin with FILE:LINE: as the lines of a draft do")
        return lines

    @property
    def digest(self) -> str:
        """Sixteen hex digits that two recipes share when they describe the same step.

        The order of keys, the way a number is written, and the paths of the checkpoint and the images do not count,
        nor does anything that does not change the step (`train`, how images are fetched, validation): the same recipe
        has the same digest on every machine. The content of those files is compared separately, to the bit: the
        starting weights and the batches are part of every trace.
        """
        tree = self.model_dump(mode="json", exclude=OUTSIDE_THE_STEP)
        return step_digest(tree, later=(*FINE_TUNING, "classes"), places=PLACES)

    @property
    def one_hot(self) -> bool:
        """Whether the loss takes float targets of the logits' shape rather than class indices."""
        return self.mixup is not None or self.rows

    @property
    def rows(self) -> bool:
        """Whether the loss gets such targets for a batch that is not mixed; a user's own loss gets class indices, and
        any loss the labels of a file as they are."""
        own = self.loss.own or self.data.of_arrays
        return not own and table.row(self.loss.name).short != "CrossEntropyLoss"


def table_args(part: Part) -> dict[str, Any]:
    """The part's arguments as the mapping table takes them: the schedules inside a schedule as [name, args]."""
    args = dict(part.args)
    if "schedulers" in args:
        inner = [Part.model_validate(scheduler) for scheduler in args["schedulers"]]
        args["schedulers"] = [[found.name, found.args] for found in inner]
    return args


def construct(part: Part, *positional: Any, args: dict[str, Any] | None = None) -> Any:
    """The MindSpore object for a part, with every argument written out, after `positional` ones; args: in place of the
    part's own, as the mapping table takes them.

    Raises UnknownRow, BadInput or Unsupported for a part without a translation, BadRecipe where MindSpore refuses a
    value.
    """
    call = table.translate(part.name, table_args(part) if args is None else args)
    try:
        return build(call, *positional)
    except (TypeError, ValueError) as error:
        raise BadRecipe(f"{call.target}: {' '.join(str(error).split())}") from error


def worst(error: ValidationError) -> Any:
    """The pydantic error to report: an unknown key first, because a missing key may be that one, misspelled."""
    found = error.errors()
    return next((one for one in found if one["type"] == "extra_forbidden"), found[0])


def explain(error: Any, kind: type[BaseModel], where: tuple[Any, ...] = ()) -> str:
    """One line for one of pydantic's errors about a `kind` at `where` in the recipe."""
    loc = error["loc"][:-1] if error["loc"][-1:] == ("[key]",) else error["loc"]
    place = ".".join(str(part) for part in (*where, *loc)) or "recipe"
    if error["type"] == "extra_forbidden":
        known = _known_keys(kind, loc[:-1])
        key = str(loc[-1])
        near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(known)}"
        return f"unknown key {place!r}; {hint}"
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] in ("model_type", "model_attributes_type"):
        message = f"must be a mapping with the keys {', '.join(_known_keys(kind, loc))}"
    elif loc != error["loc"]:
        message = "a key must be a word"
    elif error["type"] == "missing":
        message = "is missing"
    shown = repr(error["input"])
    shown = shown if len(shown) <= 80 else f"{shown[:77]}..."
    return f"{place}: {message}" + (f", got {shown}" if (*where, *loc) and error["type"] != "missing" else "")


def _known_keys(kind: Any, loc: tuple[Any, ...]) -> list[str]:
    """The keys of the part at `loc` in a `kind`; none where the recipe's types name no part there."""
    for step in loc:
        annotation = kind.model_fields[step].annotation if not isinstance(step, int) else kind
        kind = next(_parts_of(annotation), None)
        if kind is None:
            return []
    return list(kind.model_fields)


def _parts_of(annotation: Any) -> Iterator[type[BaseModel]]:
    """The parts of a recipe in an annotation such as `list[Part] | None`, at any depth."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _parts_of(inner)
