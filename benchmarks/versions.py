"""Which versions of MindSpore, torch and Python msmigrate works with: every row and the default step on each MindSpore.

    python benchmarks/versions.py --folder DIR [--mindspore VERSION …] [--only rows step resolve] [--rows NAME …]
        [--json FILE]
    python benchmarks/versions.py --show FILE > docs/versions.md

Each MindSpore is installed into a folder of its own below DIR, where it stays, and stands before the installed one.
Then every case of every row runs in both modes and is judged as the tests judge it, and parity-step runs on its default
recipe. Last, pip says which combinations resolve together; nothing is installed for that.
Half an hour a version on two cores. --show prints the page of what --json left. Exit code 1 where a row or the step
disagrees.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from msmigrate.mappings import table
from packaging.requirements import Requirement
from packaging.version import Version
from table_status import MODES, Bench

ROOT = Path(__file__).parent.parent
MINDSPORE = ("2.7.2", "2.8.0", "2.9.0", "2.10.0")
TORCH = (("2.6.0", "0.21.0"), ("2.14.1", "0.29.1"))  # the oldest, and the newest that was at hand
PYTHON = ("3.10", "3.11", "3.12")
PARTS = ("rows", "step", "resolve")
AT_ONCE = 50  # rows that one process of MindSpore runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="where each MindSpore is installed")
    parser.add_argument("--mindspore", nargs="*", default=list(MINDSPORE), metavar="VERSION")
    parser.add_argument("--only", nargs="*", choices=PARTS, default=list(PARTS))
    parser.add_argument(
        "--rows", nargs="*", metavar="NAME", help="only these, by torch's names; of a fuller run, these again"
    )
    parser.add_argument("--json", type=Path, default=Path("versions.json"), help="what is there already stays")
    parser.add_argument("--show", type=Path, metavar="FILE", help="run nothing: print the page of what --json left")
    given = parser.parse_args()
    if given.show:
        print(page(json.loads(given.show.read_text())), end="")
        return
    if given.folder is None:
        parser.error("--folder says where each MindSpore is installed")
    told: dict[str, Any] = json.loads(given.json.read_text()) if given.json.exists() else {"versions": {}}
    for version in given.mindspore:
        environment = installed(version, given.folder.absolute())
        found = told["versions"].setdefault(version, {})
        for part, run in (("rows", partial(rows, names=given.rows)), ("step", step)):
            if part in given.only:
                before, found[part] = found.get(part), run(environment)
                if part == "rows" and given.rows and before:
                    found[part] = updated(before, found[part], given.rows)
                given.json.write_text(json.dumps(told, indent=1))
    if "resolve" in given.only:
        told["resolve"] = [resolved(*one) for one in combinations(given.mindspore)]
        given.json.write_text(json.dumps(told, indent=1))
    print(page(told))
    wrong = [version for version, found in told["versions"].items() if unexpected(version, found)]
    sys.exit(1 if wrong else 0)


def installed(version: str, folder: Path) -> dict[str, str]:
    """The environment in which this MindSpore is imported; installs it where it is not there."""
    place = folder / version
    if not (place / "mindspore").exists():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(place)]
        subprocess.run([*command, f"mindspore=={version}"], check=True)
    (found,) = metadata.distributions(name="mindspore", path=[str(place)])
    for requirement in map(Requirement, found.requires or []):
        if not requirement.specifier.contains(metadata.version(requirement.name), prereleases=True):
            sys.exit(f"MindSpore {version} wants {requirement}, {metadata.version(requirement.name)} is there")
    environment = {**os.environ, "PYTHONPATH": str(place), "OMP_NUM_THREADS": "1", table.VERSION: MINDSPORE[-1]}
    code = "import mindspore; print(mindspore.__version__)"
    told = subprocess.run([sys.executable, "-c", code], env=environment, check=True, stdout=subprocess.PIPE, text=True)
    if told.stdout.split()[-1] != version:
        sys.exit(f"{place}: {told.stdout} is imported, not {version}")
    return environment


def rows(environment: dict[str, str], names: list[str] | None) -> dict[str, Any]:
    """How many cases ran in each mode, and of each row that is not as it says, by mode, what is wrong first."""
    ran, wrong = dict.fromkeys(MODES, 0), dict[str, dict[str, str]]()
    everything = [row for row in table.rows() if row.cases and (names is None or row.torch in names)]
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        server = bench.engine.mindspore
        server.environment = {**server.environment, **environment}
        for i, row in enumerate(everything):
            if i % AT_ONCE == 0:
                server.close()  # what is compiled stays in memory: 2.7.2 takes 20 GB for all of it
            for found in bench.row(row, dict.fromkeys(MODES, 0)):
                ran[found.mode] += found.listed
                if found.wrong:
                    wrong.setdefault(row.torch, {})[found.mode] = shortened(found.wrong)
            print(f"\r{i + 1} of {len(everything)} rows, {len(wrong)} disagree", end="", file=sys.stderr, flush=True)
        bench.engine.close()
    return {"rows": len(everything), "cases": ran, "wrong": wrong}


def updated(before: dict[str, Any], now: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """What ran before, with these of its rows run again."""
    kept = {name: wrong for name, wrong in before["wrong"].items() if name not in names}
    return {**before, "wrong": {**kept, **now["wrong"]}} if before["rows"] > now["rows"] else now


def shortened(said: str) -> str:
    """The last line that says something, of a traceback too."""
    if "said nothing" in said or "worker died" in said:  # what follows is its log
        return said.splitlines()[0].rstrip(":")
    lines = [line.strip() for line in said.splitlines() if line.strip() and not line.strip().startswith("-")]
    head = lines[0].partition("Traceback")[0]
    error = next((line for line in reversed(lines) if "Error" in line), lines[-1])
    return (lines[0] if error == lines[0] else f"{head}… {error}")[:240]


def step(environment: dict[str, str]) -> dict[str, Any]:
    """What parity-step says of its default recipe, ResNet50 on two photographs."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "msmigrate", "parity-step", "--json", str(report)]
        done = subprocess.run(command, env=environment, check=False, stdout=subprocess.PIPE, text=True, cwd=folder)
        if not report.exists():
            return {"outcome": f"stopped with exit code {done.returncode}"}
        found = json.loads(report.read_text())
    largest = [stage["max_ratio"] for stage in found["stages"] if stage["max_ratio"] is not None]
    return {
        "outcome": found["outcome"],
        "tensors": sum(stage["passed"] for stage in found["stages"]),
        "failed": sum(stage["failed"] for stage in found["stages"]),
        "largest": max(largest),
        "versions": found["versions"],
    }


def combinations(versions: list[str]) -> list[tuple[str, str, str, str]]:
    """Python, MindSpore, torch and torchvision."""
    return [(python, version, *torch) for version in versions for torch in TORCH for python in PYTHON]


def resolved(python: str, version: str, torch: str, torchvision: str) -> dict[str, Any]:
    """Whether pip finds a set of packages in which msmigrate[all] and these hold."""
    lines = metadata.requires("msmigrate") or []
    wanted = [one for one in map(Requirement, lines) if "extra" not in str(one.marker) or "test" not in str(one.marker)]
    own = [f"{one.name}{one.specifier}" for one in wanted if one.name not in ("msmigrate", "timm", "tensorboard")]
    exact = [f"mindspore=={version}", f"torch=={torch}", f"torchvision=={torchvision}"]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--ignore-installed"]
        command += ["--only-binary=:all:", f"--python-version={python}", f"--target={folder}"]
        done = subprocess.run([*command, *own, *exact], capture_output=True, text=True, check=False)
    errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
    return {
        "python": python,
        "mindspore": version,
        "torch": torch,
        "resolves": done.returncode == 0,
        "why": errors[0][:200] if errors else "",
    }


def unexpected(version: str, found: dict[str, Any]) -> list[str]:
    """What disagrees with the table, and a step that is not at parity."""
    later = {row.torch for row in table.rows() if Version(row.since) > Version(version)}
    wrong = [name for name in found.get("rows", {}).get("wrong", {}) if name not in later]
    return wrong + [one["outcome"] for one in [found.get("step")] if one and one["outcome"] != "parity"]


HEAD = """\
# Versions

Generated by `python benchmarks/versions.py --folder DIR`; do not edit. On each MindSpore every case of so many rows of
the mapping table ran in PyNative and in Graph mode, and parity-step on its default recipe, ResNet50; on the CPU.
`--mindspore-version` of `mappings`, `analyze` and `convert-model` says what holds in which, installed or not.

"""
COLUMNS = (
    *(
        "MindSpore",
        "cases in PyNative and in Graph mode",
        "rows that hold from a later one on",
        "other rows that disagree",
    ),
    *("the default step", "tensors", "largest ratio"),
)


def page(told: dict[str, Any]) -> str:
    """docs/versions.md."""
    text, later = (
        f"{HEAD}| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}\n",
        [row for row in table.rows() if row.since != MINDSPORE[0]],
    )
    for version, found in told["versions"].items():
        ran, one = found.get("rows"), found.get("step")
        missing = [row for row in later if Version(row.since) > Version(version)]
        wrong = [name for name in ran["wrong"] if name not in {row.torch for row in missing}] if ran else []
        counts = f"{ran['rows']} rows: {' and '.join(map(str, ran['cases'].values()))}" if ran else "not run"
        cells = [version, counts, str(len(missing))]
        cells.append(str(len(wrong)) if ran else "")
        if one is None:
            cells += ["not run", "", ""]
        elif "tensors" not in one:
            cells += [one["outcome"], "", ""]
        else:
            cells += [one["outcome"], str(one["tensors"]), f"{one['largest']:.2f}"]
        text += f"| {' | '.join(cells)} |\n"
    used = {one["step"]["versions"]["torch"] for one in told["versions"].values() if "versions" in one.get("step", {})}
    text += f"\nBeside torch {', '.join(sorted(used))}.\n" if used else ""
    if later:
        text += "\n| row | holds from | in an older one |\n|---|---|---|\n"
        for row in later:
            said = [found.get("rows", {}).get("wrong", {}).get(row.torch) for found in told["versions"].values()]
            text += f"| `{row.torch}` | {row.since} | {cell(told_of(next((one for one in said if one), {})))} |\n"
    for version, found in told["versions"].items():
        for name in unexpected(version, {"rows": found.get("rows", {})}):
            text += f"\n- {version}: `{name}`: {cell(told_of(found['rows']['wrong'][name]))}\n"
    if told.get("resolve"):
        text += "\n## What pip resolves together\n\nmsmigrate[all], asked of pip without installing anything.\n"
        text += f"\n| MindSpore | torch | {' | '.join(f'Python {python}' for python in PYTHON)} |\n"
        text += f"|---|---|{'---|' * len(PYTHON)}\n"
        answers = {(one["mindspore"], one["torch"], one["python"]): one for one in told["resolve"]}
        for version, torch in dict.fromkeys((one["mindspore"], one["torch"]) for one in told["resolve"]):
            cells = [answers[version, torch, python] for python in PYTHON]
            shown = ["yes" if one["resolves"] else cell(one["why"]) for one in cells]
            text += f"| {version} | {torch} | {' | '.join(shown)} |\n"
    return text


def told_of(wrong: dict[str, str]) -> str:
    """What is wrong, by mode."""
    texts = dict.fromkeys(wrong.values())
    return "; ".join(f"{' and '.join(mode for mode in wrong if wrong[mode] == text)}: {text}" for text in texts)


def cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    main()
