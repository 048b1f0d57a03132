"""A row's words on what to write by hand, with the call's own arguments in place of the names in capitals.

`BATCH_SIZE` in such words is the call's `batch_size`, or torch's default where the call gives none; a name in capitals
that no argument has (EPOCHS, COLUMNS) stays as it is, for the reader to fill in.
"""

from __future__ import annotations

import re
from typing import Any

from ...mappings.rows import Row
from ..source.infer.abstract_values import LibraryUse

CAPITALS = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*\b")
# what such rows know of torch's calls: the names of the arguments in their order, and defaults as text
CALLS: dict[str, dict[str, str | None]] = {
    "torch.utils.data.DataLoader": {
        "dataset": None,
        "batch_size": "1",
        "shuffle": "False",
        "sampler": None,
        "batch_sampler": None,
        "num_workers": "1",
        "collate_fn": None,
        "pin_memory": None,
        "drop_last": "False",
    },
    "torch.utils.data.random_split": {"dataset": None, "lengths": None},
    "torchvision.datasets.ImageFolder": {"root": None},
    "torchvision.datasets.ImageNet": {"root": None},
    "torchvision.datasets.CIFAR10": {"root": None},
    "torchvision.datasets.CIFAR100": {"root": None},
    "torchvision.datasets.MNIST": {"root": None},
    "torchvision.datasets.FakeData": {"size": "1000", "image_size": "(3, 224, 224)", "num_classes": "10"},
    "torchvision.transforms.v2.MixUp": {"alpha": "1.0", "num_classes": None},
    "torchvision.transforms.v2.CutMix": {"alpha": "1.0", "num_classes": None},
    "timm.data.Mixup": {"mixup_alpha": "1.0", "cutmix_alpha": "0.0"},
    "torch.nn.Parameter": {"data": None, "requires_grad": "True"},
    "torch.manual_seed": {"seed": None},
    "torch.multiprocessing.spawn": {"fn": None, "args": None, "nprocs": "1"},
    "torch.amp.autocast": {"device_type": None, "dtype": "mindspore.float16"},
    "torch.amp.GradScaler": {
        "device": None,
        "init_scale": "65536.0",
        "growth_factor": "2.0",
        "backoff_factor": "0.5",
        "growth_interval": "2000",
    },
    "apex.amp.initialize": {"models": None, "optimizers": None, "enabled": None, "opt_level": '"O1"'},
    "torch.optim.swa_utils.get_ema_multi_avg_fn": {"decay": "0.999"},
    "timm.utils.ModelEmaV2": {"model": None, "decay": "0.9999"},
    "timm.utils.ModelEmaV3": {"model": None, "decay": "0.9999"},
}
KEYWORDS_ONLY = ("torchvision.transforms.v2.MixUp", "torchvision.transforms.v2.CutMix", "torch.amp.autocast")


def filled(row: Row, seen: LibraryUse) -> str | None:
    """The row's words with the arguments of one call; as they stand where it is only named."""
    if row.rewrite is None or seen.arguments is None or row.torch not in CALLS:
        return row.rewrite
    names = CALLS[row.torch]
    texts: dict[str, str] = {name: text for name, text in names.items() if text is not None}
    by_position = () if row.torch in KEYWORDS_ONLY else tuple(names)
    plain = [argument for argument in seen.arguments if argument.name is None]
    for name, argument in [*zip(by_position, plain, strict=False), *((a.name, a) for a in seen.arguments if a.name)]:
        if name in names:
            texts[name] = " ".join(seen.source.text(argument.node).split()).replace("torch.", "mindspore.")
    if texts.get("num_workers") == "0":
        texts["num_workers"] = "1"  # what MindSpore has at least

    def own(found: re.Match[str]) -> Any:
        return texts.get(found[0].lower(), found[0])

    return CAPITALS.sub(own, row.rewrite)
