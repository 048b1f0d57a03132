"""MindSpore's own reading of CIFAR files, and its decoding of our samples: `python cifar_mindspore_worker.py FOLDER`.

FOLDER has the test files of cifar10 and cifar100 in the binary format. Writes mindspore.npz: the images and labels of
MindSpore's datasets, and every 20th of our samples through its two decoders.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from msmigrate.training.data.sources import open_source
from msmigrate.workers.worker import leave, prepare_mindspore

prepare_mindspore()

from mindspore import dataset  # noqa: E402
from mindspore.dataset import vision  # noqa: E402

FOLDER = Path(sys.argv[1])
arrays: dict[str, np.ndarray] = {}
for kind, reader, column in (
    ("cifar10", dataset.Cifar10Dataset, "label"),
    ("cifar100", dataset.Cifar100Dataset, "fine_label"),
):
    images = reader(str(FOLDER / kind), usage="test", shuffle=False)
    images = images.project(["image", column]).batch(1000)
    batches = list(images.create_tuple_iterator(num_epochs=1, output_numpy=True))
    arrays[f"{kind}/images"], arrays[f"{kind}/labels"] = (np.concatenate(part) for part in zip(*batches, strict=True))
    source = open_source(f"{kind}:{FOLDER / kind}", 100, training=False)
    encoded = [np.frombuffer(source[index].data, np.uint8) for index in range(0, len(source), 20)]
    for name, decoder in (("decoded", vision.Decode()), ("decoded to PIL", vision.Decode(to_pil=True))):
        arrays[f"{kind}/{name}"] = np.stack([np.asarray(decoder(data)) for data in encoded])
np.savez(FOLDER / "mindspore.npz", **arrays)
leave()
