"""The parts of a recipe: one checked type for each section of the YAML file."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, PositiveInt, field_validator, model_validator

from ..errors import BadInput
from ..migrate import model_spec
from . import strict_yaml


class Strict(BaseModel):
    """Nothing unknown, nothing converted, nothing infinite, nothing changed afterwards."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Part(Strict):
    """Something the mapping table has a row for: its torch name and its torch arguments."""

    name: str
    args: dict[str, Any] = Field(default_factory=dict)

    @field_validator("args")
    @classmethod
    def _plain(cls, args: dict[str, Any]) -> dict[str, Any]:
        strict_yaml.refuse_odd(args)
        return args


class Model(Part):
    """The network by name, and optionally the torch checkpoint that training starts from.

    source: of one of torchvision's or timm's, the MindSpore source that convert-model wrote; None: it is converted when
    it is needed. A name alone stands for a model, as on the command line: torchvision:resnet18(num_classes=10).
    """

    checkpoint: Path | None = Field(default=None, strict=False)
    source: Path | None = Field(default=None, strict=False)

    @model_validator(mode="before")
    @classmethod
    def _named(cls, given: Any) -> Any:
        if not isinstance(given, str):
            return given
        try:
            spec = model_spec.parse(given)
        except BadInput:  # one of msmigrate's own, or nothing
            return {"name": given}
        return {"name": given} if spec.args else {"name": f"{spec.place}:{spec.name}", "args": spec.kwargs}


class Data(Strict):
    """Where the images come from, how many make a step, and how they are prepared.

    batch: images of one optimizer step in one process. transforms: of training; they may be random. eval_transforms:
    of validation, evaluation and prediction; None: the same, which must then not be random. The rest says how the
    images are fetched and changes nothing in a step, save fast_transforms, drop_last and shuffle.
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


class Mixup(Strict):
    """timm's Mixup in batch mode: mixing or cutting and pasting images with the batch in reverse order.

    An alpha of 0 turns that kind off. prob: of mixing a batch at all. switch_prob: of CutMix when both are on.
    label_smoothing: of the soft targets; the loss then smooths nothing itself.
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


class Group(Strict):
    """Parameters by glob patterns over their state_dict names, and the optimizer arguments they get instead."""

    params: list[str] = Field(min_length=1)
    args: dict[str, Any]

    @field_validator("args")
    @classmethod
    def _plain(cls, args: dict[str, Any]) -> dict[str, Any]:
        strict_yaml.refuse_odd(args)
        return args


class Optimizer(Part):
    """The optimizer, its arguments, what is left out of the weight decay, and further groups."""

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

    decay: of a settled average. warmup: let the decay rise as 1 - (1 + step / warmup_gamma) ** -warmup_power.
    """

    decay: float = Field(default=0.9998, gt=0, lt=1)
    warmup: bool = False
    warmup_gamma: float = Field(default=1.0, gt=0)
    warmup_power: float = Field(default=2 / 3, gt=0)
    min_decay: float = Field(default=0.0, ge=0, lt=1)
    update_after_step: NonNegativeInt = 0


class Watch(Strict):
    """Watchpoints: what is looked for every `every` steps in gradients, weights and activations; a number is the
    bound at which a warning is logged, None turns that watch off.

    vanishing, exploding: bounds on a gradient's largest absolute value. unchanged: a weight that an update left
    as it was. large_change: an update larger than this share of the weight's norm. dead_relu: a ReLU of whose outputs
    at least this share is zero.
    """

    every: PositiveInt = 100
    vanishing: float | None = Field(default=None, gt=0)
    exploding: float | None = Field(default=None, gt=0)
    unchanged: bool = False
    large_change: float | None = Field(default=None, gt=0)
    dead_relu: float | None = Field(default=None, gt=0, le=1)


class Train(Strict):
    """How long training runs, where, and what it leaves behind; nothing here changes what one step computes.

    epochs: passes over the data. validate_every, checkpoint_every: in epochs; checkpoint_steps: also every so many
    steps. keep: how many checkpoints stay, the best one besides. log_every: in steps. max_steps: end sooner.
    finite: what is looked at before an update reaches the weights, all gradients or only the loss; with a loss scale or
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
