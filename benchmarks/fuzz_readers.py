"""Damaged inputs by the thousand for everything that reads a file or a request: each has to be read, or refused in one
line, within seconds and little memory, and nothing in it may come to life.

    python benchmarks/fuzz_readers.py [--inputs N] [--seed S] [--reader NAME] [--keep DIR]

Inputs are dealt out evenly over all readers. tests/fuzz_readers.py knows those, and fuzz_checking.py there says what
must hold of each input; checkpoints are also converted, and compared bit for bit. They are read in a process of their
own, so that not even its death goes unnoticed. Files that fail are kept under DIR, by reader, seed and number, by which
they can be made again:

    python benchmarks/fuzz_readers.py --reader NAME --seed S --from NUMBER --inputs 1

Prints a table: per reader how many inputs were refused and how many read, the processor's time that the slowest took,
the most memory that one made the process grow by, and the letters of the longest message. The exit code is 1 when
something failed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import fuzz_readers  # type: ignore[import-not-found]
from fuzz_checking import outcomes  # type: ignore[import-not-found]

READ = ("read", "converted")


class Row(NamedTuple):
    """A line of the table."""

    reader: str
    inputs: int
    refused: int
    accepted: int
    failed: int
    seconds: float
    megabytes: float
    letters: int


def worked_on(reader: str, seed: int, numbers: range, keep: Path) -> Row:
    """What became of the inputs of one reader; failures are printed."""
    found = []
    for number, outcome in outcomes(reader, seed, numbers, keep):
        found.append(outcome)
        if outcome.complaint:
            print(f"\n{reader}, seed {seed}, number {number}: {outcome.complaint}", flush=True)
    read = sum(outcome.kind in READ and not outcome.complaint for outcome in found)
    failed = sum(outcome.complaint is not None for outcome in found)
    return Row(
        reader,
        len(found),
        len(found) - read - failed,
        read,
        failed,
        max(outcome.seconds for outcome in found),
        max(outcome.memory for outcome in found) / 1e6,
        max(len(outcome.text) for outcome in found),
    )


def line(row: Row) -> str:
    counts = (f"{count:,}" for count in row[1:5])
    return f"| {' | '.join((row.reader, *counts, f'{row.seconds:.2f}', f'{row.megabytes:.0f}', str(row.letters)))} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--reader", choices=fuzz_readers.ALL)
    parser.add_argument("--from", type=int, default=0, dest="first", metavar="NUMBER", help="of the first input")
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()) / "fuzz-failures", metavar="DIR")
    options = parser.parse_args()
    readers = [options.reader] if options.reader else list(fuzz_readers.ALL)
    each = -(-options.inputs // len(readers))
    started = time.monotonic()
    head = ("reader", "inputs", "refused", "read", "failed", "slowest, s", "memory, MB", "longest message")
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}", flush=True)
    rows = []
    for reader in readers:
        rows.append(worked_on(reader, options.seed, range(options.first, options.first + each), options.keep))
        print(line(rows[-1]), flush=True)
    sums, tops = zip(*(row[1:5] for row in rows), strict=True), zip(*(row[5:] for row in rows), strict=True)
    print(line(Row("all", *map(sum, sums), *map(max, tops))))
    minutes, failed = (time.monotonic() - started) / 60, sum(row.failed for row in rows)
    kept = f", kept in {options.keep}" if failed else ""
    print(f"\nSeed {options.seed}, {minutes:.1f} minutes; {failed} failed{kept}.")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
