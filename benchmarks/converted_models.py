"""Convert many models, and prove each: the table of what `msmigrate convert-model` can do.

    python benchmarks/converted_models.py                                   # torchvision's 80 classification models
    python benchmarks/converted_models.py --models 'torchvision:resnet*' --models torchvision:vgg11
    python benchmarks/converted_models.py --models 'torchvision.segmentation:*' --models 'torchvision.video:*'
    python benchmarks/converted_models.py --models 'torchvision.detection:*'     # their backbones
    python benchmarks/converted_models.py --models 'transformers:*'              # small editions; needs transformers
    python benchmarks/converted_models.py --models 'packages:*'                  # of diffusers, monai, …
    python benchmarks/converted_models.py --models benchmarks/timm_models.yaml   # one of each of timm's files
    python benchmarks/converted_models.py --models 'timm:resnet*' --table        # of what is there, run nothing

One model at a time, in a process of its own with a time limit. What is known of each is appended to --out (JSON lines),
and models that stand there are not run again, unless --again; the sources and reports stay in the folder of that name.
With --no-proof they are written, their weights loaded, and run as they are next to torch's, in both modes and with a
gradient (the column "as it is"); without it those are run again.
Inputs are small where a net allows it. Prints markdown; s, CPU s and MB are of tracing and writing beyond the imports,
on inputs of the usual size, and run s of everything. Needs timm; mindcv where its hand-written sources are to be
counted (pip install --no-deps mindcv).
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import time
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import handwritten
import yaml

TORCH = Path(__file__).with_name("converted_models_torch.py")
CHECKOUT = Path(__file__).parent.parent
ALL = ("torchvision:*",)
# how a net is made for a small image, and what it then takes; '' stands for the size that its published weights take
SMALL = {
    "torchvision:vit_h_14": ("(image_size=56)", "1x3x56x56"),
    "torchvision:vit_*": ("(image_size=64)", "1x3x64x64"),
    "torchvision:inception_v3": ("", "1x3x299x299"),
    "torchvision:maxvit_t": ("", ""),
    "torchvision:mvit_*": ("", ""),
    "torchvision:s3d": ("", "1x3x14x224x224"),
    "*backbone('ssd300_*": ("", "1x3x300x300"),
    "torchvision:swin3d_*": ("", "1x3x4x64x64"),
    "torchvision:r*d*_18": ("", "1x3x8x32x32"),
    "torchvision:mc3_18": ("", "1x3x8x32x32"),
    "timm:*": ("", ""),
    "*_transformers.py:*": ("", ""),
    "*_packages.py:*": ("", ""),
    "*": ("", "1x3x64x64"),
}
BATCHES = {"torchvision:mvit_*": 1, "torchvision:s3d": 2}  # where --batch would take more than 20 GB
STAGES = ("weights", "init", "eval", "train", "loss", "gradients", "update", "replay", "graph")
HEAD = ("model", "lines", "classes", "mindcv lines", "classes", "as it is", *STAGES, "s", "CPU s", "MB", "run s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", action="append", metavar="GLOB", help="torchvision:GLOB, timm:GLOB, … or a list")
    parser.add_argument("--out", type=Path, default=Path("converted_models.jsonl"))
    parser.add_argument("--again", action="store_true", help="run models that stand in --out again, too")
    parser.add_argument("--table", action="store_true", help="print the table of what stands in --out, and run nothing")
    parser.add_argument("--limit", type=float, default=1800, metavar="SECONDS", help="for one model")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--no-proof", action="store_true")
    parser.add_argument("--no-replay", action="store_true")
    parser.add_argument("--no-graph", action="store_true")
    parser.add_argument(
        "--no-cost", action="store_true", help="do not trace and write it once more, to see what that takes"
    )
    given = parser.parse_args()
    known = read(given.out)
    lists = [pattern for pattern in given.models or ALL if pattern.endswith(".yaml")]
    listed = {model: small for file in lists for model, small in yaml.safe_load(Path(file).read_text()).items()}
    patterns = [pattern for pattern in given.models or ALL if pattern not in lists]
    models = [*listed, *wanted(patterns, known if given.table else None)]
    for number, model in enumerate(models, 1):
        proven = model in known and (given.no_proof or not known[model].get("no_proof"))
        if given.table or (proven and not given.again):
            continue
        print(f"{number}/{len(models)} {model}", file=sys.stderr, flush=True)
        known[model] = one(model, listed.get(model), given)
        with given.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(known[model]) + "\n")
    print(table([known[model] for model in models if model in known]))


def read(file: Path) -> dict[str, dict[str, Any]]:
    """What is known of each model, the last that was written of it."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return {found["model"]: found for found in map(json.loads, lines)}


def wanted(patterns: list[str] | tuple[str, ...], known: dict[str, Any] | None) -> list[str]:
    """The models that patterns stand for, of the known ones where these are given; without a family torchvision's are
    those that classify images."""
    zoos = ("torchvision.", "transformers:", "packages:")  # whose models go by another name than convert-model's
    globs = [
        p for p in patterns if p.startswith(zoos) or (p.startswith(("torchvision:", "timm:")) and set("*?[") & set(p))
    ]
    found = dict.fromkeys(p for p in patterns if p not in globs)
    if globs:
        command = [sys.executable, str(TORCH), "names", *globs]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, cwd=CHECKOUT)
        if done.returncode:
            sys.exit(2)
        found |= dict.fromkeys(json.loads(done.stdout))
    return [model for model in found if known is None or model in known]


def one(model: str, small: list[str] | None, given: argparse.Namespace) -> dict[str, Any]:
    """Convert and prove one model; small: the arguments that it is made with, and the image."""
    made, shape = small or next(small for pattern, small in SMALL.items() if fnmatch(model, pattern))
    spec, shapes = f"{model}{made}", [shape] if shape else []
    batch = next((few for pattern, few in BATCHES.items() if fnmatch(model, pattern)), given.batch)
    folder = given.out.with_suffix("").absolute()
    folder.mkdir(parents=True, exist_ok=True)
    if model.startswith("benchmarks/") and "_torch.py:" not in model:  # a file in msmigrate's own folders is no user's
        file, _, name = model.partition(":")
        spec = f"{shutil.copy(CHECKOUT / file, folder)}:{name}"
    stem = re.sub(r"\W+", "_", model.removeprefix("torchvision:")).strip("_")
    file, report = folder / f"{stem}_ms.py", folder / f"{stem}.json"
    report.unlink(missing_ok=True)
    began = time.monotonic()
    command = [sys.executable, "-m", "msmigrate", "convert-model", spec, *shapes, "-o", str(file), "--force", "--json"]
    proof = ["--parity-report", str(report), f"--batch={batch}", f"--steps={given.steps}"]
    proof += ["--no-replay"] * given.no_replay + ["--mode=graph"] * (not given.no_graph)
    command += ["--no-proof"] if given.no_proof else proof
    code, out, said = _run(command, given.limit)
    seconds = round(time.monotonic() - began)
    found: dict[str, Any] = {"model": model, "spec": spec, "shape": shape, "code": code, "seconds": seconds}
    found["no_proof"] = given.no_proof
    try:
        found |= json.loads(out.splitlines()[-1])
        found["model"] = model
    except (IndexError, ValueError):
        found["stopped"] = [said.strip().splitlines()[-1][:400] if said.strip() else f"exit code {code}"]
    if report.exists():
        findings = json.loads(report.read_text(encoding="utf-8"))["findings"]
        found["stages"] = {stage: judged(findings, stage) for stage in STAGES[1:]}
    file.with_suffix(".ckpt").unlink(missing_ok=True)  # of all models they would be tens of GB
    if given.no_cost or small is not None:
        return found
    _, out, _ = _run([sys.executable, str(TORCH), "cost", model if made else spec], given.limit)
    found["cost"] = json.loads(out.splitlines()[-1]) if out.strip() else {}
    return found


def _run(command: list[str], limit: float) -> tuple[int, str, str]:
    """Exit code (-1: out of time), stdout and stderr."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=CHECKOUT, timeout=limit)
    except subprocess.TimeoutExpired:
        return -1, "", f"stopped after {limit:g} s"
    return done.returncode, done.stdout, done.stderr


def judged(findings: list[dict[str, Any]], stage: str) -> dict[str, Any]:
    """How many findings of a column passed, failed and have no verdict, and the largest ratio."""
    mine = [f for f in findings if column(f) == stage]
    counts = {verdict: sum(f["verdict"] == verdict for f in mine) for verdict in ("pass", "fail", "no verdict")}
    return {**counts, "ratio": max((f["ratio"] for f in mine if f["ratio"] is not None), default=None)}


def column(finding: dict[str, Any]) -> str:
    """The column of the table that a finding belongs to."""
    part = finding["part"]
    if part.startswith("graph "):
        return "graph"
    if part.startswith(("alone", "wiring")):
        return "replay"
    if finding["stage"] == "forward":
        return str(part)
    return str(finding["stage"])


def table(found: list[dict[str, Any]]) -> str:
    """Markdown: a line a model, then how many came through each column, and what stopped the others."""
    lines = [f"| {' | '.join(HEAD)} |", f"|---|{'---:|' * (len(HEAD) - 1)}"]
    lines += [f"| {' | '.join(_row(one))} |" for one in found]
    good = {stage: sum(_cell(one, stage) == "✓" for one in found) for stage in STAGES}
    whole = sum(_row(one)[1] != "" and not (one.get("source") or {}).get("problems") for one in found)
    lines += ["", f"{len(found)} models; written whole {whole}; " + ", ".join(f"{s} {n}" for s, n in good.items())]
    for one in found:
        problems = [f"{p['file'].rpartition('/')[2]}:{p['line']}: {p['text']}" for p in _problems(one)]
        problems += [f"{t['what']}: {t['why']}" for t in one.get("tried", ()) if t["verdict"] in ("refused", "differs")]
        said = [*problems[:3], *one.get("stopped", [])[:1]]
        lines += [f"* {one['model']}: {'; '.join(said)}"] if said else []
    return "\n".join(lines)


def _problems(one: dict[str, Any]) -> list[dict[str, Any]]:
    return list((one.get("source") or {}).get("problems", []))


def _row(one: dict[str, Any]) -> list[str]:
    source, cost = one.get("source") or {}, one.get("cost") or {}
    theirs = handwritten.size(one["model"].partition(":")[2].partition("(")[0])
    size = [str(source.get("lines", "")), str(source.get("classes", "")), *(map(str, theirs) if theirs else ("", ""))]
    if _problems(one):
        size[0] += f" ({len(_problems(one))} missing)"
    tried = {t["what"]: t["verdict"] for t in one.get("tried", ())}
    same = {"same": "✓", "differs": "✗", "refused": "✗"}.get(tried.get("as it is", ""), "–")
    cells = [same, *(_cell(one, stage) for stage in STAGES)]
    last = [str(cost.get(key, "")) for key in ("seconds", "cpu", "megabytes")] + [str(one["seconds"])]
    name = re.sub(r"^(torchvision:|.*_(transformers|packages)\.py:)", "", one["model"])
    return [name, *size, *cells, *last]


def _cell(one: dict[str, Any], stage: str) -> str:
    """✓, or how many tensors failed, or – where there is nothing."""
    if stage == "weights":
        return "✓" if (one.get("checkpoint") or {}).get("loaded") else "–"
    found = (one.get("stages") or {}).get(stage) or {}
    if found.get("fail"):
        return f"✗ {found['fail']}"
    if not found.get("pass"):
        return "–"
    return "✓"


if __name__ == "__main__":
    main()
