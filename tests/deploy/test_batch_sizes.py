"""What waits is split into the compiled sizes so that it takes the least time."""

from __future__ import annotations

from itertools import combinations_with_replacement

import pytest
from msmigrate.deploy.serving.batching import Split, sizes_up_to


def test_sizes() -> None:
    assert sizes_up_to(1) == [1]
    assert sizes_up_to(8) == [1, 2, 4, 8]
    assert sizes_up_to(11) == [1, 2, 4, 8, 11]


def all_at_once(split: Split, count: int) -> list[int]:
    """The batches in which so many run when nothing else comes."""
    taken = []
    while count:
        taken.append(split(count))
        count -= taken[-1]
    return taken


def test_a_net_that_takes_longer_for_more_is_not_filled_up() -> None:
    """As a ResNet-18 on 224x224 pixels, in seconds."""
    split = Split({1: 0.117, 2: 0.163, 4: 0.353, 8: 0.876})
    assert [all_at_once(split, n) for n in (1, 2, 3, 5, 8)] == [[1], [2], [2, 1], [2, 2, 1], [2] * 4]


def test_a_net_that_takes_no_longer_for_more_is() -> None:
    split = Split({1: 0.005, 2: 0.005, 4: 0.006, 8: 0.008})
    assert [all_at_once(split, n) for n in (1, 2, 3, 5, 8, 30)] == [[1], [2], [3], [5], [8], [8, 8, 8, 6]]
    assert [split.filled(n) for n in (1, 3, 5, 8)] == [1, 4, 8, 8]


def test_a_smaller_batch_takes_no_longer_than_a_larger_one() -> None:
    """One that was timed while the machine did something else can be filled up instead."""
    assert all_at_once(Split({1: 0.9, 2: 0.5, 4: 0.6}), 1) == [1]
    assert all_at_once(Split({1: 9.0, 2: 9.0, 4: 1.0}), 4) == [4]


@pytest.mark.parametrize("seconds", [(1, 1.1, 1.2, 4), (1, 2.1, 3.9, 8.2), (1, 1.5, 2.9, 3.0), (3, 3, 3, 3)])
def test_no_other_split_takes_less(seconds: tuple[float, ...]) -> None:
    took = dict(zip((1, 2, 4, 8), seconds, strict=True))
    split = Split(took)
    for count in range(1, 9):
        batches = all_at_once(split, count)
        assert sum(batches) == count
        own = sum(took[split.filled(n)] for n in batches)
        others = [
            sum(took[size] for size in sizes)
            for number in range(1, count + 1)
            for sizes in combinations_with_replacement(took, number)
            if sum(sizes) >= count
        ]
        assert own == pytest.approx(min(others))
