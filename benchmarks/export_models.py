"""Export many models, each file run and compared: the table of what `msmigrate export` can do.

    python benchmarks/export_models.py                                       # torchvision's 80 classification models
    python benchmarks/export_models.py --models torchvision:alexnet --models 'torchvision:resnet*'
    python benchmarks/export_models.py --table                               # of what is there, run nothing

One model at a time, each format in a process of its own with a time limit: with an open batch, run on two sizes, and
only where that is refused with a fixed one. Weights are drawn, and running statistics those of a few batches. What is
known is appended to --out (JSON lines), and what stands there is not run again, unless --again. Inputs are small where
a net allows it. Prints markdown: for each format whether the file computes what torch does, with the largest ratio to
the noise (up to 4 passes), and why its batch is fixed where it is.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from converted_models import CHECKOUT, SMALL, wanted

WEIGHTS = Path(__file__).with_name("export_models_torch.py")
FORMATS = {"mindir open": ("--dynamic",), "mindir": (), "onnx open": ("--dynamic",), "onnx": ()}
KINDS = {"mindir": "MindIR", "onnx": "ONNX"}
DEFAULT_SHAPE = "1x3x224x224"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", action="append", metavar="GLOB", help="torchvision:GLOB, timm:GLOB, …")
    parser.add_argument("--out", type=Path, default=Path("export_models.jsonl"))
    parser.add_argument("--again", action="store_true", help="run what stands in --out again, too")
    parser.add_argument("--table", action="store_true", help="print the table of what stands in --out, and run nothing")
    parser.add_argument("--limit", type=float, default=1800, metavar="SECONDS", help="for one model and format")
    given = parser.parse_args()
    known = read(given.out)
    models = wanted(given.models or ("torchvision:*",), None)
    for number, model in enumerate(models, 1):
        if given.table or (not given.again and all(best(known, model, kind)[1] for kind in KINDS)):
            continue
        print(f"{number}/{len(models)} {model}", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory(prefix="export-models-") as temporary:
            for form, found in exports(model, {} if given.again else known, Path(temporary), given.limit):
                known[model, form] = found
                with given.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"model": model, "form": form, **found}) + "\n")
    print(table(models, known))


def read(file: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """What is known of each model and format, the last that was written of it."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return {(found["model"], found["form"]): found for found in map(json.loads, lines)}


def best(known: dict[tuple[str, str], dict[str, Any]], model: str, kind: str) -> tuple[bool, dict[str, Any] | None]:
    """Whether the batch of a model's file could be left open, and what was found of that file; None: not all is run."""
    opened = known.get((model, f"{kind} open"))
    if opened is None or opened["code"] == 0:
        return True, opened
    return False, known.get((model, kind))


def exports(model: str, known: dict[tuple[str, str], dict[str, Any]], folder: Path, limit: float) -> Any:
    """Draw weights, and export them in each format that is not known; yields the format and what was found."""
    made, small = next(one for pattern, one in SMALL.items() if fnmatch(model, pattern))
    spec, shape = f"{model}{made}", small or DEFAULT_SHAPE
    weights = folder / "weights.pth"
    code, _, said = run([sys.executable, str(WEIGHTS), spec, shape, str(weights)], limit)
    known = dict(known)
    for form in FORMATS:
        if (model, form) in known or best(known, model, form.partition(" ")[0])[1] is not None:
            continue
        if code:
            known[model, form] = {"code": code}
            yield form, {"code": code, "said": last(said), "seconds": 0.0}
            continue
        kind = form.partition(" ")[0]
        command = [sys.executable, "-m", "msmigrate", "export", str(weights), "--model", spec, "--input", shape]
        command += ["--format", kind, *FORMATS[form], "--json", "--force", "-o", str(folder / f"net.{kind}")]
        began = time.monotonic()
        status, out, said = run(command, limit)
        found: dict[str, Any] = {"code": status, "said": last(said), "seconds": round(time.monotonic() - began, 1)}
        if out.strip():
            found["told"] = json.loads(out.splitlines()[-1])
        known[model, form] = found
        yield form, found


def run(command: list[str], limit: float) -> tuple[int, str, str]:
    """Exit code (-1: out of time), stdout and stderr."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=CHECKOUT, timeout=limit)
    except subprocess.TimeoutExpired:
        return -1, "", f"stopped after {limit:g} s"
    return done.returncode, done.stdout, done.stderr


def last(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1][:400] if lines else ""


def table(models: list[str], known: dict[tuple[str, str], dict[str, Any]]) -> str:
    """Markdown: what was run, a line a model, then why a batch is fixed and what stopped the others."""
    lines = ["| model | MindIR | ONNX |", "|---|---|---|"]
    ran = [model for model in models if any((model, form) in known for form in FORMATS)]
    for model in ran:
        cells = [cell(*best(known, model, kind)) for kind in KINDS]
        lines.append(f"| {model.removeprefix('torchvision:')} | {' | '.join(cells)} |")
    lines += ["", f"{len(ran)} models were run; {len(models) - len(ran)} of those asked for were not.", ""]
    for kind, name in KINDS.items():
        found = [best(known, model, kind) for model in ran]
        good = [opened for opened, one in found if one and one["code"] == 0]
        lines.append(f"{name}: {len(good)} of {len(ran)}, {sum(good)} with an open batch.  ")
    lines.append("")
    for model in ran:
        for form in FORMATS:
            found_ = known.get((model, form))
            if found_ and found_["code"]:
                lines.append(f"* {model}, {form}: {reason(found_)}")
    return "\n".join(lines)


def cell(opened: bool, found: dict[str, Any] | None) -> str:
    if found is None:
        return ""
    if found["code"]:
        return "✗" if found["code"] == 1 else "–"
    ratios = [one["ratio"] for one in found["told"]["comparisons"] if one["subject"] == "the file"]
    return f"✓ {max(ratios):.2f}{'' if opened else ', fixed batch'}"


def reason(found: dict[str, Any]) -> str:
    bad = [one for one in (found.get("told") or {}).get("comparisons", []) if one["verdict"] != "pass"]
    return f"{bad[0]['subject']} and {bad[0]['against']}: {bad[0]['why']}" if bad else found["said"]


if __name__ == "__main__":
    main()
