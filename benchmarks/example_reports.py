"""Make the reports in docs/examples/ anew: a clean ResNet50, and a small net with five faults.

    python benchmarks/example_reports.py [clean-resnet50] [faulty-net] [--out DIR] [--tiny] [--keep DIR]

Each is what `msmigrate parity-step RECIPE --html … --json … --markdown …` writes; the faulty one has the MindSpore side
broken by example_faults_mindspore.py. --tiny takes a very small ResNet for the clean one, to try the script in a
minute; --keep keeps the traces. Exit code 1 where the clean net is not clean, or the faulty one is not red.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from msmigrate.atomic_files import write_whole
from msmigrate.parity.options import ParityOptions
from msmigrate.parity.result import Report
from msmigrate.parity.run import MINDSPORE_WORKER
from msmigrate.reports.html.parity_page import write_html
from msmigrate.reports.parity_ci import markdown
from msmigrate.reports.parity_json import write_json
from msmigrate.reports.parity_terminal import show
from msmigrate.reports.terminal import Console
from msmigrate.training.recipe import reader as recipes
from msmigrate.workflows.parity_step import job_of, with_progress

CHECKOUT = Path(__file__).parent.parent
BROKEN_WORKER = (sys.executable, "benchmarks/example_faults_mindspore.py")
# name: recipe, as it shall read in the report; MindSpore's recorder; whether the verdict is parity
EXAMPLES: dict[str, tuple[Path, Sequence[str], bool]] = {
    "clean-resnet50": (Path("recipes/resnet50.yaml"), MINDSPORE_WORKER, True),
    "faulty-net": (Path("benchmarks/example_faulty.yaml"), BROKEN_WORKER, False),
}
TINY = Path("tests/parity/tiny.yaml")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(EXAMPLES)}; without one, all")
    parser.add_argument("--out", type=Path, default=CHECKOUT / "docs" / "examples")
    parser.add_argument("--tiny", action="store_true", help="a very small ResNet as the clean one")
    parser.add_argument("--keep", type=Path, help="keep the traces, in a folder for each example")
    given = parser.parse_args()
    unknown = [name for name in given.names if name not in EXAMPLES]
    if unknown:
        parser.error(f"no example is called {unknown[0]}: there are {', '.join(EXAMPLES)}")
    out, keep = given.out.absolute(), given.keep.absolute() if given.keep else None
    out.mkdir(parents=True, exist_ok=True)
    os.chdir(CHECKOUT)  # so that the reports name recipes as a reader of the repository would
    wrong = []
    for name in given.names or EXAMPLES:
        path, worker, clean = EXAMPLES[name]
        report = example(TINY if clean and given.tiny else path, worker, out / name, keep / name if keep else None)
        if report.parity is not clean:
            wrong.append(name)
    sys.exit(f"not the verdict that was expected: {', '.join(wrong)}" if wrong else 0)


def example(path: Path, worker: Sequence[str], stem: Path, keep: Path | None) -> Report:
    """Run one parity-step, and write STEM.html, STEM.json and STEM.md."""
    with tempfile.TemporaryDirectory(prefix="msmigrate-example-") as temporary:
        folder = keep or Path(temporary)
        report = with_progress(path, job_of(ParityOptions(), recipes.load(path), folder), worker)
        show(report, Console())
        write_html(report, folder, stem.with_suffix(".html"))
    write_json(report, stem.with_suffix(".json"))
    write_whole(markdown(report), stem.with_suffix(".md"))
    for file in sorted(stem.parent.glob(f"{stem.name}.*")):
        print(f"{file.stat().st_size:>9,} {file.name}")
    return report


if __name__ == "__main__":
    main()
