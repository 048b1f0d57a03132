"""The alignment of two sequences is the best one there is."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msmigrate.parity.align import match_layers


def best(scores: list[list[float]], n: int, m: int) -> float:
    """The highest total over all pairings that keep the order, by trying them all."""
    found = 0.0
    for size in range(min(n, m) + 1):
        for ours in combinations(range(n), size):
            for theirs in combinations(range(m), size):
                chosen = [scores[i][j] for i, j in zip(ours, theirs, strict=True)]
                if all(score > 0 for score in chosen):
                    found = max(found, sum(chosen))
    return found


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 5).flatmap(lambda n: st.integers(0, 5).flatmap(lambda m: _scores(n, m))))
def test_no_pairing_is_better(drawn: tuple[int, int, list[list[float]]]) -> None:
    n, m, scores = drawn
    pairs = match_layers.align_sequence(n, m, lambda i, j: scores[i][j])
    assert all(a < c and b < d for (a, b), (c, d) in pairwise(pairs))
    assert all(scores[i][j] > 0 for i, j in pairs)
    assert sum(scores[i][j] for i, j in pairs) == best(scores, n, m)


def _scores(n: int, m: int) -> st.SearchStrategy[tuple[int, int, list[list[float]]]]:
    row = st.lists(st.sampled_from([0.0, 0.0, 0.5, 1.0, 4.0]), min_size=m, max_size=m)
    return st.tuples(st.just(n), st.just(m), st.lists(row, min_size=n, max_size=n))


def test_of_equal_pairings_the_earlier_calls_go_together() -> None:
    assert match_layers.align_sequence(2, 1, lambda i, j: 1.0) == [(0, 0)]
    assert match_layers.align_sequence(1, 2, lambda i, j: 1.0) == [(0, 0)]


def test_too_long_is_said() -> None:
    with pytest.raises(ValueError, match="too many"):
        match_layers.align_sequence(10**5, 10**5, lambda i, j: 1.0)
