"""compare from start to end: two recorded sides, or a run that was kept.

    record torch                            A: weights, batches, torch's traces
    record mindspore, with A                B: MindSpore's traces from the same start
    compare A B
    record torch, with B                    C: torch's traces with MindSpore's choices at ReLUs and max-pools
    compare C B                             as sharp as parity-step on one machine

Without the third step torch knows nothing of MindSpore's choices: gradients are judged at the noise of torch's own
flips, which in a net with ReLUs is a thousand times that of rounding, and no module is run alone.

    record torch, with A                    A2: the same with another torch
    compare A A2                            every module alone, on A's inputs and with A's choices
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ..atomic_files import refuse_unwritable
from ..errors import BadInput, BadTrace
from ..input_files import read_json
from ..option_fields import as_path
from ..parity import run_folder
from ..parity.align import model_structure
from ..parity.align.alignment import ALIGNMENT, Alignment, read_alignment
from ..parity.build_result import report
from ..parity.compare_traces import Sides, Traces, alone_without_flips, compare_replayed, label_of, without_flips
from ..parity.containers_alone import around, suspects, unjudged
from ..parity.graph_mode import GRAPH
from ..parity.job import ParityJob
from ..parity.noise import ROUNDED
from ..parity.options import Narrowing, ParityOptions
from ..parity.replay.module_calls import FAILED, Outcome, Recording, failed
from ..parity.replay.module_calls import FILE as RECORDING
from ..parity.replay.module_calls import FOLDER as REPLAY
from ..parity.result import Finding, Report
from ..parity.run import with_causes
from ..parity.run_folder import (
    CHECKPOINT,
    CHOICES,
    INPUTS,
    MINDSPORE,
    MINDSPORE_REPLAY,
    MOVED,
    RECIPE,
    START,
    TORCH32,
    TORCH32_AGAIN,
    TORCH32_OTHER,
    TORCH64,
    WEIGHTS,
    matched,
    replayed,
    torch_runs,
)
from ..parity.trace import ALONE, SIDES_STAGE, Device, Elements, Entry, Key, Trace, sha256, write_entries
from ..printable import shortened
from ..reports.progress import progressing
from ..temporary import temporary_folder
from ..training.models.converted_models import torch_spec
from ..training.models.model_names import is_ours, is_zoo
from .parity_step import ParityResult, options_of, print_verdict, write

START_FILES = (INPUTS, WEIGHTS, CHECKPOINT, START, "structure-torch.json", REPLAY)
COARSE = (
    "torch was recorded without MindSpore's choices at ReLUs and max-pools, so gradients are judged at the noise of "
    "torch's own flips, and no module ran alone: record torch again with MindSpore's trace, and the verdict is sharp"
)
CLIPPED = (
    "the optimizer on given gradients is not compared: torch clipped them together with gradients that MindSpore's net "
    "does not have alike, which was not known then; record torch again with MindSpore's trace"
)


_OTHER = {"torch": ("mindspore", "both"), "mindspore": ("torch", "both")}


Explain = Callable[[ParityJob, Report], Report]


def compare_folders(
    one: Path, other: Path | None = None, start: Path | None = None, explain: Explain | None = None
) -> Report:
    """Judge two halves, or a whole run that was kept, from what is in the folders; nothing runs again.

    start: for two halves of MindSpore, torch's half that both started from, by whose noise they are judged. explain:
    looks for causes of what fails between two halves of one framework, for which torch has to run modules again; None:
    no causes are looked for. Raises BadInput for halves that cannot be compared, BadTrace for folders that are damaged
    or do not belong together.
    """
    first = run_folder.read(one)
    if other is None:
        if first.side != "both":
            raise BadInput(f"{one} is {first.side}'s half alone: name the other framework's too")
        return _judged(one, first)
    second = run_folder.read(other)
    if first.side == second.side != "both":
        return _of_one_framework(one, other, start, explain)
    if start is not None:
        raise BadInput("--with is for two halves of MindSpore: torch's half, which both started from")
    if {first.side, second.side} != {"torch", "mindspore"}:
        raise BadInput(f"{one} is a trace of {first.side}, {other} of {second.side}: compare torch's with MindSpore's")
    torch, mindspore = (one, other) if first.side == "torch" else (other, one)
    run_folder.check_together(torch, mindspore)
    of_torch = run_folder.read(torch)
    with temporary_folder("compare") as folder:
        both = {source.name: source for source in torch.iterdir() if source.name.startswith("torch-")}
        both |= {source.name: source for source in mindspore.iterdir() if source.name.startswith("mindspore-")}
        for name in (ALIGNMENT, *(model_structure.file(Path(), side).name for side in model_structure.SIDES), REPLAY):
            present = [place / name for place in (mindspore, torch) if (place / name).exists()]
            both |= dict.fromkeys([name], present[0]) if present else {}
        both[run_folder.RECIPE] = torch / run_folder.RECIPE
        if replayed(TORCH64) not in both or of_torch.alone:  # the replay then took torch's own choices
            both.pop(MINDSPORE_REPLAY, None)
            both.pop(REPLAY, None)
        for name, source in both.items():
            (folder / name).symlink_to(source.resolve())
        return _judged(folder, of_torch)


COARSE_BOTH = (
    "in the step each side made its own choices at ReLUs and max-pools, where rounding decides, so its gradients are "
    "judged at the noise of such flips"
)
NOT_ALONE = "no module is judged alone: in {} none ran alone; record it again, without --no-replay"
OTHER_CALLS = (
    "no module is judged alone: {} and {} ran them on different inputs; record the second --with the first, or both "
    "--with the same half of torch's"
)
BORROWED = "both sides are MindSpore's, which has no float64 here: the noise is that of torch in {}"


OWN = (
    "both sides are MindSpore's, which has no float64 here: the noise is its own in {}, the reference, whose step ran "
    "twice more with every input, weight and Cell's output moved in its last places (Monte Carlo arithmetic)"
)


def _of_one_framework(one: Path, other: Path, start: Path | None, explain: Explain | None) -> Report:
    """Judge a half against another of the same framework, which is the reference: `other` against `one`."""
    first, second = run_folder.read(one), run_folder.read(other)
    torch = first.side == "torch"
    models = [(run.pair or {}).get("torch") for run in (first, second)]
    if not torch and models != [None, None]:
        raise BadInput(f"{one} and {other} are of your own models: two halves of MindSpore have to be of a recipe's")
    if models[0] != models[1]:
        raise BadInput(f"{one} and {other} are of different models: record the second --with {one}")
    if models[0] is not None and first.modules:
        raise BadInput(f"{one} and {other} are of your own model, with --modules: record both without --modules")
    job = replace(first, pair=None)  # in two nets of one framework everything has the same name
    if torch and start is not None:
        raise BadInput(f"{one} and {other} are torch's, and bring their own noise: leave out --with")
    own = not torch and start is None
    if own and not _moved_runs(one):
        turned = f", or name {other} first, which has its own" if _moved_runs(other) else ""
        again = f"msmigrate record {first.recipe} --framework mindspore --with TORCH_TRACE --noise -o NEW_TRACE"
        raise BadInput(
            f"{one} and {other} are MindSpore's, which has no float64, and {one} was recorded without noise: name "
            f"torch's half, --with TRACE{turned}, or record it again: {again}"
        )
    run_folder.check_together(one, other)
    for place in (one, other) if torch else (start,) if start is not None else ():
        half = run_folder.read(place)
        if half.side != "torch" or not half.alone:
            raise BadInput(
                f"{place} is no half of torch's that was recorded by itself: one that took MindSpore's choices at "
                "ReLUs and max-pools, or also has MindSpore's traces, does not have its own noise"
            )
    notes = [COARSE_BOTH]
    with temporary_folder("compare") as folder:
        if torch:
            for source in one.iterdir():
                if source.name.startswith("torch-") and (source / "trace.json").exists():
                    (folder / source.name).symlink_to(source.resolve())
            _joined(other, folder / MINDSPORE)
            notes += _modules_of_torch(one, other, folder)
        elif start is not None:
            run_folder.check_together(start, one)
            for name in (*torch_runs(start), *torch_runs(start, matched)):
                _moved(start, name, Trace(one / MINDSPORE), folder / name)
            notes.append(BORROWED.format(start))
            unlike = _unlike(one, other, MINDSPORE_REPLAY) or _unlike(start, start, replayed(TORCH32))
            for name in () if unlike else torch_runs(start, replayed):
                _moved(start, name, Trace(one / MINDSPORE_REPLAY), folder / name)
            notes += unlike
        else:
            _around(one, folder)
            notes.append(OWN.format(one))
            unlike = _unlike(one, other, MINDSPORE_REPLAY) or _unlike(one, one, replayed(MOVED[0]))
            if not unlike:
                _modules_around(one, folder)
            notes += unlike
        for name in () if torch else (MINDSPORE, GRAPH):
            if (other / name).exists():
                (folder / name).symlink_to((other / name).resolve())
        (folder / RECIPE).symlink_to((one / RECIPE).resolve())
        sides = (_named(one, first.side), _named(other, second.side))
        digests = (first.digest(one), first.checkpoint_digest)
        alone = None
        if not torch and (folder / replayed(TORCH64)).exists():
            alone = _modules_of_mindspore(one, other, folder, sides, first.narrowing)
        judged = report(Path(first.recipe), job.options(folder), digests, sides, replayed=alone)
        if not torch:
            judged = replace(judged, findings=without_flips(judged.findings, _trace(one), _trace(other)))
        if explain is not None and any(module.own for module in judged.modules):
            judged = _with_causes(judged, job.options(folder), models[0], one if torch else start, explain)
        versions = {f"{name} ({side})": v for side, place in (("1", one), ("2", other)) for name, v in _about(place)}
        devices = [Device.of(_trace(place).about, place) for place in (one, other)]
        return replace(judged, notes=[*notes, *judged.notes], versions=versions, devices=devices)


NO_TORCH = "causes are not looked for: they are tried out in torch, which is not installed here"
NO_START = "causes are not looked for: they are tried out in torch from torch's half; name it, --with TRACE"
NOT_BUILT = "causes are not looked for: no code that a recording names is run, and its model is {}"


def _with_causes(judged: Report, job: ParityJob, spec: str | None, start: Path | None, explain: Explain) -> Report:
    """The report with causes: a known fault with which torch's module computes what the module at fault does.

    spec: the model, where it is none of msmigrate's own; start: torch's half, which has the weights.
    """
    model, reason = job.recipe.model, ""
    if not is_ours(model.name) and (not is_zoo(model.name) or spec not in (None, torch_spec(model.name, model.args))):
        reason = NOT_BUILT.format(spec or model.name)
    elif is_ours(model.name) and spec is not None:
        reason = NOT_BUILT.format(spec)
    elif start is None or find_spec("torch") is None:
        reason = NO_START if start is None else NO_TORCH
    if reason or start is None:
        return replace(judged, notes=[*judged.notes, reason])
    name = START if spec is not None else WEIGHTS
    (job.folder / name).symlink_to((start / name).resolve())
    return explain(job, judged)


def _modules_of_torch(one: Path, other: Path, folder: Path) -> list[str]:
    """Put the other half's replay where MindSpore's would be, or return why it is not judged."""
    notes = _unlike(one, other, replayed(TORCH32))
    if not notes:
        run = Trace(other / replayed(TORCH32))
        outcome = replace(Outcome.of(Trace(one / CHOICES)), errors=failed(run), cells={})
        _headed(run, folder / MINDSPORE_REPLAY, outcome.head())
        (folder / REPLAY).symlink_to((one / REPLAY).resolve())
    return notes


def _unlike(one: Path, other: Path, name: str) -> list[str]:
    """Why the replays of two halves are not judged; empty if they are. name: that of the traces.

    Both have to have run on the same inputs, and torch's also with the same choices.
    """
    lacking = next((half for half in (one, other) if not (half / name / "trace.json").exists()), None)
    if lacking is not None:
        return [NOT_ALONE.format(lacking)]
    files = [Path(REPLAY) / RECORDING, *([Path(CHOICES) / "trace.json"] if name == replayed(TORCH32) else [])]
    alike = all((half / file).exists() for half in (one, other) for file in files) and all(
        sha256(one / file) == sha256(other / file) for file in files
    )
    return [] if alike else [OTHER_CALLS.format(one, other)]


def _headed(trace: Trace, into: Path, more: Mapping[str, Any]) -> None:
    """Write the same trace to another folder, with more in its head."""
    into.mkdir()
    for file in trace.folder.glob("*.safetensors"):
        (into / file.name).symlink_to(file.resolve())
    document = {**read_json(trace.folder / "trace.json"), **more}
    (into / "trace.json").write_text(json.dumps(document), encoding="utf-8")


ALONE_TRACES = (TORCH64, TORCH32, TORCH32_OTHER, TORCH32_AGAIN)


def _trace(place: Path) -> Trace:
    """The trace of a half that says what it was recorded with."""
    return Trace(place / (MINDSPORE if (place / MINDSPORE).exists() else TORCH32))


def _about(place: Path) -> list[tuple[str, str]]:
    """The packages that a half was recorded with."""
    versions = _trace(place).about.get("versions")
    return [(str(name), str(version)) for name, version in versions.items()] if isinstance(versions, dict) else []


def _named(place: Path, framework: str) -> str:
    """What a report calls a half: its framework, the version, and the folder."""
    version = dict(_about(place)).get(framework, "")
    name = {"torch": "torch", "mindspore": "MindSpore"}[framework]
    return shortened(f"{name} {version} ({place})", 100)


def _joined(half: Path, into: Path) -> None:
    """Write a torch half's float32 run as one trace: what it did in one pass, and its steps, recorded separately."""
    alone, steps = Trace(half / TORCH32), Trace(half / matched(TORCH32))
    entries = {**alone.entries, **steps.entries}
    head = {**alone.about, **steps.about}
    write_entries(into, head, entries, lambda entry: (steps if entry.key in steps.entries else alone).array(entry.key))


def _moved(start: Path, name: str, reference: Trace, into: Path) -> None:
    """Write a torch trace with its noise around the reference's values: in float64 these values themselves, in float32
    these plus the difference between torch's run and its float64."""
    exact, run = (Trace(start / each) for each in (_float64_of(name), name))
    in_steps = Trace(start / matched(name)).entries if name in ALONE_TRACES else None
    entries: dict[Key, Entry] = {}
    for key, mine in reference.entries.items():
        if key in run.entries:
            dtype = run.entries[key].dtype if mine.dtype.startswith("float") else mine.dtype
            entries[key] = replace(mine, dtype=dtype, order=run.entries[key].order, module=run.entries[key].module)
        elif in_steps is not None and mine.stage != SIDES_STAGE and key not in in_steps:
            entries[key] = mine  # torch has no such tensor, such as MindSpore's own counters

    def elements(entry: Entry) -> np.ndarray:
        values = reference.array(entry.key)
        if not entry.dtype.startswith("float"):
            return values
        moved = values.astype(np.float64)
        rounded = entry.stage != "init" and entry.digest is None  # what is drawn, or equal to the bit, is not
        if rounded and entry.key in run.entries and entry.key in exact.entries:
            noise = run.array(entry.key).astype(np.float64) - exact.array(entry.key)
            moved = moved + noise if noise.shape == moved.shape else moved
        return moved.astype(entry.dtype)

    raised = {FAILED: Outcome.of(reference).errors} if FAILED in run.about else {}
    write_entries(into, {**run.about, ROUNDED: True, **raised}, entries, elements)


def _moved_runs(half: Path, called: Callable[[str], str] = str) -> list[Trace]:
    """The two traces of a MindSpore half whose numbers were moved; empty where one is missing."""
    folders = [half / called(name) for name in MOVED if (half / called(name) / "trace.json").exists()]
    return [Trace(each) for each in folders] if len(folders) == len(MOVED) else []


def _around(half: Path, into: Path) -> None:
    """Write the traces by which a half with its own noise is judged: itself in place of float64, and the runs whose
    numbers were moved in place of torch's float32. What needs no step is in one family, the steps are in the other."""
    reference = Trace(half / MINDSPORE)
    head = {**reference.about, ROUNDED: True, "kinks": {"matched": [], "differing": []}}
    runs = {TORCH64: reference, **dict(zip((TORCH32, TORCH32_OTHER), _moved_runs(half), strict=True))}
    for name, run in runs.items():

        def elements(entry: Entry, run: Trace = run) -> np.ndarray:
            alike = entry.stage in ("data", "init") or not entry.dtype.startswith("float")
            if not alike and entry.key not in run.entries:
                raise BadTrace(f"{run.folder}: has no {entry.stage} ({entry.part}) {entry.label}: record it again")
            return (reference if alike else run).array(entry.key)

        judged = {key: entry for key, entry in reference.entries.items() if entry.stage != SIDES_STAGE}
        steps = {key for key, e in judged.items() if e.stage in ("loss", "gradients", "update") and not e.part.given}
        for called, of_steps in ((name, False), (matched(name), True)):
            family = {key: entry for key, entry in judged.items() if (key in steps) is of_steps}
            write_entries(into / called, head, family, elements)


def _modules_around(half: Path, into: Path) -> None:
    """The same for the modules that ran alone."""
    reference = Trace(half / MINDSPORE_REPLAY)
    raised = {FAILED: Outcome.of(reference).errors}
    for name, of in zip((TORCH64, TORCH32, TORCH32_OTHER), (reference, *_moved_runs(half, replayed)), strict=True):
        entries = {key: e for key, e in reference.entries.items() if e.stage != SIDES_STAGE and key in of.entries}
        write_entries(into / replayed(name), {**reference.about, ROUNDED: True, **raised}, entries, _elements_of(of))


def _elements_of(trace: Trace) -> Elements:
    return lambda entry: trace.array(entry.key)


def _modules_of_mindspore(one: Path, other: Path, folder: Path, sides: Sides, narrowing: Narrowing) -> list[Finding]:
    """Put the other half's replay next to the traces that it is judged by, and judge it.

    Inside a container each side made its own choices at kinks. So a container passes by its parts where everything that
    it calls agrees and so does what it computes itself, and also where its noise is not known.
    """
    (folder / REPLAY).symlink_to((one / REPLAY).resolve())
    replay, place = Trace(other / MINDSPORE_REPLAY), folder / MINDSPORE_REPLAY
    place.symlink_to(replay.folder.resolve())
    traces, recording, outcome = Traces.load(folder, sides), Recording.open(folder / REPLAY), Outcome.of(replay)
    whole: list[Finding] = []  # of containers that ran alone
    parts: list[Finding] = []
    for finding in compare_replayed(traces, narrowing):
        is_whole = finding.part == ALONE and label_of(finding) in recording.made_by
        (whole if is_whole else parts).append(finding)
    needed = suspects(traces, recording, outcome, parts)
    known = {entry.name.rpartition(" ")[0] for entry in traces.replayed[0].select("forward", ALONE)}
    unsure = around(recording, unjudged(recording, outcome))
    outcome.by_parts = [each for each in recording.made_by if each not in needed or each not in known | unsure]
    place.unlink()
    _headed(replay, place, outcome.head())
    judged = [*parts, *(finding for finding in whole if label_of(finding) in needed & known)]
    return alone_without_flips(judged, recording, Trace(one / MINDSPORE_REPLAY), replay)


def _float64_of(name: str) -> str:
    """The float64 trace of the family that a trace is in."""
    families = (str, matched, replayed)
    return next(of(TORCH64) for of in families if name in [of(each) for each in ALONE_TRACES])


def _judged(folder: Path, run: run_folder.RunFile) -> Report:
    options = run.options(folder)
    if options.pair is not None and not (folder / ALIGNMENT).exists():
        raise BadTrace(f"{run.recipe}: the pair's {ALIGNMENT} is not there: MindSpore's half has it")
    judged = report(Path(run.recipe), options, digests=(run.digest(folder), run.checkpoint_digest))
    if not run.alone:
        return judged
    alignment = read_alignment(options)
    notes = [COARSE, *judged.notes]
    findings = judged.findings if alignment.identity else _with_counterparts(judged.findings, alignment)
    if alignment.unlike and options.recipe.clip is not None:
        findings = [f for f in findings if f.stage != "update" or not f.part.startswith("given ")]
        notes.append(CLIPPED)
    return replace(judged, findings=findings, notes=notes)


def _with_counterparts(findings: list[Finding], alignment: Alignment) -> list[Finding]:
    """The findings without the tensors that torch recorded before it was known that they have no counterpart."""
    scope = alignment.scope
    kept = []
    for finding in findings:
        name, _, call = finding.name.partition("#")
        if finding.stage == "forward" and finding.part in ("eval", "train"):
            there = alignment.compared(name, int(call) if call.isdecimal() else 0)
        elif finding.stage in ("init", "gradients", "update") and finding.part != "images":
            there = (
                name in alignment.torch_names
                or name in alignment.lacks
                or finding.part == "loss scale"
                or finding.part.endswith(" loss")
            )
            if finding.part.startswith("learning rate"):
                there = there and scope.rates
            if finding.stage == "update" and name in alignment.left_alone:
                there = False  # to torch it was a weight, though neither side moves it
        else:
            there = (finding.part != "images" or scope.image_gradient) and (
                finding.part != "given logits" or scope.given_logits
            )
        if there:
            kept.append(finding)
    return kept


def compare(
    one: str | Path, other: str | Path | None = None, *, start: str | Path | None = None, **options: Any
) -> ParityResult:
    """Judge two recorded sides, or a run that was kept, from what is in their folders; nothing runs again.

    one: a folder that `record` made, or that `parity_step(keep=…)` kept; the reference, if both are of one framework.
    other: the other side; None for a run that was kept.
    start: for two sides of MindSpore, torch's side that both started from: their noise is torch's.
    options: html, json_file, junit, markdown, worst and no_diagnosis, as in parity_step.

    Raises BadInput for sides that cannot be compared, and BadTrace for folders that are damaged or do not belong
    together.
    """
    chosen = options_of(options, "compare")
    return _compared(as_path(one, "one"), as_path(other, "other"), as_path(start, "start"), chosen)


def _explained(job: ParityJob, judged: Report) -> Report:
    with progressing(("torch",), "looking for causes") as on_message:
        return with_causes(job, judged, on_message)


def _compared(one: Path, other: Path | None, start: Path | None, options: ParityOptions) -> ParityResult:
    for file in options.files:
        refuse_unwritable(file)
    report = compare_folders(one, other, start, None if options.no_diagnosis else _explained)
    write(report, options, one if other is None else None, one / RECIPE)
    return ParityResult(report, options.worst)


def run_compare(one: Path, other: Path | None, start: Path | None, options: ParityOptions) -> int:
    """Judge two halves, or a run that was kept, and print the verdict; returns 0 for parity and 1 for a mismatch."""
    result = _compared(one, other, start, options)
    print_verdict(result, options)
    return 0 if result else 1
