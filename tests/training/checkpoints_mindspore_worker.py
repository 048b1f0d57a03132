"""MindSpore's half of the tests of checkpoints: `python checkpoints_mindspore_worker.py FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from msmigrate.workers.worker import leave, prepare_mindspore

prepare_mindspore()

import mindspore  # noqa: E402


def main(folder: Path) -> None:
    """Load ours.ckpt with its checksum, find a flipped bit, and save the same tensors as MindSpore does."""
    ours = folder / "ours.ckpt"
    loaded = mindspore.load_checkpoint(str(ours), crc_check=True)
    assert "msmigrate.run" in loaded
    with np.load(folder / "held.npz") as held:
        for name in held.files:
            found = loaded[name].asnumpy()
            assert found.dtype == held[name].dtype, name
            np.testing.assert_array_equal(found, held[name], err_msg=name)
        tensors = [{"name": name, "data": mindspore.Tensor(held[name])} for name in held.files]
    mindspore.save_checkpoint(tensors, str(folder / "theirs.ckpt"))
    mindspore.save_checkpoint(tensors, str(folder / "theirs_with_crc.ckpt"), crc_check=True)
    content = bytearray(ours.read_bytes())
    content[len(content) // 2] ^= 1
    flipped = folder / "flipped.ckpt"
    flipped.write_bytes(content)
    try:
        mindspore.load_checkpoint(str(flipped), crc_check=True)
    except ValueError:
        return
    raise AssertionError("MindSpore did not look at the checksum")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    leave()
