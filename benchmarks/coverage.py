"""How many models of torchvision and timm move: the table of docs/coverage.md.

    python benchmarks/coverage.py [--graph] [--json] [PATTERN …]

Patterns are those of `msmigrate analyze --coverage`: torchvision by default; timm:resnet*, timm for all of timm.
Prints markdown.
"""

from __future__ import annotations

import argparse
import json

from msmigrate.migrate.analyze.model_analysis import cover
from msmigrate.reports import model_analysis
from msmigrate.reports import progress as progress_module


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("patterns", nargs="*", metavar="PATTERN", default=["torchvision"])
    parser.add_argument("--graph", action="store_true", help="the statuses of graph mode")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    mode = "graph" if arguments.graph else "pynative"
    with progress_module.Progress() as progress:
        found = cover(arguments.patterns, mode=mode, target="CPU", progress=progress)
    print(json.dumps(model_analysis.coverage_json(found)) if arguments.json else model_analysis.markdown(found))


if __name__ == "__main__":
    main()
