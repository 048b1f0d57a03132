"""A process that trains with a dataset cache: `python dataset_cache_mindspore_worker.py FOLDER`, then is killed.

It prints one JSON line: the port of its server, and by epoch whether the batches were those without a cache, and how
many images the cache had at its end. Then it waits.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
from loader_cases import damage, make_tree, recipe
from msmigrate.workers.worker import prepare_mindspore

prepare_mindspore()

from msmigrate.training.data import dataset_cache  # noqa: E402
from msmigrate.training.data.mindspore_dataloader import Loader  # noqa: E402
from msmigrate.training.data.sources import open_source  # noqa: E402

FOLDER = Path(sys.argv[1])
make_tree(FOLDER / "images")
source = open_source(f"folder:{FOLDER / 'images'}", 3, training=True)
damage(source.files)
plain = Loader(source, recipe(on_corrupt="skip"), training=True)
cached = Loader(source, recipe(on_corrupt="skip", cache=True), training=True)
evaluation = Loader(source, recipe(on_corrupt="skip", cache=True, eval_batch=9), training=False)

equal, kept = [], []
for epoch, start in ((0, 0), (1, 3), (2, 0), (3, 0)):
    pairs = zip(plain.epoch(epoch, start), cached.epoch(epoch, start), strict=True)
    equal += [
        bool(np.array_equal(a.images.asnumpy(), b.images.asnumpy()) and np.array_equal(a.indices, b.indices))
        for a, b in pairs
    ]
    kept.append(cached._cached.kept)
next(cached.epoch(4))  # left early
counts = [batch.count for batch in evaluation.epoch(0)]
server = dataset_cache.server()
middle = cached.epoch(5)
next(middle)  # it is killed in the middle of an epoch
facts = {"port": server.port, "folder": str(server.folder), "equal": equal, "kept": kept, "counts": counts}
print(json.dumps(facts), flush=True)
time.sleep(300)
