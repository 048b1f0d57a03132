"""Damaged checkpoints by the thousand: each has to be converted bit for bit, or refused in one line without a trace.

    python benchmarks/fuzz_convert.py [--inputs N] [--seed S] [--format NAME] [--keep DIR]

Inputs are dealt out evenly over all formats; `tests/migrate/fuzz_inputs.py` makes them, and `fuzz_check.py` there says
what must hold of each. They are worked on in a process of their own, so that not even its death goes unnoticed. Files
that fail are kept under DIR, by format, seed and number, by which they can be made again:

    python benchmarks/fuzz_convert.py --format NAME --seed S --from NUMBER --inputs 1

Prints a table: per format what became of the inputs, the processor's time that the slowest step took, and the most
memory that one made the process grow by. The exit code is 1 when something failed.
"""

from __future__ import annotations

import argparse
import collections
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "migrate"))

import fuzz_check  # type: ignore[import-not-found]
from fuzz_inputs import FORMATS, case  # type: ignore[import-not-found]

PATIENCE = 120  # seconds without a sign of life
KINDS = ("converted", "BadCheckpoint", "Unsupported", "Ambiguous", "BadDestination")


def work(form: str, seed: int, numbers: range, keep: Path, told: Connection) -> None:
    """Work on inputs, and tell of each what became of it."""
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:
        for number in numbers:
            made = case(form, seed, number)
            outcome = fuzz_check.check(made, Path(name))
            if outcome.complaint:
                fuzz_check.keep(made, outcome.complaint, keep / f"{form} {seed} {number}")
            told.send(outcome[:4])


def outcomes(form: str, seed: int, numbers: range, keep: Path) -> Iterator[tuple[int, Any]]:
    """Number and outcome of every input; of one at which the process dies, or hangs for good, that it does."""
    at = numbers.start
    while at < numbers.stop:
        mine, other = multiprocessing.Pipe(duplex=False)
        process = multiprocessing.Process(target=work, args=(form, seed, range(at, numbers.stop), keep, other))
        process.start()
        other.close()
        try:
            while at < numbers.stop and mine.poll(PATIENCE):
                yield at, fuzz_check.Outcome(*mine.recv())
                at += 1
            if at < numbers.stop:
                yield at, fuzz_check.Outcome("hang", PATIENCE, 0, "the process gives no sign of life")
                at += 1
        except EOFError:
            process.join()
            yield at, fuzz_check.Outcome("crash", 0, 0, f"the process died with {process.exitcode}")
            at += 1
        finally:
            process.kill()
            process.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--format", choices=sorted(FORMATS))
    parser.add_argument("--from", type=int, default=0, dest="first", metavar="NUMBER", help="of the first input")
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()) / "fuzz-failures", metavar="DIR")
    options = parser.parse_args()
    forms = [options.format] if options.format else list(FORMATS)
    each = -(-options.inputs // len(forms))
    started, rows, failures = time.monotonic(), [], 0
    for form in forms:
        kinds: collections.Counter[str] = collections.Counter()
        slowest = largest = 0.0
        for number, outcome in outcomes(form, options.seed, range(options.first, options.first + each), options.keep):
            kinds[outcome.kind] += 1
            slowest, largest = max(slowest, outcome.seconds), max(largest, outcome.memory / 1e6)
            if outcome.complaint:
                failures += 1
                print(f"\n{form}, seed {options.seed}, number {number}: {outcome.complaint}")
            if sys.stderr.isatty() or not kinds.total() % 500:
                done = f"{form}: {kinds.total():,} of {each:,}, {time.monotonic() - started:.0f} s"
                print(done, end="\r" if sys.stderr.isatty() else "\n", file=sys.stderr, flush=True)
        rest = kinds.total() - sum(kinds[kind] for kind in KINDS)
        rows.append((form, each, *(kinds[kind] for kind in KINDS), rest, slowest, largest))
    head = ("format", "inputs", *KINDS, "others", "slowest, s", "memory, MB")
    print(f"\n| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for row in [
        *rows,
        ("all", *map(sum, list(zip(*rows, strict=True))[1:-2]), max(r[-2] for r in rows), max(r[-1] for r in rows)),
    ]:
        print(
            "| "
            + " | ".join([str(row[0]), *(f"{count:,}" for count in row[1:-2]), f"{row[-2]:.2f}", f"{row[-1]:.0f}"])
            + " |"
        )
    minutes = (time.monotonic() - started) / 60
    print(
        f"\nSeed {options.seed}, {minutes:.1f} minutes; {failures} failed"
        + (f", kept in {options.keep}." if failures else ".")
    )
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
