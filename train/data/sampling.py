"""Which images a process sees in an epoch, in which order: torch's DistributedSampler, drawn without torch."""

from __future__ import annotations

import numpy as np

from ...errors import BadInput, Unsupported

MOST = (2**32 - 1) // 20  # from here on torch draws 64 bits for each place, by another rule


def epoch_order(
    count: int, *, seed: int, epoch: int, shuffle: bool, drop_last: bool, rank: int = 0, world: int = 1
) -> np.ndarray:
    """The indices, int64, that process `rank` of `world` takes from `count` images in an epoch.

    The same as torch.utils.data.DistributedSampler's after set_epoch(epoch), to the last one: the permutation of
    (seed + epoch), every world-th index of it. All processes get the same number. Where `count` does not divide,
    drop_last leaves the remainder out, and otherwise indices from the start are repeated; with fewer images than
    processes all of them are, again and again.

    Raises BadInput for a count below 1 or a rank outside the world, and where drop_last leaves nothing.
    """
    if count < 1:
        raise BadInput("there are no images to put in order")
    if not 0 <= rank < world:
        raise BadInput(f"there is no process {rank} among {world}: ranks go from 0 to {world - 1}")
    if drop_last and count < world:
        raise BadInput(
            f"{count} images are too few for {world} processes with drop_last: use fewer, or drop_last: false"
        )
    order = randperm(count, seed + epoch) if shuffle else np.arange(count, dtype=np.int64)
    each = count // world if drop_last else -(-count // world)
    return np.resize(order, each * world)[rank::world]  # np.resize cuts off, or repeats from the start


def randperm(count: int, seed: int) -> np.ndarray:
    """torch.randperm(count) on the CPU after manual_seed(seed), int64 (count,).

    Both seed mt19937 with the lower 32 bits of the seed, as its authors' init_genrand does, and torch swaps place i
    with place i + (draw i modulo (count - i)): aten/src/ATen/native/TensorFactories.cpp, randperm_cpu.
    Raises Unsupported above 214 million, where torch draws by another rule.
    """
    if count >= MOST:
        raise Unsupported(f"{count} images are more than the {MOST - 1} that can be shuffled as torch does")
    bits = np.random.MT19937()
    bits._legacy_seeding(seed & 0xFFFFFFFF)  # the public way hashes the seed first
    draws = bits.random_raw(max(count - 1, 0)).astype(np.int64)
    places = np.arange(count - 1, dtype=np.int64)
    others = (places + draws % (count - places)).tolist()
    order = list(range(count))
    for place, other in enumerate(others):  # plain lists: twenty times as fast as an array, element by element
        order[place], order[other] = order[other], order[place]
    return np.array(order, dtype=np.int64)
