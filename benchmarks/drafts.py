"""What a draft says of each statement of scripts that others wrote: the table of docs/drafts.md.

    python benchmarks/drafts.py FOLDER [--lines]

FOLDER holds one folder a script: its train.py and the files of its project that it imports; or it is one script.
Prints markdown: for each, how many statements touch the model, the optimizer, the loss, gradients, data or the rate, or
compute what such ones read, and how many of them are drafted (or asked for), passed over with a reason, and listed.
--lines: each statement with its verdict instead.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from msmigrate.errors import MsmigrateError
from msmigrate.migrate.analyze.script_analysis import analyze_script
from msmigrate.migrate.recipe_draft.draft import Draft
from msmigrate.migrate.recipe_draft.statement_verdicts import ASKED, DRAFTED, LISTED, SILENT


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--lines", action="store_true")
    arguments = parser.parse_args()
    total: Counter[str] = Counter()
    print("| script | statements | drafted | asked for | passed over | listed | parts of drafted calls, listed |")
    print("|---|---|---|---|---|---|---|")
    folder = arguments.folder
    for script in [folder] if folder.is_file() else sorted(folder.glob("*/train.py")):
        try:
            drafted = Draft(analyze_script(script).interpreter)
        except MsmigrateError as error:
            print(f"| {script.parent.name} | {error} | | | | | |")
            continue
        lines = drafted.account.lines
        if arguments.lines:
            for line in lines:
                place = ":".join(map(str, line.statement.place))
                said = f"{line.statement.text[:100]!r} {line.why} {line.loop}".rstrip()
                print(f"{line.verdict:9} {script.parent.name} {place} {said}")
            continue
        touching = [line for line in lines if not line.why.startswith("a definition")]
        counts = Counter(line.verdict for line in touching)
        counts["parts"] = len(set(drafted.left([]))) - counts[LISTED]
        total += Counter({**counts, "touching": len(touching)})
        print(_row(script.parent.name, counts, len(touching)))
    print(_row("all", total, total["touching"]))


def _row(name: str, counts: Counter[str], touching: int) -> str:
    cells = (name, touching, *(counts[verdict] for verdict in (DRAFTED, ASKED, SILENT, LISTED, "parts")))
    return f"| {' | '.join(map(str, cells))} |"


if __name__ == "__main__":
    main()
