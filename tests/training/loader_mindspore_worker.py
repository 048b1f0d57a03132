"""MindSpore's half of the loader's tests: `python loader_mindspore_worker.py FOLDER` writes mindspore.json and .npz."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from loader_cases import BROKEN, EPOCH, FIXED, MIXUP, RANDOM, SEED, SHARDS, damage, make_tree, recipe
from msmigrate.workers.worker import leave, prepare_mindspore

prepare_mindspore()

from mindspore import dataset  # noqa: E402
from msmigrate.errors import MsmigrateError  # noqa: E402
from msmigrate.training.data import mindspore_pipeline  # noqa: E402
from msmigrate.training.data.mindspore_dataloader import Batch, Loader  # noqa: E402
from msmigrate.training.data.mindspore_pipeline import grey_level  # noqa: E402
from msmigrate.training.data.sources import open_source  # noqa: E402
from worker import dump  # noqa: E402

FOLDER = Path(sys.argv[1])
arrays: dict[str, np.ndarray] = {}
facts: dict[str, Any] = {"shards": {}, "refused": {}}
source = open_source(f"folder:{FOLDER / 'images'}", 3, training=True)


def keep(name: str, batches: Iterator[Batch]) -> None:
    """Store all that the batches hold, below NAME/STEP/."""
    kept = list(batches)
    facts[name] = [batch.count for batch in kept]
    for step, batch in enumerate(kept):
        arrays[f"{name}/{step}/images"] = batch.images.asnumpy()
        arrays[f"{name}/{step}/labels"] = batch.labels.asnumpy()
        arrays[f"{name}/{step}/classes"] = batch.classes
        arrays[f"{name}/{step}/indices"] = batch.indices


def refused(name: str, make: Callable[[], Loader]) -> None:
    """Note what an epoch, or making its loader, raises."""
    try:
        list(make().epoch(0))
    except MsmigrateError as error:
        facts["refused"][name] = [type(error).__name__, str(error)]


def running() -> int:
    """How many threads this process has."""
    return len(list(Path("/proc/self/task").iterdir()))


# order and shards
for case, (training, shuffle, drop_last, world, batch) in enumerate(SHARDS):
    for rank in range(world):
        wanted = recipe(transforms=FIXED, shuffle=shuffle, drop_last=drop_last, batch=batch)
        loader = Loader(source, wanted, training=training, rank=rank, world=world)
        batches = list(loader.epoch(EPOCH))
        facts["shards"][f"{case}/{rank}"] = {
            "indices": [batch.indices.tolist() for batch in batches],
            "counts": [batch.count for batch in batches],
            "steps": loader.steps_per_epoch,
            "images": loader.images_per_epoch,
        }

# the same from any step, with any number of workers, and as parity has it
before = dataset.config.get_prefetch_size()
loader = Loader(source, recipe(), training=True)
keep("whole", loader.epoch(EPOCH))
facts["waited"] = loader.waited
facts["ready"] = [before, dataset.config.get_prefetch_size()]
keep("next", loader.epoch(EPOCH + 1))
keep("middle", Loader(source, recipe(workers=1), training=True).epoch(EPOCH, 3))
keep("end", loader.epoch(EPOCH, loader.steps_per_epoch))
keep("other seed", Loader(source, recipe(), training=True, seed=SEED + 1).epoch(EPOCH))
samples = [source[index] for index in arrays["whole/1/indices"]]
keys = [(SEED, EPOCH, int(index)) for index in arrays["whole/1/indices"]]
arrays["parity/images"], arrays["parity/labels"] = mindspore_pipeline.batch(samples, RANDOM, keys)

told_workers: list[str] = []
Loader(source, recipe(workers=999), training=True, warn=told_workers.append)
keep("many", Loader(source, recipe(workers=999), training=True).epoch(EPOCH, 4))
facts["workers"] = told_workers

# labels
mixup = MIXUP.model_dump()
mixed = Loader(source, recipe(mixup=mixup), training=True)
keep("mixed", mixed.epoch(EPOCH))
keep("mixed middle", Loader(source, recipe(mixup=mixup, workers=1), training=True).epoch(EPOCH, 2))
keep("mixed rank", Loader(source, recipe(mixup=mixup), training=True, rank=1, world=2).epoch(EPOCH))
keep("mixed evaluation", Loader(source, recipe(mixup=mixup), training=False).epoch(0))
keep("one hot", Loader(source, recipe(loss="MSELoss"), training=True).epoch(EPOCH))
keep("one hot evaluation", Loader(source, recipe(loss="MSELoss"), training=False).epoch(0))

# resized by C++, on the same draws
keep("fast", Loader(source, recipe(fast_transforms=True), training=True).epoch(EPOCH))
facts["level"] = grey_level(recipe().data.transforms)
nearest = [{"name": "Resize", "args": {"size": 9, "interpolation": "nearest"}}, {"name": "ToTensor"}]
refused("nearest", lambda: Loader(source, recipe(fast_transforms=True, transforms=nearest), training=True))

# leaving early ends the threads
threads = [running()]
for _ in range(5):
    for step, _batch in enumerate(loader.epoch(0)):
        if step == 1:
            break
began = time.perf_counter()
epoch = loader.epoch(0)
next(epoch)
epoch.close()
facts["closed"] = time.perf_counter() - began
del epoch
facts["threads"] = [*threads, running()]

# what cannot be used
for name, transforms in BROKEN.items():
    refused(name, lambda transforms=transforms: Loader(source, recipe(transforms=transforms), training=True))
refused("random evaluation", lambda: Loader(source, recipe(eval_transforms=RANDOM), training=False))
refused("batch", lambda: Loader(source, recipe(batch=24), training=True))
refused("batch of a shard", lambda: Loader(source, recipe(batch=12), training=True, rank=1, world=2))
refused("rest", lambda: Loader(source, recipe(batch=6, accumulate=3, drop_last=False), training=True))

make_tree(FOLDER / "damaged")
broken = open_source(f"folder:{FOLDER / 'damaged'}", 3, training=True)
facts["damaged"] = damage(broken.files)
told: dict[str, list[str]] = {"training": [], "evaluation": []}
refused("damaged", lambda: Loader(broken, recipe(), training=True))
skipping = Loader(broken, recipe(on_corrupt="skip"), training=True, warn=told["training"].append)
keep("skipped", skipping.epoch(EPOCH))
keep("skipped middle", skipping.epoch(EPOCH, 3))
keep(
    "skipped evaluation",
    Loader(broken, recipe(on_corrupt="skip", eval_batch=9), training=False, warn=told["evaluation"].append).epoch(0),
)
for file in broken.files:
    Path(file).write_bytes(b"no image")
refused("all damaged", lambda: Loader(broken, recipe(on_corrupt="skip"), training=True))
facts["told"] = told

dump(FOLDER / "mindspore", facts, arrays)
leave()
