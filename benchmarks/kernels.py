"""How far kernels of both frameworks stand from float64 on this CPU: the figures of parity/record/kernels.yaml.

    python benchmarks/kernels.py [--json] [FUNCTION …]

Functions are those of the table by default. The 400,000 values are normal ones, as they come out of a norm; so are the
gradients that come back. Distances are shares of the exact result's root mean square; `bias` is the part that has one
sign everywhere, as a share of the mean size. Prints markdown.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from msmigrate.parity.noise import kernels

HERE = Path(__file__).parent


def measured(names: list[str]) -> dict[str, Any]:
    """Function -> forward and backward -> torch and MindSpore -> distance."""
    sides = {}
    with tempfile.TemporaryDirectory() as folder:
        for side in ("torch", "mindspore"):
            command = [sys.executable, str(HERE / f"kernels_{side}.py"), folder, *names]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                sys.exit(done.stderr[-2000:])
            sides[side] = json.loads(done.stdout.splitlines()[-1])
    return {
        name: {way: {side: told[name][way] for side, told in sides.items()} for way in ("forward", "backward")}
        for name in names
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("functions", nargs="*", metavar="FUNCTION")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    found = measured(arguments.functions or list(dict.fromkeys(k.function for k in kernels() if not k.added)))
    if arguments.json:
        print(json.dumps(found))
        return
    print("| function | | torch | MindSpore | of that one sign | MindSpore is off |\n|---|---|---|---|---|---|")
    for name, ways in found.items():
        for way, sides in ways.items():
            ours, theirs = sides["torch"], sides["mindspore"]
            ratio = theirs["off"] / ours["off"]
            print(
                f"| {name} | {way} | {ours['off']:.1e} | {theirs['off']:.1e} | {theirs['bias']:+.1e} | {ratio:.1f} × |"
            )


if __name__ == "__main__":
    main()
