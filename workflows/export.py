"""export and serve from start to end: a file exported, compared, and put in its place; a server started and stopped."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from ..deploy import export as exporting
from ..deploy import lite
from ..deploy.export import Comparison, Exported, Worker, job_of, module, subject_of
from ..deploy.export import export as run_export
from ..deploy.job import FILE, ONNX, Job, ServeJob, read_key, shape_of
from ..deploy.output_files import beside, check, place, refuse_code, total
from ..deploy.serving import servable
from ..errors import BadInput, WorkerFailed
from ..input_files import open_regular, unreadable
from ..option_fields import STDOUT, as_path, values_of, with_model
from ..parity.tensor_verdict import Unjudged, Verdict
from ..printable import echo
from ..processes import ENDING, interrupt, signals_to
from ..reports.progress import images_counted
from ..temporary import temporary_folder
from ..training.inference import Request, class_file, own_mode, preparation
from ..training.options import FORMS, ExportOptions, ServeOptions
from ..training.recipe import reader as recipes
from ..training.recipe.schema import Data, Model, Optimizer, Recipe
from ..workers.messages import Event, Message
from ..workers.parent import call
from .results import Result, only_json

MISMATCH = 1
MOST = 5  # replaced layers that are named
AddLine = Callable[[str], None]


@dataclass(frozen=True, repr=False)
class ExportResult(Result):
    """An exported file, or why there is none; true where it runs and computes what the checkpoint's net computes."""

    exported: Exported | None  # None for an ONNX file that was there before
    more: dict[str, Any]
    lines: list[str]

    @property
    def ok(self) -> bool:
        """Whether the file was written."""
        return self.exported is None or self.exported.sound

    def text(self) -> str:
        """How the file was compared, and where it is."""
        return "\n".join(self.lines)

    def as_dict(self) -> dict[str, Any]:
        """The comparison and the files, as `export --json` prints them."""
        return {**(compared_json(self.exported) if self.exported is not None else {}), **self.more}


def export(checkpoint: str | Path, out: str | Path, form: str = FORMS[0], **options: Any) -> ExportResult:
    """Export a checkpoint's net to a file that runs elsewhere, and compare what that file computes; `export`.

    checkpoint: of `train`, of MindSpore or of torch; or an ONNX file, for form "lite".
    out: the new file, or the folder of a servable.
    form: "mindir", "onnx", "air", "lite" or "serving".
    options: those of the command, with underscores: model, recipe, shapes, batch, dynamic, force and so on.

    Raises BadInput, BadDestination, BadCheckpoint, Unsupported and WorkerFailed, and leaves nothing then. A file that
    does not compute the same is not written, and the result is false.
    """
    values = values_of(ExportOptions, options, "export", ("checkpoint", "out", "form", "json_file"))
    values |= {"checkpoint": as_path(checkpoint, "checkpoint"), "out": as_path(out, "out"), "form": form}
    return _exported(ExportOptions(**with_model(values)))


def run(checkpoint: Path, out: Path, form: str = FORMS[0], worker: Worker = module, **options: Any) -> int:
    """Export a checkpoint; returns the exit code, 0 where the file runs and computes the same, 1 where it does not.

    options: those of ExportOptions. The file appears only if the exit code is 0. Raises BadInput, BadDestination,
    Unsupported and others, in which case nothing is left.
    """
    chosen = ExportOptions(checkpoint=checkpoint, out=out, form=form, **options)
    result = _exported(chosen, worker, (lambda text: None) if chosen.json_file == STDOUT else click.echo)
    only_json(result.as_dict, chosen.json_file)
    return 0 if result else MISMATCH


def _exported(options: ExportOptions, worker: Worker = module, say: AddLine = lambda text: None) -> ExportResult:
    """The export that the options describe. say: called with each line of the result when it is known."""
    lines: list[str] = []

    def add_line(text: str) -> None:
        lines.append(text)
        say(text)

    if options.key_file is not None:
        read_key(options.key_file, options.encryption)
    checkpoint, out, form = options.checkpoint, options.out, options.form
    if form == "air":
        raise exporting.only_on_ascend(options)
    force, classes, net_form = options.force, options.classes, options.net_form
    with temporary_folder("export") as folder:
        if form == "lite":
            is_onnx = lite.lite_source(checkpoint)
            files = lite.targets(out, ONNX if is_onnx else net_form, checkpoint, force=force)
            if is_onnx:
                lite.check_onnx(checkpoint, folder, worker)
                return ExportResult(None, lite.write(checkpoint, ONNX, files, folder, add_line, force=force), lines)
        elif form == "serving":
            target = servable.check(out, force=force)
        else:
            target = _target(out, form, checkpoint, force)
        with images_counted() as on_message:
            exported = run_export(options, folder, on_message, worker)
        for line in compared_lines(exported, shown=str(checkpoint)):
            add_line(line)
        if not exported.sound:
            add_line(f"{out} was not written.{_advice(exported)}")
            return ExportResult(exported, {"files": []}, lines)
        if form == "lite":
            more = lite.write(exported.file, net_form, files, folder, add_line, force=force)
        elif form == "serving":
            more = servable.place_servable(exported, target, classes, folder, add_line, worker, force=force)
        else:
            place(exported.file, target, force=force)
            add_line(f"Written to {out} ({total(exported.file) / 1e6:.1f} MB){_together(exported.file, target)}.")
            more = {"files": [str(out), *([str(beside(target))] if beside(exported.file).exists() else [])]}
        return ExportResult(exported, more, lines)


def _target(out: Path, form: str, checkpoint: Path, force: bool) -> Path:
    suffix = f".{form}"
    if out.suffix != suffix:
        raise BadInput(f"-o {out}: a file of --format {form} ends in {suffix}")
    return check(out, checkpoint, force=force)


def _together(file: Path, target: Path) -> str:
    """A hint for a large net, whose numbers are in a second file; empty for any other."""
    return f", its numbers in {beside(target).name} beside it: keep the two together" if beside(file).exists() else ""


# What serve does around the server: what is served, where it listens, and the stop

STOPPED = 30.0  # seconds within which the server has stopped after a signal, or is killed
VERSION_FIRST = b"\n"  # a MindIR is a message of protobuf, whose first field is the text of its version
ANY_NET = Recipe(model=Model(name="a MindIR"), data=Data(), optimizer=Optimizer(name="SGD", args={"lr": 0.1}))


def serve(model_file: Path, worker: Worker = module, **options: Any) -> int:
    """Serve a model until SIGINT, SIGTERM or SIGHUP; returns the exit code.

    options: those of ServeOptions. Raises BadInput, BadCheckpoint and others before anything listens, and what the
    server raises.
    """
    chosen = ServeOptions(checkpoint=model_file, **options)
    name = chosen.name or re.sub(r"\W", "_", model_file.stem) or "model"
    if not name.isidentifier():
        raise BadInput(f"--name {name}: requests name a model with letters, digits and _: give it another --name")
    for text in chosen.shapes:
        shape_of(text)
    names = None if chosen.classes is None else class_file(chosen.classes)
    if chosen.key_file is not None:
        read_key(chosen.key_file, chosen.encryption)
    with temporary_folder("serve") as folder:
        job, known, images = _served_job(chosen, folder)
        served = ServeJob(
            name=name,
            job=job,
            mindir=model_file if _is_mindir(model_file) else None,
            images=images,
            classes=names or known,
            host=chosen.host,
            port=chosen.port,
            batch=chosen.batch,
            wait=chosen.wait,
            most_bytes=int(chosen.max_request * 1e6),
            most_waiting=chosen.max_waiting,
        )
        served.write(folder / FILE)
        _follow([*worker("serving.mindspore_server_worker"), str(folder)], folder / "server.log", name, chosen.host)
    return 0


def _is_mindir(file: Path) -> bool:
    return file.suffix.lower() == ".mindir"


def _served_job(options: ServeOptions, folder: Path) -> tuple[Job, list[str] | None, bool]:
    """The net's job, the names of its classes if the checkpoint knows them, and whether images can be prepared."""
    if not _is_mindir(options.checkpoint):
        if options.key_file is not None:
            raise BadInput("--key-file is for an encrypted MindIR")
        subject = subject_of(options, folder)
        return job_of(options, subject), list(subject.classes) if subject.classes else None, True
    if options.model is not None or options.ema or options.trust_source is not None:
        raise BadInput(
            "a MindIR holds its model: leave --model, --trust-source and --ema out; --recipe says how images are "
            "prepared"
        )
    if (why := unreadable(options.checkpoint)) is not None:
        raise BadInput(why)
    if options.key_file is None:
        with open_regular(options.checkpoint) as file:
            if file.read(1) != VERSION_FIRST:
                raise BadInput(f"{options.checkpoint} is no MindIR, or an encrypted one that needs --key-file")
        refuse_code(options.checkpoint)
    recipe = ANY_NET if options.recipe is None else recipes.load(recipes.find(options.recipe))
    preparation(recipe)  # or refuse it now
    request = Request(
        recipe=recipe, weights=options.checkpoint, shown=str(options.checkpoint), mode=own_mode(recipe), target="CPU"
    )
    key: Any = {"key_file": options.key_file, "enc_mode": options.encryption}
    return Job(request=request, shapes=list(options.shapes), **key), None, options.recipe is not None


def _follow(command: list[str], log: Path, name: str, host: str) -> None:
    """Run the server, say where it listens, and hand on the signals that stop it; one that does not stop is killed.

    Raises WorkerFailed then, and KeyboardInterrupt for a signal that comes before it listens.
    """
    server: list[int] = []
    listening: list[int] = []
    killed: list[int] = []

    def on_message(worker: str, message: Message) -> None:
        if not isinstance(message, Event):
            return
        facts = message.facts
        if message.name == "started":
            server.append(facts["pid"])
        elif message.name == "listening":
            listening.extend(server)
            address = f"http://{f'[{host}]' if ':' in host else host}:{facts['port']}"
            for method in facts["methods"]:
                echo(f"POST {address}/model/{name}:{method}")
            echo(f"GET  {address}/health   (Ctrl-C stops it when its requests are answered)")
        elif message.name == "stopped":
            echo(f"Stopped after {facts['instances']} instances in {facts['batches']} batches.")

    def kill() -> None:
        killed.append(listening[0])
        with suppress(ProcessLookupError):
            os.kill(listening[0], signal.SIGKILL)

    patience = threading.Timer(STOPPED, kill)

    def stop(number: int) -> None:
        if not listening:
            interrupt(number)
        if patience.ident is None:
            patience.start()
        with suppress(ProcessLookupError):
            os.kill(listening[0], signal.SIGTERM)

    try:
        with signals_to(stop, (signal.SIGINT, *ENDING)):
            call("the MindSpore process", command, log, on_message)
    except WorkerFailed:
        if not killed:
            raise
        raise WorkerFailed(f"the server did not stop within {STOPPED:g} s of the signal and was killed") from None
    finally:
        patience.cancel()


# What the command says of it


def _advice(exported: Exported) -> str:
    """What to do where an output has no verdict because torch's own runs differ much."""
    if not any(one.measure.unjudged is Unjudged.NOISE for one in exported.comparisons):
        return ""
    return (
        " An output whose own runs differ so much is mostly drawn: export a net that returns what it does not draw, "
        "such as the mean."
    )


def compared_lines(exported: Exported, shown: str) -> Iterator[str]:
    """What was exported, on what it ran, and each comparison."""
    facts = exported.facts
    versions = ", ".join(f"{name} {version}" for name, version in sorted(facts["versions"].items()))
    yield f"{shown} as {exported.net.job.form}, in evaluation mode; {versions}"
    batches = " and ".join(map(str, exported.sizes))
    yield f"run on {facts['inputs']}, in batches of {batches}"
    replaced = facts["rewritten"]
    if replaced:
        more = f" and {len(replaced) - MOST} more" if len(replaced) > MOST else ""
        yield f"written in an equivalent form: {', '.join(replaced[:MOST])}{more}"
    for one in exported.comparisons:
        yield _line(one, exported)
    for note in exported.net.notes:
        yield f"Note: {note}."
    if exported.net.torch is None:
        yield "Note: not compared with torch; the noise is the net's own, with its weights off by float32's rounding."


def _line(one: Comparison, exported: Exported) -> str:
    subject = exported.file.suffix.removeprefix(".") if one.subject == exporting.FILE else one.subject
    subject = {"mindir": "MindIR", "onnx": "ONNX"}.get(subject, subject)
    batch = f", batches of {one.batch}" if one.batch and len(exported.sizes) > 1 else ""
    output = f", output {one.output}" if any(other.output for other in exported.comparisons) else ""
    if one.measure.verdict is Verdict.PASS:
        return f"  {subject} = {one.against}{batch}{output}: {_how(one)}"
    word = "differs from" if one.measure.verdict is Verdict.FAIL else "has no verdict against"
    return f"  {subject} {word} {one.against}{batch}{output}: {one.measure.why}"


def _how(one: Comparison) -> str:
    if one.measure.error == 0.0:
        return "equal to the bit"
    return f"off by {one.measure.relative:.1e} of its size, {one.measure.ratio:.2f} of the noise (up to 4 passes)"


def compared_json(exported: Exported) -> dict[str, Any]:
    """What was exported and every comparison, as plain values."""
    facts = exported.facts
    return {
        "checkpoint": exported.net.job.request.shown,
        "model": exported.net.subject.recipe.model.name,
        "torch": exported.net.torch,
        "format": exported.net.job.form,
        "same": exported.sound,
        "batches": exported.sizes,
        "dynamic": exported.net.job.dynamic,
        "inputs": facts["inputs"],
        "shapes": facts["shapes"],
        "rewritten": facts["rewritten"],
        "versions": facts["versions"],
        "notes": exported.net.notes,
        "comparisons": [
            {
                "subject": one.subject,
                "against": one.against,
                "output": one.output,
                "batch": one.batch,
                "shape": list(one.shape),
                "verdict": one.measure.verdict.value,
                "ratio": _number(one.measure.ratio),
                "error": _number(one.measure.relative),
                "why": one.measure.why,
            }
            for one in exported.comparisons
        ],
    }


def _number(value: float) -> float | None:
    return value if value < float("inf") else None
