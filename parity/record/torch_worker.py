"""The worker: records every torch trace of a run; brings fresh weights into the state of trained ones.

python -m msmigrate.parity.record.torch_worker JOB.json
"""

from __future__ import annotations

import gc
import re
from collections import OrderedDict
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from ...errors import BadCheckpoint, MsmigrateError
from ...input_files import read_json
from ...migrate.checkpoint.formats.registry import check_before_torch
from ...migrate.model_spec import place_in_model
from ...migrate.torch_models import checkpointed
from ...printable import few
from ...training.checkpoints import new_head
from ...training.data.random_draws import Key, Mix
from ...training.data.sample import Sample
from ...training.models import torch_models
from ...training.recipe.schema import Recipe
from ...training.step.parameter_groups import is_norm, picked
from ...workers.messages import State
from ...workers.worker import progress, ready, run, wait_for
from .. import compared_draws, containers_alone
from ..align import model_structure
from ..align.alignment import Lack, read_alignment
from ..align.torch_user_model import begin, build, load_start, replay_loss, tensors, write_start
from ..align.user_model import Paired, put_back
from ..job import ParityJob, as_arrays, recipe_of
from ..noise import measuring_step
from ..replay.module_calls import BOTH_WAYS, FORWARD, NOT_ASKED, Outcome, Recording
from ..replay.module_calls import FILE as RECORDING
from ..replay.module_calls import FOLDER as REPLAY
from ..replay.torch_recording import record_step
from ..replay.torch_replay import Ahead, Alone, replay
from ..run_folder import (
    CHOICES,
    EVERY_STEP,
    FINE_TUNED,
    IMPORT,
    LAST_REPLAY,
    LAST_TRACE,
    MINDSPORE,
    MINDSPORE_REPLAY,
    SCOPE,
    START,
    TORCH32,
    TORCH64,
    UNDEFINED,
    WEIGHTS,
    matched,
)
from ..trace import REDUCED_GRADIENTS, SIDES_STAGE, Part, Trace, TraceWriter
from . import batches
from .batches import Batch, Images, Inputs, read_inputs, targets, write_inputs
from .randomness import Draws, unseeded
from .recorder import (
    StepStarts,
    add_initial_values,
    add_output,
    record_data,
    record_evaluation,
    record_given,
    record_parts,
    record_probes,
    record_reduced,
    record_start,
    record_steps,
)
from .torch_device import described, device, release_memory
from .torch_kinks import KinkSides, OwnSides
from .torch_precision import Precision, precisions, shortening, try_layouts
from .torch_randomness import fixed
from .torch_runner import TorchSide, continued_from


def load_checkpoint(model: nn.Module, path: Path, patterns: Sequence[str] = ()) -> list[str]:
    """Load a state dict, also under state_dict/model and with DDP's prefix; no code in the file is executed.

    patterns: a recipe's model.fresh: the tensors that are not taken from the file. Returns the names of the tensors
    that keep the model's own values for this reason. Raises BadCheckpoint for a file that cannot be read, is damaged or
    hostile, or is of another model, and BadRecipe for a pattern that matches nothing.
    """
    check_before_torch(str(path))
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
        for key in ("state_dict", "model"):
            found = found.get(key, found)
        state = OrderedDict((name.removeprefix("module."), tensor) for name, tensor in found.items())
        versions = getattr(found, "_metadata", None) or getattr(model.state_dict(), "_metadata", {})
        versions = {re.sub(r"^module(\.|$)", "", name): each for name, each in versions.items()}
        own = model.state_dict()
        fresh = picked(patterns, {**own, **state}, "model.fresh", "tensor")
        given = OrderedDict((name, tensor) for name, tensor in state.items() if name not in fresh)
        given.update(_counters(model, given))
        given.update(_tied(model, given))
        held = {name: tensor for name, tensor in own.items() if name not in fresh}
        state = given | {name: own[name] for name in fresh if name in own}
        vars(state)["_metadata"] = versions  # some models, such as MNASNet, check which version was saved
        try:
            model.load_state_dict(state)
        except RuntimeError as error:
            raise _unlike(path, given, held) or error from None
    except MsmigrateError:
        raise
    except Exception as error:
        said = " ".join(str(error).split())[:400]
        raise BadCheckpoint(f"{path}: does not load into the model: {said}") from error
    return [name for name in fresh if name in own]


def _unlike(path: Path, given: Mapping[str, torch.Tensor], own: Mapping[str, torch.Tensor]) -> BadCheckpoint | None:
    """How the tensors of a file are not those of the model, in one line; None where names and shapes are the same."""
    stored, wanted = ({name: tuple(t.shape) for name, t in held.items()} for held in (given, own))
    head = new_head(stored, wanted)
    other = [name for name in wanted if stored.get(name, wanted[name]) != wanted[name]]
    lacking, extra = [n for n in wanted if n not in stored], [n for n in stored if n not in wanted]
    said = []
    if other:
        shapes = f"{list(stored[other[0]])} in the file and {list(wanted[other[0]])} in the model"
        said.append(f"{few(other, 1)} {'is' if len(other) == 1 else 'have another shape, the first'} {shapes}")
    said += [f"it lacks {few(lacking)}"] if lacking else []
    said += [f"the model has no {few(extra)}"] if extra else []
    return BadCheckpoint(f"{path} does not fit the model: {'; '.join(said)}{head}") if said else None


def _counters(model: nn.Module, state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The norms' counters of batches that a file lacks, as the model has them.

    MindSpore holds none, so a checkpoint of `msmigrate train` comes back without them, and so did torch's before 0.4.1.
    Only a norm with momentum None, whose average is cumulative, computes with its counter: that one stays missing.
    """
    found = {}
    for path, module in model.named_modules():
        counter = getattr(module, "num_batches_tracked", None)
        name = f"{path}.num_batches_tracked".lstrip(".")
        if isinstance(counter, torch.Tensor) and name not in state and module.momentum is not None:
            found[name] = counter
    return found


def _tied(model: nn.Module, state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Tensors that the model has under two names and the file under one of them, as a checkpoint of MindSpore's has."""
    named = [*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False)]
    stored = {id(tensor): state[name] for name, tensor in named if name in state}
    return {name: stored[id(tensor)] for name, tensor in named if name not in state and id(tensor) in stored}


LAST_NORM = {"BasicBlock": "bn2", "Bottleneck": "bn3"}  # the norm that ends a residual branch, by the block's class


def main(options: ParityJob) -> None:
    """Record what needs no other trace; then, once MindSpore's trace is there, the steps themselves."""
    device(options.torch_device)  # before minutes of work, not after
    gc.freeze()  # else release_memory() goes through all imported objects: a third of a second, seven times
    _share_cores(options)
    model, inputs, paired = record_start_of(options)
    written: set[str] = set()
    ahead = Ahead(options.sample, options.narrowing.module)
    if options.replays and not (options.folder / REPLAY / RECORDING).exists():
        written = record_calls(options, model, inputs, paired, ahead)
    if not options.alone and options.narrowing.takes_steps:
        release_memory()
        progress("torch: waiting for MindSpore's steps", State.WAITING)
        wait_for(options.folder / MINDSPORE / "trace.json", _meanwhile(options, model, written, ahead))
        release_memory()
    record_matched(options, model, inputs, paired)
    if not options.alone:
        ready(options.folder / LAST_TRACE["torch"])
    if options.may_measure_again:
        progress("torch: waiting for the comparison of the steps", State.WAITING)
        asked_for = wait_for(options.folder / EVERY_STEP, _meanwhile(options, model, written, ahead))
        if read_json(asked_for) is True:
            record_matched(options, model, inputs, paired, every_step=True)
            ready(asked_for)
    if options.replays and options.alone:
        record_itself(options, model)
    elif options.replays and not options.alone:
        record_replayed(options, model, written, ahead)


CORES = torch.get_num_threads()


def _share_cores(options: ParityJob) -> None:
    """Compute with half of the threads while MindSpore is at work too: threads that wait for a core spin."""
    last = LAST_REPLAY if options.replays else LAST_TRACE
    done = options.alone or (options.folder / last["MindSpore"] / "trace.json").exists()
    torch.set_num_threads(CORES if done else max(1, CORES // 2))


def record_calls(
    options: ParityJob, model: nn.Module, inputs: Inputs, paired: Paired | None = None, ahead: Ahead | None = None
) -> set[str]:
    """Record what every module is given in the first step, for the replay of both sides; returns the tensors' files.
    ahead: gets what is known then of single modules."""
    progress("torch: inputs of every module")
    recipe = options.step_recipe
    loss = replay_loss(recipe, paired.given if paired is not None else None)
    about_run = partial(about, options.recipe)
    crossing = None if paired is None else paired.alignment.torch_names
    first = inputs.images[0], inputs.labels[0]
    backward = "gradients" in options.narrowing.stages
    single = isinstance(inputs.images[0], np.ndarray)
    most = options.alone_batch if single else None
    record_this = partial(record_step, options.folder, model, loss, *first, about_run, recipe.accumulate, crossing)
    # with one input, the model was run to find out whether that input may have a gradient
    structure = model_structure.file(options.folder, "torch")
    image_gradient = not (single and structure.exists() and model_structure.read(structure).tokens)
    here = ahead if device(options.torch_device).type == "cpu" else None  # where the recording is made
    return record_this(most=most, backward=backward, image_gradient=image_gradient, ahead=here)


def _meanwhile(
    options: ParityJob, model: nn.Module, written: Collection[str], ahead: Ahead
) -> Generator[None, None, None] | None:
    """The work to do while MindSpore's side runs: modules alone; written: what `record_calls` returned."""
    if not options.replays:
        return None
    recording = Recording.open(options.folder / REPLAY)
    recording.verified.update(written)
    return ahead.run(recording, model, _runs(options, model))


def _runs(options: ParityJob, model: nn.Module) -> Callable[[], Generator[Precision, None, None]]:
    return lambda: shortening(precisions(model, device(options.torch_device)), options.precision)


def record_replayed(options: ParityJob, model: nn.Module, written: Collection[str], ahead: Ahead | None = None) -> None:
    """Wait for MindSpore's replay, and run every module alone in each precision, but for what ran ahead."""
    folder, ahead = options.folder, ahead or Ahead(options.sample, options.narrowing.module)
    progress("torch: waiting for MindSpore's modules", State.WAITING)
    wait_for(folder / MINDSPORE_REPLAY / "trace.json", _meanwhile(options, model, written, ahead))

    def needed() -> list[str]:
        ready(folder / LAST_REPLAY["torch"])
        labels = containers_alone.chosen(wait_for(folder / containers_alone.FILE))
        if labels:
            progress("torch: waiting for MindSpore's containers", State.WAITING)
            wait_for(folder / containers_alone.RAN)
        return labels

    _each_alone(options, model, needed if options.chooses_containers else None, verified=written, ahead=ahead)


def record_itself(options: ParityJob, model: nn.Module) -> None:
    """Run every module alone in each precision, with the choices at kinks of this half, or of the half that it started
    from: another torch half is judged by this. Containers run alone where their parts cannot judge them."""
    recording = Recording.open(options.folder / REPLAY)
    if not (options.folder / CHOICES / "trace.json").exists():
        record_choices(options, Alone(recording, model, torch.float32, device(options.torch_device)))
    _each_alone(options, model, by=CHOICES)


def _each_alone(
    options: ParityJob,
    model: nn.Module,
    needed: Callable[[], list[str]] | None = None,
    by: str = MINDSPORE_REPLAY,
    verified: Collection[str] = (),
    ahead: Ahead | None = None,
) -> None:
    """Every module alone in each precision; needed, by, verified and ahead: as replay has them."""
    _share_cores(options)
    of_recipe, runs = partial(about, options.recipe), _runs(options, model)
    replay(options.folder, model, runs, of_recipe, options.sample, needed, by, verified, ahead)


def record_choices(options: ParityJob, runner: Alone) -> None:
    """Record which modules of this half run alone, and their choices at kinks; this takes the place of MindSpore's
    replay, which torch's half of a pair uses."""
    progress("torch: choices of every module alone where rounding decides")
    recording = runner.recording
    outcome = Outcome(cells={path: path for path in recording.modules})
    calls = recording.calls.values()
    outcome.left_out = {call.label: NOT_ASKED for call in calls if not options.narrowing.module(call.path)}
    inner = {call.label: recording.handed_on(call, ()) for call in calls if not call.strays}
    for call in calls:
        if any(outcome.asked(one.label, call.label) for one in inner.get(call.label, ())):
            differentiates = any(gradient is not None for gradient in call.gradients)
            outcome.wired[call.label] = BOTH_WAYS if differentiates else FORWARD
    if not options.thorough:
        alone = containers_alone.around(recording, containers_alone.unjudged(recording, outcome))
        outcome.by_parts = [label for label in recording.made_by if label not in {*alone, *outcome.left_out}]
    head = {**about(options.recipe, runner.dtype, runner.device), **outcome.head()}
    writer = TraceWriter(options.folder / CHOICES, head, None)

    def keep(part: Part, run: Callable[..., object]) -> None:
        draws.restart()
        sides = OwnSides()
        with suppress(Exception):  # a module that cannot run is reported for each precision
            run(sides=sides)
        for (name, number), made in sides.choices.items():
            writer.add(SIDES_STAGE, part, name, made, number, whole=True)
        writer.flush(SIDES_STAGE, part)

    with fixed(runner.model, Draws(1)) as draws:
        for call in calls:
            if call.label not in (*outcome.left_out, *outcome.by_parts):
                keep(Part.of_call(call.path, call.number), partial(runner.run, replace(call, gradients=())))
            if call.label in outcome.wired:
                wired = partial(runner.wired, call, inner[call.label], keep=lambda *_: None, backward=True)
                keep(Part.of_wiring(call.path, call.number), wired)
    writer.close()


def record_start_of(options: ParityJob) -> tuple[nn.Module, Inputs, Paired | None]:
    """Leave the starting weights and the inputs in the folder, and for each precision a trace of what does not need the
    other side."""
    recipe, folder = options.step_recipe, options.folder
    progress("torch: model and data")
    paired = None
    again = any((folder / name).exists() for name in (WEIGHTS, START))  # the start of another torch recording
    if options.pair is None:
        inputs = read_inputs(folder, recipe) if again else own_inputs(options)
        torch.manual_seed(recipe.seed)
        model = build(options).model
        if not again:
            write_inputs(folder, inputs)
    else:
        own = read_inputs if again else lambda _, recipe: fed(recipe, data_batches(recipe, options.steps))
        given, inputs = begin(options, partial(own, folder))
        model, recipe = given.model, recipe_of(options, inputs.classes)
    narrowing = options.narrowing
    named = recipe.model.name if options.pair is None else options.pair.torch
    narrowing.check((name for name, _ in model.named_modules()), named)  # for a recipe's own model it was done before
    fresh: list[str] = []
    if again and options.pair is not None:
        load_start(model, folder)
    elif again:
        load_checkpoint(model, folder / WEIGHTS)
    elif recipe.model.checkpoint:
        fresh = load_checkpoint(model, recipe.model.checkpoint, recipe.model.fresh)
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if name in fresh:
                    lift(parameter)
    else:
        exercise(model, *tensors(inputs.images[-1]))
    try_layouts(model, *tensors(inputs.images[-1]))
    put_back(given.start if options.pair is not None else ())  # what was counted while it was tried
    if options.pair is None:
        if not again:
            torch.save(model.state_dict(), folder / WEIGHTS)
        ready(folder / WEIGHTS)
    else:
        write_start(model, options)
        progress("torch: waiting for the alignment", State.WAITING)
        paired = Paired(given, read_alignment(options))
        inputs = inputs.of_pair(paired.alignment)
    start = continued_from(options)
    for name, dtype, variant, place in shortening(precisions(model, device(options.torch_device)), options.precision):
        side = TorchSide(recipe, model, dtype, variant, paired, start, place)
        head = about(options.recipe, dtype, place)
        head |= {FINE_TUNED: fine_tuned(model, fresh)} if options.fine_tunes else {}
        head |= {SCOPE: asdict(side.alignment.scope)}
        head |= {IMPORT: [*([] if paired is None else paired.given.notes), *checkpointed(model)]}
        head |= {UNDEFINED: [] if paired is None else [*paired.given.undefined]}
        writer = TraceWriter(folder / name, head, options.sample, narrowing)
        if name == TORCH32 and writer.wants("init", "update"):
            record_start(side, writer)
            if writer.wants("init") and recipe.model.draws:
                progress("torch: initial distributions")
                add_initial_values(writer, options.seeds, lambda seed: initial_values(options, seed, paired))
        record_alone(options, side, inputs, writer)
        writer.close()
        del side  # else two precisions' weights and states are held at once
        release_memory()
    ready(folder / TORCH64)
    return model, inputs, paired


def own_inputs(options: ParityJob) -> Inputs:
    """The inputs of one of msmigrate's own models: the recipe's images, or rows of its arrays."""
    recipe, given = options.step_recipe, batches.given_batches(options)
    if given is None:
        return fed(recipe, data_batches(recipe, options.steps))
    return Inputs(*given, batches.classes(recipe))


def record_matched(
    options: ParityJob, model: nn.Module, inputs: Inputs, paired: Paired | None = None, every_step: bool = False
) -> None:
    """Record the training steps in each precision, with MindSpore's choices where rounding decides; if no judged stage
    needs steps, the traces stay empty. every_step: float32's once more, and all of their steps."""
    takes_steps = options.narrowing.takes_steps
    taken = Trace(options.folder / MINDSPORE) if takes_steps and not options.alone else None
    recipe = recipe_of(options, inputs.classes)
    half = (recipe.amp is not None and recipe.amp.level != "O0") or options.precision != "fp32"
    decisions: list[bool] = []
    start, own = continued_from(options), paired is not None and paired.alignment.scope.own_step
    for name, dtype, variant, place in shortening(precisions(model, device(options.torch_device)), options.precision):
        if every_step and dtype != torch.float32:
            continue
        steps = map(Part.of_step, range(1, options.steps + 1))
        sides = [KinkSides.of(taken, part, half) if taken else KinkSides({}) for part in steps]
        side = TorchSide(recipe, model, dtype, variant, paired, start, place)
        side.sides = list(sides)
        side.train_step.decisions = list(decisions)
        head, starts = about(options.recipe, dtype, place), None if options.alone else StepStarts(options.folder)
        writer = TraceWriter(options.folder / matched(name), head, options.sample, options.narrowing)
        short = dtype == torch.float32 and options.measures_noise_once and not (own or every_step)
        once = measuring_step(taken) if short else 0
        if takes_steps:
            shared = partial(_share_cores, options)
            shown = options.outputs_of_the_step and not own
            record_steps(side, inputs, writer, name, False, shown, starts, begin=True, before=shared, once=once)
        # half precision overflows where float64 does not: the reference skips what float32's run skipped
        decisions = decisions or ([] if once else list(side.taken))
        sides = sides[: len(side.taken)]
        counts = {"matched": [s.matched for s in sides], "differing": [s.differing for s in sides]}
        writer.about = {**writer.about, "kinks": counts, **compared_draws.about(side.draws)}
        if taken is not None and any(taken.select("gradients", REDUCED_GRADIENTS)):
            side.sides = [KinkSides.of(taken, Part.of_step(step), half) for step in range(1, options.steps + 1)]
            record_reduced(side, inputs, writer)
        writer.close()
        del side
        release_memory()


def record_alone(options: ParityJob, side: TorchSide, inputs: Inputs, writer: TraceWriter) -> None:
    """The forward passes that no step shows; data, and loss and optimizer on given values, where a memory layout makes
    no difference."""
    label = f"torch {writer.about['dtype']}"
    progress(f"{label}: evaluation and training forward passes")
    record_evaluation(side, inputs, writer)
    if writer.wants("forward") and (side.alignment.scope.own_step or not options.outputs_of_the_step):
        side.forward(inputs.images[0], inputs.labels[0], lambda leaf: add_output(writer, "train", leaf))
    writer.about = {**writer.about, **compared_draws.about(side.draws)}
    if side.variant:
        return
    if writer.wants("data"):
        record_batches(options, side, inputs, writer)
    progress(f"{label}: loss and optimizer on given values")
    record_probes(side, inputs, writer)
    record_parts(side, writer)


def record_batches(options: ParityJob, side: TorchSide, inputs: Inputs, writer: TraceWriter) -> None:
    """The batch of each step: as the user's file has it, or as torchvision makes it in this side's precision."""
    if as_arrays(options):
        record_given(side, inputs, writer)
    else:
        from ...training.data.torch_pipeline import exact_transforms  # not above: a pair that brings its batches …

        with exact_transforms(side.dtype):
            record_data(data_batches(recipe_of(options, inputs.classes), options.steps), writer)


def data_batches(recipe: Recipe, steps: int) -> list[Batch]:
    """The batch of each step through torchvision, and mixed where the recipe says so; in torch's default dtype."""
    from ...training.data import torch_pipeline  # … needs no torchvision

    smoothing, dtype = 0.0 if recipe.mixup is None else recipe.mixup.label_smoothing, torch.get_default_dtype()

    def mixed(images: np.ndarray, labels: np.ndarray, mix: Mix) -> tuple[np.ndarray, np.ndarray]:
        soft = torch_pipeline.soft_targets(torch.from_numpy(labels), mix, batches.classes(recipe), smoothing, dtype)
        return torch_pipeline.mix_images(torch.from_numpy(images), mix).numpy(), soft.numpy()

    def load(samples: list[Sample], keys: list[Key]) -> tuple[np.ndarray, np.ndarray]:
        return torch_pipeline.batch(samples, recipe.data.transforms, keys)

    return batches.data_batches(recipe, steps, load, mixed)


def fed(recipe: Recipe, made: list[Batch]) -> Inputs:
    """The inputs of all sides' steps: the batches after mixing."""
    images: list[Images] = [batch.images if batch.mixed is None else batch.mixed for batch in made]
    labels = [targets(recipe, batch.labels) if batch.soft is None else batch.soft for batch in made]
    return Inputs(images, labels, batches.classes(recipe))


def about(recipe: Recipe, dtype: torch.dtype, place: torch.device) -> dict[str, object]:
    """The head of a trace: who recorded it, on what, from which recipe."""
    return {
        "framework": "torch",
        "versions": {
            "torch": torch.__version__,
            "torchvision": metadata.version("torchvision"),  # without importing it
            "numpy": np.__version__,
        },
        "dtype": str(dtype).removeprefix("torch."),
        **described(place),
        "seed": recipe.seed,
        "recipe": recipe.digest,
    }


def fine_tuned(model: nn.Module, fresh: list[str]) -> dict[str, list[str]]:
    """What of the model is fine-tuned, by the keys of a recipe's model: names of tensors and of norms."""
    frozen = [name for name, parameter in model.named_parameters() if not parameter.requires_grad]
    return {"fresh": fresh, "freeze": frozen, "freeze_statistics": torch_models.with_frozen_statistics(model)}


def exercise(model: nn.Module, *inputs: torch.Tensor) -> None:
    """Give a fresh model the state of one that has trained a little, in place.

    Norm scales of one, shifts of zero and untouched running statistics hide swapped, undecayed and unread tensors, so
    scales and shifts are moved at random, and running statistics come near those of `inputs` (images N, C, H, W). They
    are moved away from them again: statistics that already are the step's batch's own do not move in it, whatever
    their momentum, and `inputs` may be that very batch. A fresh ResNet also multiplies rounding with its depth, which
    training soon ends: the residual branches get a quarter of their scale (measured on ResNet50: rounding in the logits
    falls from 1e-5 to 7e-7 of their size, and the verdict sharpens with it).
    """
    with torch.no_grad():
        norms = [m for m in model.modules() if is_norm(type(m).__name__) and getattr(m, "weight", None) is not None]
        for norm in norms:
            norm.weight += torch.rand_like(norm.weight) - 0.5
            if getattr(norm, "bias", None) is not None:
                norm.bias += 0.1 * torch.randn_like(norm.bias)
        for block in model.modules():
            last: Any = getattr(block, LAST_NORM.get(type(block).__name__, ""), None)
            if getattr(last, "weight", None) is not None:  # others use this class name, too
                last.weight *= 0.25
        for parameter in model.parameters():
            lift(parameter)
        tracking = [m for m in model.modules() if isinstance(getattr(m, "running_var", None), torch.Tensor)]
        momenta = [getattr(norm, "momentum", None) for norm in tracking]
        for norm in tracking:
            norm.momentum = 1.0
        dense = {n: b for n, b in model.named_buffers() if b.is_floating_point() and b.layout is torch.strided}
        before = {name: buffer.clone() for name, buffer in dense.items()}
        model.train()
        model(*inputs)
        states = _states(model, before, tracking, inputs)
        for norm, momentum in zip(tracking, momenta, strict=True):
            norm.momentum = momentum
        for name, buffer in states.items():
            buffer.lerp_(before[name], 0.3)  # between two values that it has had
        for norm in tracking:
            # in units of the standard deviation, since after another norm no image moves the mean
            norm.running_mean += away(norm.running_mean, 0.1, 0.3) * norm.running_var.sqrt()
            norm.running_var *= 1.0 + away(norm.running_var, 0.2, 0.4)


def _states(
    model: nn.Module,
    before: Mapping[str, torch.Tensor],
    tracking: Sequence[nn.Module],
    inputs: tuple[torch.Tensor, ...],
) -> dict[str, torch.Tensor]:
    """The buffers besides running statistics that every forward pass moves: one that the first pass fills for good, as
    timm's indices of relative positions, is a constant."""
    statistics = {id(each) for norm in tracking for each in (norm.running_mean, norm.running_var)}
    moved = {
        name: buffer
        for name, buffer in model.named_buffers()
        if name in before and id(buffer) not in statistics and buffer.shape == before[name].shape
    }
    now = {name: buffer.clone() for name, buffer in moved.items() if not torch.equal(buffer, before[name])}
    if now:
        model(*inputs)
    again = dict(model.named_buffers())
    return {name: again[name] for name, value in now.items() if not torch.equal(again[name], value)}


def away(like: torch.Tensor, least: float, most: float) -> torch.Tensor:
    """Random numbers of either sign whose size is between `least` and `most`, in the shape of `like`."""
    return torch.empty_like(like).uniform_(least, most) * torch.randint_like(like, 2).mul_(2).sub_(1)


def lift(parameter: nn.Parameter) -> None:
    """Move a parameter that starts as one number throughout: a head of zeros lets no gradient through, and biases of
    zeros or a layer scale of ones hide that they are swapped."""
    if parameter.numel() > 1 and parameter.is_floating_point() and bool((parameter == parameter.flatten()[0]).all()):
        parameter *= torch.rand_like(parameter) + 0.5
        parameter += 0.02 * torch.randn_like(parameter) * (parameter == 0)


def initial_values(options: ParityJob, seed: int, paired: Paired | None = None) -> dict[str, np.ndarray]:
    """Trainable parameters of a new model drawn from `seed`, by state_dict name, and what trains in MindSpore alone."""
    torch.manual_seed(seed)
    with unseeded(torch, "manual_seed"):
        model = build(options, tuned=False).model
    held = {**dict(model.named_buffers()), **dict(model.named_parameters())}
    held = {name: held[name] for name in options.drawn(held)}
    if paired is None:
        names = {name for name, parameter in held.items() if parameter.requires_grad}
    else:
        names = {n for n, p in held.items() if p.requires_grad and n in paired.alignment.torch_names}
        names |= {n for n, each in paired.alignment.lacks.items() if each.lack is Lack.TRAINS}
    return {n: p.detach().cpu().numpy() for n, p in held.items() if n in names}


if __name__ == "__main__":
    run(main, ParityJob.read, place_in_model)
