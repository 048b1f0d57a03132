"""Convert strangers' models, each as its own user would type it, and list what came of them.

    python benchmarks/strangers.py CHECKOUTS           # all of strangers.yaml; what is known is not run again
    python benchmarks/strangers.py CHECKOUTS --only 'karpathy/*' --again
    python benchmarks/strangers.py CHECKOUTS --table
    python benchmarks/strangers.py CHECKOUTS --list benchmarks/strangers_unseen.yaml

CHECKOUTS is a folder with a clone of each repository at its commit, as OWNER__NAME:

    git clone https://github.com/OWNER/NAME CHECKOUTS/OWNER__NAME
    git -C CHECKOUTS/OWNER__NAME checkout COMMIT

Some of them need packages of their own (einops, omegaconf, easydict).
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import yaml

LIST = Path(__file__).with_name("strangers.yaml")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", type=Path)
    parser.add_argument("--list", type=Path, default=LIST, help="the models (strangers.yaml)")
    parser.add_argument("--only", action="append", metavar="GLOB", help="of REPOSITORY MODEL")
    parser.add_argument("--out", type=Path, default=Path("strangers.jsonl"))
    parser.add_argument("--again", action="store_true", help="run models that stand in --out again, too")
    parser.add_argument("--table", action="store_true", help="print what stands in --out, and run nothing")
    parser.add_argument("--limit", type=float, default=600, metavar="SECONDS", help="for one model")
    parser.add_argument("--no-proof", action="store_true", help="write the source and the weights alone")
    given = parser.parse_args()
    lines = given.out.read_text(encoding="utf-8").splitlines() if given.out.exists() else []
    known = {found["name"]: found for found in map(json.loads, lines)}
    wanted = [
        (n, r, m) for n, r, m in models(given.list) if not given.only or any(fnmatch(n, f"{g}*") for g in given.only)
    ]
    for number, (name, repository, model) in enumerate(wanted, 1):
        if given.table or (name in known and not given.again):
            continue
        print(f"{number}/{len(wanted)} {name}", file=sys.stderr, flush=True)
        known[name] = {"name": name, **one(repository, model, given)}
        print(f"    {said(known[name])}", file=sys.stderr, flush=True)
        with given.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(known[name]) + "\n")
    print(table([known[name] for name, _, _ in wanted if name in known]))


def models(file: Path) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """(name, repository, model) of each in the list."""
    for repository in yaml.safe_load(file.read_text(encoding="utf-8")):
        for model in repository["models"]:
            place = f"{model['folder']}/" if "folder" in model else ""
            yield f"{repository['repository']} {place}{model['model']}", repository, model


def one(repository: dict[str, Any], model: dict[str, Any], given: argparse.Namespace) -> dict[str, Any]:
    """What the command says of one model: typed in its folder, or of a file of the user's own that makes it."""
    checkout = given.checkouts.resolve() / repository["repository"].replace("/", "__")
    folder = checkout / model.get("folder", ".")
    with tempfile.TemporaryDirectory() as work:
        named = model["model"]
        if "build" in model:
            Path(work, "made.py").write_text(model["build"], encoding="utf-8")
            named = f"{work}/made.py:build"
        command = [sys.executable, "-m", "msmigrate", "convert-model", named, *model.get("inputs", ())]
        command += ["-o", f"{work}/net.py", "--json", f"{work}/net.json"]
        command += ["--no-proof"] if given.no_proof else ["--no-replay", "--steps", "2"]
        command += ["--", *model["args"]] if "args" in model else []
        path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
        began = time.monotonic()
        with tempfile.TemporaryFile("w+", encoding="utf-8") as text:
            process = subprocess.Popen(
                command, cwd=folder, env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.DEVNULL, stderr=text,
                start_new_session=True,
            )  # fmt: skip
            try:
                code = process.wait(given.limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGTERM)
                process.wait()
                code = 124
            text.seek(0)
            error = text.read().replace(work, "").replace(f"{checkout}/", "")[-2000:]
        result = Path(work, "net.json")
        answer = json.loads(result.read_text(encoding="utf-8")) if result.exists() else None
    return {"code": code, "seconds": round(time.monotonic() - began), **outcome(code, answer, error, str(checkout))}


def outcome(code: int, answer: dict[str, Any] | None, error: str, checkout: str) -> dict[str, Any]:
    """In a word how it went, the lines that were written, and what is said of what failed."""
    if answer is None:
        why = [line for line in error.replace("\r", "\n").splitlines() if line.strip()]
        return {"outcome": "timeout" if code == 124 else "refused", "why": why[-3:]}
    source, proof = answer["source"], answer["proof"]
    why = [
        f"{p['file'].removeprefix(f'{checkout}/')}:{p['line']}: {p['text']}" if p["file"] else p["text"]
        for p in source["problems"]
    ]
    found: dict[str, Any] = {"lines": source["lines"], "classes": source["classes"]}
    if why:
        return {**found, "outcome": "not whole", "why": why}
    if proof is None:
        return {**found, "outcome": "written" if answer["sound"] else "not proven", "why": answer["stopped"]}
    if proof["parity"]:
        return {**found, "outcome": "proven", "why": []}
    failed = [f"{s['stage']}: {s['failed']} failed" for s in proof["stages"] if s["failed"]]
    first = proof["first_divergence"]
    place = [f"first at {first['place']}: {first['why']}"] if first else []
    return {**found, "outcome": "mismatch" if failed else "unproven", "why": failed + place + answer["stopped"]}


def said(found: dict[str, Any]) -> str:
    return " · ".join([found["outcome"], f"{found['seconds']} s", *found["why"][:3]])


def table(found: list[dict[str, Any]]) -> str:
    """Markdown: a row for each model, and how many went how."""
    rows = ["| repository, model | outcome | lines | what was said |", "|---|---|---:|---|"]
    for one in found:
        why = "<br>".join(one["why"][:3]).replace("|", "\\|")
        rows.append(f"| {one['name'].replace('|', '')} | {one['outcome']} | {one.get('lines', '')} | {why} |")
    words = sorted({one["outcome"] for one in found})
    counts = ", ".join(f"{word} {sum(one['outcome'] == word for one in found)}" for word in words)
    return "\n".join([*rows, "", f"{len(found)} models: {counts}"])


if __name__ == "__main__":
    main()
