"""An export from beginning to end: which net it is of, and whether the file computes what that does; AIR's commands.

The net's weights for MindSpore, how images are prepared for it and the torch model it is of are chosen first, as serve
settles them too.

Judged as parity-step judges (tensor_verdict.py). With the torch model at hand, its float64 run is the reference and its
float32 runs are the noise, for the net and for the file. The file is also compared with the net itself, where the same
noise counts; without a torch model the noise is what the net's outputs move when its weights and inputs are off by
float32's own rounding. Where the net gives the same for every example, as one whose last layer is all zeros does, there
is nothing to compare, and no verdict.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import Ambiguous, BadInput, MsmigrateError, Unsupported
from ..migrate import model_spec
from ..migrate.checkpoint.convert import convert
from ..parity.tensor_verdict import Measure, Verdict, judge
from ..training import inference
from ..training.inference import Subject, image_files
from ..training.models import model_names
from ..training.models.converted_models import torch_spec
from ..training.options import ExportOptions, NetChoice
from ..training.recipe import reader as recipes
from ..training.recipe.schema import Model
from ..workers.messages import OnMessage, ignore
from ..workers.parent import call
from .job import EXPORTED, FACTS, INPUTS, MINDIR, MORE, REQUEST, TORCH32, TORCH32_OTHER, TORCH64, Job, load, shape_of
from .output_files import stem_for

NET, FILE, TORCH = "MindSpore", "the file", "torch"
SAYS_NOTHING = (
    "the net gives the same output for every input, so there is nothing to compare (is a layer all zeros, as a new "
    "transformer's head is? use a trained checkpoint or other --images)"
)
MOST_IMAGES = 32


# Which net it is


class Net(NamedTuple):
    """The job of the MindSpore process, and the torch model it is compared with.

    torch: its name, None where there is none or torch is not installed. state: its weights. notes: what a reader of the
    verdict has to know.
    """

    job: Job
    subject: Subject
    torch: str | None
    state: Path | None
    notes: list[str]


def choose_net(options: ExportOptions, folder: Path) -> Net:
    """Decide what is exported; a torch checkpoint is converted into `folder`, and so are weights for the torch model.

    Raises what reading the checkpoint and the recipe raises, and BadInput for options that do not fit together.
    """
    notes: list[str] = []
    if options.torch is not None:
        model_spec.parse(options.torch)
    subject = subject_of(options, folder)
    if subject.assumed and options.form == "serving":
        raise BadInput("--format serving prepares images as a recipe says: give --recipe FILE in place of --model")
    if subject.assumed and options.images is not None:
        notes.append("images were prepared as for torchvision's classifiers; if that is wrong, give --recipe FILE")
    if subject.foreign is not None and options.torch is None:
        notes.append(
            f"nothing was compared with torch: the checkpoint says that its model has {subject.foreign}; "
            "give --torch SPEC"
        )
    if options.torch is not None and subject.net is None:
        raise BadInput("--torch names the torch model of a Cell of your own; that of a recipe's model is known")
    torch = options.torch if subject.net is not None else _spec(subject.recipe.model)
    if torch is not None and find_spec("torch") is None:
        notes.append("torch is not installed, so nothing was compared with it")
        torch = None
    state = _state(options, subject, torch, folder, notes) if torch is not None else None
    images = image_files([options.images])[:MOST_IMAGES] if options.images is not None else []
    if len(images) == MOST_IMAGES:
        notes.append(f"of the images, the first {MOST_IMAGES} were run")
    made = {"form": options.net_form, "batch": options.batch, "dynamic": options.dynamic, "stem": stem_for(options.out)}
    job = job_of(options, subject, images).model_copy(update={**made, "noise": state is None})
    return Net(job, subject, torch if state is not None else None, state, notes)


def subject_of(options: NetChoice, folder: Path) -> Subject:
    """What the checkpoint is, and how images are prepared for it."""
    shapes = [shape_of(text)[0] for text in options.shapes]
    side = (shapes[0][-1] if len(shapes[0]) == 4 else inference.SIDE) if shapes else None
    hint = "add --input SHAPE, or --recipe FILE"
    return inference.subject(options, folder, torch_model=options.torch, side=side, hint=hint)


def job_of(options: NetChoice, subject: Subject, images: Sequence[str] = ()) -> Job:
    """What the MindSpore process has to load and to run. images: those that it runs on; if empty, drawn numbers."""
    request = subject.request(images=list(images) or None, mode=inference.own_mode(subject.recipe), target="CPU")
    encryption: Any = {"key_file": options.key_file, "enc_mode": options.encryption}
    return Job(request=request, shapes=list(options.shapes), **encryption)


def _spec(model: Model) -> str:
    """The torch model for a recipe's model."""
    return torch_spec(f"msmigrate:{model.name}" if model_names.is_ours(model.name) else model.name, model.args)


def _state(options: ExportOptions, subject: Subject, torch: str, folder: Path, notes: list[str]) -> Path | None:
    """The weights as a state dict for the torch model: the user's own file, rewritten so that nothing in it can run,
    or the MindSpore checkpoint converted back."""
    if options.ema:
        notes.append("nothing was compared with torch: the moving average is the MindSpore run's own")
        return None
    state = folder / "torch.pth"
    source = options.checkpoint if subject.torch else subject.weights
    model = None if torch.startswith("msmigrate:") else torch
    try:
        try:
            convert(source, state, to="torch")
        except Ambiguous:
            convert(source, state, to="torch", model=model)
    except MsmigrateError as error:
        state.unlink(missing_ok=True)
        if options.torch is not None:
            raise
        notes.append(f"nothing was compared with torch: {error}")
        return None
    return state


# Whether the file computes what the net does


@dataclass(frozen=True)
class Comparison:
    """One output of `subject` compared with that of `against`; batch: examples at a time in the file, 0 for the net."""

    subject: str
    against: str
    output: int
    batch: int
    shape: tuple[int, ...]
    measure: Measure

    @property
    def passed(self) -> bool:
        """Whether it is the same but for rounding; where torch itself is too noisy, that is not known."""
        return self.measure.verdict is Verdict.PASS


def compare(folder: Path, sizes: Sequence[int], *, torch: bool) -> list[Comparison]:
    """Every comparison of an export; the file's outputs are in the folder for each size of batches."""
    net = load(folder / "net.npz")
    comparisons = []
    if torch:
        exact, *runs = (load(folder / name) for name in (TORCH64, TORCH32, TORCH32_OTHER))
        noise = [[run - each for run, each in zip(one, exact, strict=True)] for one in runs]
        comparisons += _against(NET, TORCH, 0, net, exact, runs)
    else:
        moved = [load(folder / f"moved{i}.npz") for i in range(2)]
        noise = [[run.astype(np.float64) - each for run, each in zip(one, net, strict=True)] for one in moved]
    near = [[each + by for each, by in zip(net, one, strict=True)] for one in noise] if _fits(net, noise) else [net]
    for size in sizes:
        outputs = load(folder / EXPORTED.format(size))
        comparisons += _against(FILE, NET, size, outputs, net, near)
        if torch:
            comparisons += _against(FILE, TORCH, size, outputs, exact, runs)
    if _says_nothing(load(folder / INPUTS), net):
        comparisons = [_without_verdict(one) if one.passed else one for one in comparisons]
    return comparisons


def _says_nothing(inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> bool:
    """Whether every output is the same for all examples, though their inputs differ; for equal ones, all one number."""
    differ = any(bool((array != array[:1]).any()) for array in inputs)
    if differ:
        return all(array.ndim and len(array) == len(inputs[0]) and not (array != array[:1]).any() for array in outputs)
    return all(array.size > 1 and not (array != array.flat[0]).any() for array in outputs)


def _without_verdict(one: Comparison) -> Comparison:
    return replace(one, measure=replace(one.measure, verdict=Verdict.NONE, why=SAYS_NOTHING))


def _fits(net: Sequence[np.ndarray], noise: Sequence[Sequence[np.ndarray]]) -> bool:
    """Whether torch's outputs have the number and shapes of the net's; if not, the comparison with torch says so."""
    return all([a.shape for a in one] == [b.shape for b in net] for one in noise)


def _against(
    subject: str,
    against: str,
    batch: int,
    outputs: Sequence[np.ndarray],
    reference: Sequence[np.ndarray],
    runs: Sequence[Sequence[np.ndarray]],
) -> list[Comparison]:
    found = []
    for index in range(max(len(outputs), len(reference))):
        have = [list(arrays[index].shape) if index < len(arrays) else None for arrays in (outputs, reference)]
        if have[0] != have[1]:
            words = [f"shape {shape}" if shape is not None else "no such output" for shape in have]
            why = f"{subject} has {words[0]} and {against} {words[1]}"
            measure = Measure(Verdict.FAIL, np.inf, 0.0, 0.0, 0.0, 0.0, why)
        else:
            noisy = [run[index].reshape(-1).astype(np.float64) for run in runs]
            flat = (array[index].reshape(-1).astype(np.float64) for array in (reference, outputs))
            exact, got = flat
            measure = judge(exact, noisy, got)
        found.append(Comparison(subject, against, index, batch, tuple(have[0] or ()), measure))
    return found


# What has to be run on Ascend

PYTHON = (
    "import mindspore as ms; ms.set_device('Ascend'); {make}; net.set_train(False); "
    "ms.load_param_into_net(net, ms.load_checkpoint('{weights}'), strict_load=True); "
    "ms.export(net, *[ms.ops.zeros(shape) for shape in {shapes}], file_name='{out}', file_format='AIR')"
)


def only_on_ascend(options: ExportOptions) -> Unsupported:
    """The error, with the commands for the Ascend machine. Raises BadInput and BadRecipe where no model is named."""
    steps = []
    weights = str(options.checkpoint)
    if options.checkpoint.suffix != ".ckpt":
        weights = f"{options.checkpoint.stem}.ckpt"
        steps.append(shlex.join(["msmigrate", "convert-ckpt", str(options.checkpoint), weights]))
    name, args = _model(options)
    if model_names.is_zoo(name):
        own = name.partition(":")[2]
        spec = torch_spec(name, args)
        steps.append(shlex.join(["msmigrate", "convert-model", spec, "-o", f"{own}_ms.py", "--no-proof"]))
        make = f"from {own}_ms import {own} as make; net = make()"
    elif ":" in name:
        place, _, function = name.rpartition(":")
        make = f"from {Path(place).stem if place.endswith('.py') else place} import {function} as make; net = make()"
    else:
        inner = "".join(f", {key}={value!r}" for key, value in args.items())
        make = f"from msmigrate.training.models.mindspore_models import build; net = build({name!r}{inner})"
    shapes = [_with_batch(text, options.batch) for text in options.shapes] or [(options.batch or 1, 3, 224, 224)]
    code = PYTHON.format(make=make, weights=weights, shapes=shapes, out=options.out)
    steps.append(shlex.join(["python", "-c", code]))
    return Unsupported(
        "MindSpore exports AIR with an Ascend backend only, and nothing else runs it, so it cannot be verified here. "
        f"On the Ascend machine: {' && '.join(steps)}   (MindSpore deprecates AIR: --format lite is verified, and "
        "converter_lite --optimize=ascend_oriented makes an offline model of it there)"
    )


def _model(options: ExportOptions) -> tuple[str, dict[str, object]]:
    if options.recipe is not None:
        model = recipes.load(recipes.find(options.recipe)).model
        return model.name, model.args
    if options.model is None:
        return "resnet50", {}
    plain = options.model.partition("(")[0]
    spec = model_spec.parse(options.model if ":" in plain else f"msmigrate:{options.model}")
    return (spec.name if spec.place == "msmigrate" else f"{spec.place}:{spec.name}"), spec.kwargs


def _with_batch(text: str, batch: int | None) -> tuple[int, ...]:
    shape, _ = shape_of(text)
    return (batch or shape[0], *shape[1:])


# An export from beginning to end

Worker = Callable[[str], Sequence[str]]


def module(name: str) -> Sequence[str]:
    """The command that runs a worker of this package."""
    return (sys.executable, "-m", f"msmigrate.deploy.{name}")


@dataclass(frozen=True)
class Exported:
    """A file that was exported and run, and all comparisons; it is in the temporary folder of the export.

    facts: what the workers noted, such as inputs, versions and what was rewritten. sizes: of the batches it ran on.
    """

    file: Path
    net: Net
    facts: dict[str, Any]
    sizes: list[int]
    comparisons: list[Comparison]

    @property
    def sound(self) -> bool:
        """Whether everything agrees."""
        return all(one.passed for one in self.comparisons)


def export(options: ExportOptions, folder: Path, on_message: OnMessage = ignore, worker: Worker = module) -> Exported:
    """Export a checkpoint into the caller's folder, and run what was written: that a file is there proves nothing.

    Raises what `choose_net` raises, Unsupported for what cannot be exported or does not run, and WorkerFailed.
    """
    net = choose_net(options, folder)
    net.job.write(folder / REQUEST)
    place = str(folder)
    call("the MindSpore process", [*worker("mindspore_export_worker"), place], folder / "export.log", on_message)
    facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
    batch = int(facts["batch"])
    sizes = [batch, batch + MORE] if options.dynamic else [batch]
    if net.torch is not None:
        words = [*worker("torch_reference_worker"), place, net.torch, str(batch)]
        call("the torch process", words, folder / "torch.log", on_message)
    shown = [str(size) for size in sizes]
    if net.job.form == MINDIR:  # in a process that has never seen the net
        words = [*worker("mindspore_export_worker"), place, *shown]
        call("the MindSpore process", words, folder / "check.log", on_message)
    else:
        words = [*worker("onnx_check_worker"), place, str(int(options.dynamic)), *shown]
        call("the onnxruntime process", words, folder / "check.log", on_message)
        facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
    return Exported(folder / facts["file"], net, facts, sizes, compare(folder, sizes, torch=net.torch is not None))
