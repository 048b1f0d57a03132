"""Plant every known migration fault that can be planted, one at a time and several at once, and score the reports.

    python benchmarks/faults/run.py [--net composite fused functional recurrent tagger segment speech]
    python benchmarks/faults/run.py [--only ID …] [--net NAME …] [--step NAME …] [--pairs N] [--once] [--quick]
        [--fixes] [--jobs N] [--json FILE] [--keep DIR] [--show FILE …]

faults.yaml says what is planted where, and what the report has to say; bases.yaml the training steps; equals.yaml the
beliefs that were measured to be no faults, which have to stay green, as have the untouched pairs. foreign.yaml has
faults of nets whose twin has other names and other cuts; they are run where --net names them. --pairs N: N pairs
and N triples of faults at once, besides. --once: each fault in one net, no clean pairs. --quick: a minute's worth.
--fixes: what the reports print as fixes is applied upon the faults, as fixes.py says, and judged again: the step then
has to agree. Prints markdown; exit code 1 when a fault was not detected, a clean pair was red, or a fix did not mend
its fault. Each framework records its cases in one process (--jobs: in so many, side by side).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import plan as planning
import yaml
from fixes import application
from plan import FOREIGN, NETS, Base, Case
from scoring import Fault, Score, false_alarm, faults, foreign, score, unlisted
from tables import show

HERE = Path(__file__).parent
QUICK = 6
SEEDS = (42, 1, 2)


@dataclass
class Run:
    """One case: its base and what was planted in it (nothing: it has to stay green)."""

    base: Base
    case: Case
    planted: list[Fault] = field(default_factory=list)
    equal: str = ""
    report: dict[str, Any] = field(default_factory=dict)
    scores: list[Score] = field(default_factory=list)
    trouble: str = ""
    again: Run | None = None

    @property
    def to_apply(self) -> list[dict[str, Any]]:
        """The causes of the report whose fixes can be applied."""
        return [cause for cause in self.report.get("causes", []) if application(cause).way]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", metavar="ID", help="these faults, and no untouched pairs")
    parser.add_argument("--net", nargs="*", metavar="NAME", choices=(*NETS, *FOREIGN), default=list(NETS))
    parser.add_argument("--step", nargs="*", metavar="NAME", help="only with these steps of bases.yaml")
    parser.add_argument("--pairs", type=int, default=0, help="so many pairs and so many triples of faults besides")
    parser.add_argument("--once", action="store_true", help="each fault in the first of its nets, no clean pairs")
    parser.add_argument("--fixes", action="store_true", help="apply what the reports print as fixes, and judge again")
    parser.add_argument("--quick", action="store_true", help="a few faults of each kind")
    parser.add_argument("--jobs", type=int, default=2, help="pairs of processes that share the work (2)")
    parser.add_argument("--json", type=Path, help="write every score there")
    parser.add_argument("--show", nargs="+", type=Path, metavar="FILE", help="run nothing: print what --json left")
    parser.add_argument("--keep", type=Path, help="a new folder for the reports, which are kept")
    given = parser.parse_args()
    planning.register()
    runs = planned(given)
    if given.show:
        sys.exit(show(read(given.show, runs)))
    with tempfile.TemporaryDirectory() as temporary:
        root = given.keep or Path(temporary) / "runs"
        root.mkdir(parents=True)
        began = time.monotonic()
        roots = record(root, runs, given.jobs)
        for run in runs:
            judge(roots[id(run.base)], run)
        if given.fixes:
            judge_fixes(Path(temporary) / "fixed", runs, given.jobs)
    print(f"{len(runs)} runs in {(time.monotonic() - began) / 60:.0f} minutes\n")
    if given.json:
        given.json.write_text(json.dumps([_told(run) for run in runs], indent=1))
    sys.exit(show(runs))


# What is run


def planned(given: argparse.Namespace) -> list[Run]:
    """Every run that the command line asks for, grouped by base."""
    bases: dict[tuple[str, str, int], Base] = {}

    def base(net: str, step: str, seed: int = 42) -> Base:
        return bases.setdefault((net, step, seed), Base(net, step, seed=seed))

    runs: list[Run] = []
    chosen = [fault for fault in (*faults(), *unlisted()) if not given.only or fault.id in given.only]
    if given.quick:
        chosen = quick(chosen)
    for fault in chosen:
        nets = [net for net in fault.nets if net in given.net]
        for net in nets[:1] if given.quick or given.once else nets:
            case = Case(fault.id if _once(chosen, fault) else f"{fault.id}-{fault.inject}-{net}", [planting(fault)])
            runs.append(Run(base(net, fault.step), case, [fault]))
    for fault in [f for f in foreign() if f.nets[0] in given.net and (not given.only or f.id in given.only)]:
        runs.append(Run(base(fault.nets[0], "default"), Case(fault.id, wrong=fault.args), [fault]))
    for count in (2, 3) if set(given.net) <= set(NETS) else ():
        runs += together(given, count, base)
    for net in given.net if not given.only and not given.once else []:
        for seed in SEEDS[:1] if given.quick else SEEDS:
            runs.append(Run(base(net, "default", seed), Case("clean")))
    if not given.only and not given.quick and not given.once:
        steps = sorted({(run.base.net, run.base.step) for run in runs if run.base.step not in ("default", "unused")})
        runs += [Run(base(net, step), Case("clean")) for net, step in steps]
    runs += equal(given, base)
    runs = [run for run in runs if not given.step or run.base.step in given.step]
    order = list(bases.values())
    runs.sort(key=lambda run: order.index(run.base))
    for run in runs:
        run.base.cases.append(run.case)
    return runs


def planting(fault: Fault) -> tuple[str, dict[str, Any]]:
    """What the plan says of one fault."""
    return fault.inject, fault.args


def quick(chosen: list[Fault]) -> list[Fault]:
    """A few faults of each kind, the same ones each time."""
    kept: list[Fault] = []
    for kind in sorted({fault.kind for fault in chosen}):
        of_kind = [fault for fault in chosen if fault.kind == kind and fault.step == "default"]
        listed = [fault for fault in of_kind if fault.causes]
        kept += Random(kind).sample(listed, min(len(listed), 3 if kind == "model" else 1))
        kept += [fault for fault in of_kind if not fault.causes][:1]
    return kept


def together(given: argparse.Namespace, count: int, base: Any) -> Iterator[Run]:
    """Random faults at once in one net: no two with the same injector, for one would undo the other."""
    random = Random(count)
    several = [f for f in faults() if f.step == "default" and f.kind in ("model", "optimizer", "data", "checkpoint")]
    for i in range(given.pairs):
        net = random.choice(given.net)
        here = [f for f in several if net in f.nets]
        picked: list[Fault] = []
        while len(picked) < count:
            fault = random.choice(here)
            if fault.inject not in {p.inject for p in picked}:
                picked.append(fault)
        case = Case(f"{count}-at-once-{i}", [planting(fault) for fault in picked])
        yield Run(base(net, "default"), case, picked)


def equal(given: argparse.Namespace, base: Any) -> Iterator[Run]:
    """The beliefs that were measured to be equal."""
    path, seen = HERE / "equals.yaml", set[tuple[str, str]]()
    if given.only or given.quick or given.once:
        return
    for entry in yaml.safe_load(path.read_text()):
        for net in entry.get("nets", []):
            step = entry.get("step", "default")
            if "inject" in entry and net in given.net:
                case = Case(f"equal-{entry['probe']}", [(entry["inject"], entry.get("args", {}))])
                yield Run(base(net, step), case, equal=entry["probe"])
            elif "inject" not in entry and net in (*given.net, "beliefs") and (net, step) not in seen:
                seen.add((net, step))
                yield Run(base(net, step), Case("equal"), equal=f"{net} {step}")


def _once(chosen: list[Fault], fault: Fault) -> bool:
    return sum(each.id == fault.id for each in chosen) == 1


# Running it


def record(root: Path, runs: list[Run], jobs: int) -> dict[int, Path]:
    """Let both frameworks go through the plan, and say in which folder each base's reports are; a process that stops
    ends the benchmark."""
    bases = sorted({id(run.base): run.base for run in runs}.values(), key=lambda base: -len(base.cases))
    shares: list[list[Base]] = [[] for _ in range(min(jobs, len(bases)))]
    for base in bases:  # to whom has least to do
        min(shares, key=lambda share: sum(len(each.cases) + 1 for each in share)).append(base)
    roots = {id(base): root / str(i) for i, share in enumerate(shares) for base in share}
    started: dict[Path, subprocess.Popen[bytes]] = {}
    for i, share in enumerate(shares):
        own = root / str(i)
        own.mkdir()
        planning.write(own, share)
        for script in ("torch_cases.py", "mindspore_cases.py"):
            log = own / script.replace("_cases.py", ".log")
            with log.open("w") as stderr:
                environment = {**os.environ, "OMP_NUM_THREADS": "1"}
                command = [sys.executable, str(HERE / script), str(own)]
                started[log] = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stderr, env=environment)
    processes, shown = list(started.values()), -1
    try:
        while any(process.poll() is None for process in processes) and not any(process.poll() for process in processes):
            time.sleep(0.2)  # once one has stopped with an error, the other would wait in vain
            done = len(list(root.glob("*/reports/*.json")))
            if done != shown and sys.stderr.isatty():
                print(f"\r{done} of {len(runs)}", end="", file=sys.stderr, flush=True)
                shown = done
        stopped = [log for log, process in started.items() if process.poll()]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    for log in stopped:
        sys.exit(f"{log.stem} stopped:\n{log.read_text()[-3000:]}")
    return roots


def judge(root: Path, run: Run) -> None:
    """Read a run's report and score it."""
    run.report = json.loads((root / "reports" / f"{run.base.name}--{run.case.name}.json").read_text())
    if "crashed" in run.report:
        last = [line for line in run.report["crashed"].splitlines() if line.strip()]
        run.trouble = "crashed: " + next((line for line in reversed(last) if "Error" in line), last[-1])[:200]
        return
    if run.planted:
        places = run.planted[0].at or [str(place) for place in run.report["injected"]["places"]]
        run.scores = score(run.report, run.planted, places)
    else:
        run.trouble = false_alarm(run.report)


def judge_fixes(root: Path, runs: list[Run], jobs: int) -> None:
    """Plant every fault again, apply what its report printed, and judge what comes of it."""
    root.mkdir()
    bases = {id(run.base): replace(run.base, cases=[]) for run in runs}
    for run in runs:
        if run.planted and run.to_apply:
            case = Case(run.case.name, [*run.case.inject, ("applied", {"causes": run.to_apply})])
            run.again = Run(bases[id(run.base)], case, run.planted)
            run.again.base.cases.append(case)
    again = [run.again for run in runs if run.again is not None]
    roots = record(root, again, jobs) if again else {}
    for one in again:
        judge(roots[id(one.base)], one)


def _told(run: Run) -> dict[str, Any]:
    report = run.report
    return {
        "base": run.base.name,
        "case": run.case.name,
        "planted": [fault.id for fault in run.planted],
        "scores": [vars(one) for one in run.scores],
        "trouble": run.trouble,
        "parity": report.get("parity"),
        "injected": report.get("injected"),
        "took": report.get("took"),
        "causes": report.get("causes", []),
        "own": [module["name"] for module in report.get("modules", []) if module["own"]],
        "first": report.get("first_divergence"),
        "again": None if run.again is None else _told(run.again),
    }


def read(files: list[Path], runs: list[Run]) -> list[Run]:
    """The runs that --json left in these files; of one that is in several, the last counts."""
    known = {(run.base.name, run.case.name): run for run in runs}
    found: dict[int, Run] = {}
    for told in (each for file in files for each in json.loads(file.read_text())):
        run = known[told["base"], told["case"]]
        _restore(run, told)
        found[id(run)] = run
    return [run for run in runs if id(run) in found]


def _restore(run: Run, told: dict[str, Any]) -> None:
    run.scores, run.trouble = [Score(**one) for one in told["scores"]], told["trouble"]
    run.report = {"causes": told["causes"], "parity": told["parity"]}
    if told["again"] is not None:
        run.again = Run(run.base, run.case, run.planted)
        _restore(run.again, told["again"])


if __name__ == "__main__":
    main()
