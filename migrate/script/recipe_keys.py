"""Which key of a recipe says what a call does: the rows tell it, and here stands what they do not."""

from __future__ import annotations

from collections.abc import Iterable

from .names import OPTIMIZER, SCHEDULE, family_of, is_class, restated, row_of
from .noting import OPTION, SURENESS, UNCALLED
from .reading import Reader
from .values import Seen

MODELS = {  # the models that a recipe can name -> their arguments, save num_classes
    "lenet5": (),
    "resnet_tiny": (),
    "resnet18": ("zero_init_residual",),
    "resnet34": ("zero_init_residual",),
    "resnet50": ("zero_init_residual", "groups", "width_per_group"),
    "resnet101": ("zero_init_residual", "groups", "width_per_group"),
    "resnet152": ("zero_init_residual", "groups", "width_per_group"),
}
# what no row says yet: -> key of a recipe
KEYS = {
    "timm.utils.NativeScaler": "dynamic_loss_scale",
    "timm.data.FastCollateMixup": "mixup",
    "torchvision.transforms.MixUp": "mixup",
    "torchvision.transforms.CutMix": "mixup",
    "timm.loss.SoftTargetCrossEntropy": "loss",
    "timm.loss.LabelSmoothingCrossEntropy": "loss",
}
# the keys that drafting asks for
DATA, SEED, CLIP, AMP, SCALE = "data.batch", "seed", "clip.max_norm", "amp", "dynamic_loss_scale"
EMA, MIXUP, SYNC, TENSORBOARD, SOURCE = "ema", "mixup", "sync_batchnorm", "train.tensorboard", "data.source"


def key_of(name: str) -> str | None:
    """The key of a recipe that says what this name does: by its row, or by the list above."""
    row = row_of(name)
    if row is not None and row.kind in ("optimizer", "schedule", "loss"):
        return row.kind
    if row is not None and row.recipe:
        return str(row.recipe["key"])
    listed = next((KEYS[one] for one in restated(name) if one in KEYS), None)
    family = family_of(name) if is_class(name) else ""
    return listed or (family if family in (SCHEDULE, OPTIMIZER) else None)


def source_of(name: str) -> str | None:
    """How a recipe writes the images of a data set: folder:PATH."""
    row = row_of(name)
    found = row.recipe.get("value") if row is not None and row.recipe.get("key") == SOURCE else None
    return str(found) if found else None


def calls(reader: Reader, key: str) -> list[Seen]:
    """The calls that a recipe says under this key, the surest first."""
    called = [seen for seen in reader.seen if seen.arguments is not None and seen.receiver is None]
    wanted = {name for name in {seen.name for seen in called} if key_of(name) == key}
    return by_sureness(seen for seen in called if seen.name in wanted)


def by_sureness(found: Iterable[Seen]) -> list[Seen]:
    """The surest first, in the order of the script."""
    return sorted(found, key=lambda seen: (SURENESS.index(seen.certainty), seen.order))


def surely(found: list[Seen]) -> list[Seen]:
    """Those that run with the defaults, or perhaps; where there are none, those in functions that nothing calls."""
    return [seen for seen in found if seen.certainty not in (OPTION, UNCALLED)] or [
        seen for seen in found if seen.certainty == UNCALLED
    ]


def options(found: list[Seen]) -> list[Seen]:
    """Those that run with other arguments than the defaults only, each place once."""
    return list({(seen.source.shown, seen.node.lineno): seen for seen in found if seen.certainty == OPTION}.values())
