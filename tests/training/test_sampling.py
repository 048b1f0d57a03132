"""The order of an epoch is torch's DistributedSampler's, to the last index."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msmigrate.errors import BadInput, Unsupported
from msmigrate.training.data.random_draws import MOST_SHUFFLED, epoch_order, randperm

WORKER = Path(__file__).with_name("sources_torch_worker.py")


def test_every_order_is_torch_s(torch_sources):
    cases = torch_sources[1].arrays
    assert len(cases) > 3000
    empty = 0
    for case, theirs in cases.items():
        count, world, rank, shuffle, drop_last, seed, epoch = map(int, case.split())
        if drop_last and count < world:  # torch trains on nothing there, and says nothing
            assert len(theirs) == 0
            empty += 1
            with pytest.raises(BadInput, match=f"{count} images are too few for {world} processes with drop_last"):
                epoch_order(count, seed=seed, epoch=epoch, shuffle=True, drop_last=True, rank=rank, world=world)
            continue
        ours = epoch_order(
            count,
            seed=seed,
            epoch=epoch,
            shuffle=bool(shuffle),
            drop_last=bool(drop_last),
            rank=rank,
            world=world,
        )
        assert ours.dtype == np.int64
        assert np.array_equal(ours, theirs), case
    assert empty > 100


@pytest.mark.full
def test_imagenet_s_order_is_torch_s(tmp_path):
    subprocess.run([sys.executable, str(WORKER), str(tmp_path), "1281167"], check=True, timeout=300)
    theirs = np.load(tmp_path / "torch.npz")["order"]
    assert np.array_equal(epoch_order(1_281_167, seed=42, epoch=7, shuffle=True, drop_last=False), theirs)


@given(
    count=st.integers(1, 60),
    world=st.integers(1, 9),
    seed=st.integers(0, 2**40),
    epoch=st.integers(0, 300),
    shuffle=st.booleans(),
    drop_last=st.booleans(),
)
def test_the_processes_share_out_an_epoch(count, world, seed, epoch, shuffle, drop_last):
    if drop_last and count < world:
        return
    shards = [
        epoch_order(count, seed=seed, epoch=epoch, shuffle=shuffle, drop_last=drop_last, rank=rank, world=world)
        for rank in range(world)
    ]
    assert len({len(shard) for shard in shards}) == 1
    times = np.bincount(np.concatenate(shards), minlength=count)
    assert len(times) == count
    if drop_last:
        assert times.max() == 1
        assert times.sum() == count - count % world
    else:
        assert times.min() >= 1
        assert times.max() - times.min() <= 1
        assert times.sum() == -(-count // world) * world


@given(seed=st.integers(0, 2**33))
def test_an_epoch_is_another_order_and_the_same_each_time(seed):
    first, second = (epoch_order(50, seed=seed, epoch=epoch, shuffle=True, drop_last=True) for epoch in (0, 1))
    assert not np.array_equal(first, second)
    assert np.array_equal(second, epoch_order(50, seed=seed, epoch=1, shuffle=True, drop_last=True))
    assert np.array_equal(second, randperm(50, seed + 1))


def test_what_cannot_be_put_in_order():
    with pytest.raises(BadInput, match="there are no images"):
        epoch_order(0, seed=0, epoch=0, shuffle=True, drop_last=False)
    for rank in (-1, 2):
        with pytest.raises(BadInput, match=f"no process {rank} among 2: ranks go from 0 to 1"):
            epoch_order(5, seed=0, epoch=0, shuffle=True, drop_last=False, rank=rank, world=2)
    with pytest.raises(Unsupported, match="more than the 214748363 that can be shuffled as torch does"):
        randperm(MOST_SHUFFLED, 0)
