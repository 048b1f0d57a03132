"""Align two sequences of layer calls: the pairing of highest total score that keeps the order of both.

Needleman and Wunsch's algorithm (1970) without a cost of gaps: a call that has no partner (a ReLU that one side writes
as a function) costs nothing, and a pair counts by how well its two calls fit.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

LARGEST = 30_000_000  # cells of the table


def align(n: int, m: int, score: Callable[[int, int], float]) -> list[tuple[int, int]]:
    """Pairs (i, j), i < n and j < m, both ascending, of the highest total score; a pair needs a score above 0.

    Equal ends are taken off first: score(i, j) must be what it is whatever else is paired. Of pairings that are
    equally good, the one that pairs earlier calls first. Raises ValueError for sequences too long for the table.
    """
    best = [[score(i, j) for j in range(m)] for i in range(n)] if n * m <= LARGEST else None
    if best is None:
        raise ValueError(f"{n} and {m} calls are too many to align")
    table = np.zeros((n + 1, m + 1))
    for i in range(n - 1, -1, -1):
        row, below, scores = table[i], table[i + 1], best[i]
        right = 0.0
        for j in range(m - 1, -1, -1):
            value = max(right, float(below[j]))
            if scores[j] > 0:
                value = max(value, scores[j] + float(below[j + 1]))
            row[j] = right = value
    pairs = []
    i = j = 0
    while i < n and j < m:
        if best[i][j] > 0 and table[i, j] == best[i][j] + table[i + 1, j + 1]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif table[i, j] == table[i + 1, j]:
            i += 1
        else:
            j += 1
    return pairs
