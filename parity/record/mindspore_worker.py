"""The worker: records MindSpore's trace of a run, and of the compiled step where that is wanted.

    python -m msmigrate.parity.record.mindspore_worker JOB.json

The job's folder holds start.ckpt and inputs.safetensors, or gets them while this worker starts up.
"""

from __future__ import annotations

from ...workers.worker import prepare_mindspore, progress, ready, run, wait_for

prepare_mindspore()

import os  # noqa: E402
import traceback  # noqa: E402
from collections.abc import Iterator  # noqa: E402
from contextlib import contextmanager  # noqa: E402
from dataclasses import replace  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import mindspore  # noqa: E402
import numpy as np  # noqa: E402
from mindspore import Tensor, nn  # noqa: E402

from ...training import device_targets  # noqa: E402
from ...training.data import mindspore_pipeline, random_draws  # noqa: E402
from ...training.data.mindspore_pipeline import FastPrepare, grey_level  # noqa: E402
from ...training.data.random_draws import Key, Mix  # noqa: E402
from ...training.data.sample import Sample  # noqa: E402
from ...training.models import mindspore_models  # noqa: E402
from ...training.models.mindspore_models import canonical_parameters  # noqa: E402
from ...training.models.model_names import flat  # noqa: E402
from ...training.recipe.schema import Recipe  # noqa: E402
from ...training.step.mindspore_compile import Graphs  # noqa: E402
from ...workers.messages import State  # noqa: E402
from .. import compared_draws, containers_alone, run_folder  # noqa: E402
from ..align import mindspore_user_model  # noqa: E402
from ..align.alignment import read_alignment  # noqa: E402
from ..align.mindspore_user_model import (  # noqa: E402
    PairStep,
    begin,
    classes_of,
    tensors,
)
from ..align.user_model import Paired  # noqa: E402
from ..graph_mode import AGAIN, EVALUATION_FAILED, FAILED, GRAPH, UNFIXED, UNSEEN  # noqa: E402
from ..job import ParityJob, as_arrays, recipe_of  # noqa: E402
from ..replay.mindspore_replay import remember_arguments, replay  # noqa: E402
from ..replay.module_calls import FILE as RECORDING  # noqa: E402
from ..replay.module_calls import FOLDER as REPLAY  # noqa: E402
from ..run_folder import CHECKPOINT, INPUTS, MINDSPORE, MINDSPORE_REPLAY, MOVED  # noqa: E402
from ..trace import TraceWriter  # noqa: E402
from . import batches, resume  # noqa: E402
from .batches import Batch, Images, Inputs, read_inputs  # noqa: E402
from .mindspore_randomness import CompiledDraws, NotFixed  # noqa: E402
from .mindspore_runner import MindSporeSide  # noqa: E402
from .randomness import moved  # noqa: E402
from .recorder import (  # noqa: E402
    StepStarts,
    add_initial_values,
    add_model_outputs,
    record_data,
    record_evaluation,
    record_given,
    record_parts,
    record_probes,
    record_reduced,
    record_start,
    record_steps,
)


def record_compiled(side: MindSporeSide, inputs: Inputs, options: ParityJob) -> None:
    """Record the steps that `side` took in PyNative mode once more, compiled, into mindspore-graph in the job's folder;
    each begins with the same weights as it did then.

    The head of the trace says what does not compile, or draws random numbers that cannot be fixed, and what is compiled
    again and why.
    """
    folder = options.folder.resolve()
    writer = TraceWriter(folder / GRAPH, {**about(options), "mode": "graph"}, options.sample, options.narrowing)
    compiled, graphs = CompiledDraws(side.net, side.draws, side.recipe.accumulate), Graphs()
    writer.about[UNSEEN] = side.alignment.scope.own_step
    if compiled.outside:
        writer.about[UNFIXED] = compiled.outside
        writer.close()
        return
    with compiled.installed(), within(folder):
        side.compiled = compiled
        try:
            side.restart()
            with graphs.watching():
                record_steps(side, inputs, writer, "MindSpore, compiled", starts=StepStarts(folder), begin=True)
            writer.about[AGAIN] = graphs.again
        except NotFixed as error:
            writer.about[UNFIXED] = [str(error)]
        except Exception as error:  # any complaint of the compiler about a user's net whose PyNative step has run
            traceback.print_exc()
            writer.about[FAILED] = said(error)
        finally:
            side.compiled = None
            side.restart()
    if writer.wants("forward") and FAILED not in writer.about and UNFIXED not in writer.about:
        record_compiled_evaluation(side, inputs, writer, folder)
    writer.close()


def record_compiled_evaluation(side: MindSporeSide, inputs: Inputs, writer: TraceWriter, folder: Path) -> None:
    """Record what the compiled net returns in evaluation mode; the head of the trace says if it does not compile."""
    if any(draws.step == 0 and (draws.taken or draws.outside) for draws in side.draws):
        return  # numbers that were drawn are fixed in a step alone

    def evaluated(*given: Tensor) -> Any:
        return net(*given)

    net = side.net.set_train(False)
    progress("MindSpore: compiling evaluation")
    with within(folder):
        try:
            returned = mindspore.jit(evaluated)(*tensors(inputs.images[0]))
            add_model_outputs(writer, [each.asnumpy() for each in flat(returned, Tensor)])
        except Exception as error:
            traceback.print_exc()
            writer.about[EVALUATION_FAILED] = said(error)
    side.restart()


def record_moved(side: MindSporeSide, inputs: Inputs, options: ParityJob) -> None:
    """Record the passes and steps once more for each of MOVED, with every number moved in its last places: how much
    that changes a tensor is MindSpore's own noise."""
    for seed, name in enumerate(MOVED, 1):
        which = f"MindSpore's noise, run {seed} of {len(MOVED)}"
        given = replace(inputs, images=[_moved(images, seed) for images in inputs.images])
        writer = TraceWriter(options.folder / name, about(options), options.sample, options.narrowing)
        with side.moving(seed):
            progress(which)
            record_evaluation(side, given, writer)
            if options.narrowing.takes_steps or writer.wants("forward"):
                record_steps(side, given, writer, which, sides=True)
            record_probes(side, given, writer)
            record_parts(side, writer)
        writer.close()


def _moved(images: Images, seed: int) -> Images:
    return moved(images, seed) if isinstance(images, np.ndarray) else tuple(moved(each, seed) for each in images)


def said(error: Exception) -> str:
    """An error's text before the places in MindSpore's C++; its class and these places where there is no such text."""
    text = str(error)
    places = " ".join(line for line in text.splitlines() if not line.startswith("-"))
    return " ".join(text.split("\n-----")[0].split())[:300] or f"{type(error).__name__} {places.strip()[:300]}".strip()


@contextmanager
def within(folder: Path) -> Iterator[None]:
    """Within this block `folder` is the working directory: a compiler that fails leaves rank_0/om there."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def main(options: ParityJob) -> None:
    """Record what needs no starting weights first, then wait for them."""
    folder = options.folder
    device_targets.use(options.mindspore_target, options.mindspore_device_id, mindspore.PYNATIVE_MODE)
    if options.mindspore_target != "CPU":
        mindspore.set_deterministic(True)  # one run is recorded, and every other one has to equal it
    if options.replays:
        remember_arguments()
    given = begin(options) if options.pair is not None else None
    recipe = recipe_of(options, classes_of(options))
    writer = TraceWriter(folder / MINDSPORE, about(options), options.sample, options.narrowing)
    if writer.wants("data") and not as_arrays(options):
        progress("MindSpore: data")
        record_data(data_batches(recipe, options.steps), writer)
    paired = Paired(given, read_alignment(options)) if given is not None else None
    if writer.wants("init") and recipe.model.draws:
        progress("MindSpore: initial distributions")
        add_initial_values(writer, options.seeds, lambda seed: initial_values(options, seed, paired))
    net = mindspore_user_model.build(options).model if given is None else given.model
    progress("MindSpore: waiting for the starting weights", State.WAITING)
    if paired is None:
        load_start(net, str(wait_for(folder / CHECKPOINT)))
    else:
        mindspore_user_model.load_start(net, options, paired.alignment)
        mindspore_user_model.leave_alone(net, paired.alignment)
    wait_for(folder / INPUTS)
    inputs = read_inputs(folder, recipe)
    start = None if options.continue_from is None else resume.read(folder)
    side = MindSporeSide(recipe, net, paired=paired, continued=start)
    compiles = options.mode == "graph" and options.narrowing.takes_steps
    if compiles:
        progress("MindSpore: compiling the step")
        with within(folder):
            side.compiles(inputs.images[0], inputs.labels[0])
    writer.about = {**writer.about, resume.NOTES: side.notes}
    if paired is not None:
        inputs = inputs.of_pair(paired.alignment)
    if writer.wants("data") and as_arrays(options):
        record_given(side, inputs, writer)
    if writer.wants("init", "update"):
        record_start(side, writer)
    progress("MindSpore: evaluation forward pass")
    record_evaluation(side, inputs, writer)
    if options.narrowing.takes_steps or writer.wants("forward"):
        record_steps(side, inputs, writer, "MindSpore", sides=True, starts=StepStarts(folder))
    twice = isinstance(side.train_step, PairStep) and side.train_step.runs_twice
    about_steps = {run_folder.RUNS_TWICE: twice, run_folder.REPLACED: side.replaced()}
    writer.about = {**writer.about, **compared_draws.about(side.draws), **about_steps}
    if options.narrowing.takes_steps and writer.wants("gradients") and side.reducers():
        writer.about = {**writer.about, run_folder.REDUCER: record_reduced(side, inputs, writer)}
    progress("MindSpore: loss and optimizer on given values")
    record_probes(side, inputs, writer)
    record_parts(side, writer)
    writer.close()
    ready(folder / MINDSPORE)
    if compiles:
        record_compiled(side, inputs, options)
    if options.noise:
        record_moved(side, inputs, options)
    if options.replays:
        progress("MindSpore: waiting for the inputs of torch's modules", State.WAITING)
        wait_for(folder / REPLAY / RECORDING)
        side.restart()
        # alone, a layer that shares another's weight has it under its own name
        held = side.held if paired is not None else canonical_parameters(net, every_name=True)

        def needed() -> list[str]:
            ready(folder / MINDSPORE_REPLAY)
            progress("MindSpore: waiting for the outputs of torch's modules", State.WAITING)
            return containers_alone.chosen(wait_for(folder / containers_alone.FILE))

        replay(
            folder,
            net,
            held,
            about(options),
            options.narrowing,
            side.alignment,
            options.sample,
            needed if options.chooses_containers else None,
            fresh=options.together,
        )
        (folder / containers_alone.RAN).touch()
        for run in range(1, len(MOVED) + 1) if options.noise else ():
            with side.moving(run):
                replay(folder, net, held, about(options), options.narrowing, sample=options.sample, moves=run)


def data_batches(recipe: Recipe, steps: int) -> list[Batch]:
    """The batch of each step through MindSpore's dataset pipeline, and mixed where the recipe says so."""
    fast: dict[str, Any] = {"kind": FastPrepare} if recipe.data.fast_transforms else {}
    smoothing = 0.0 if recipe.mixup is None else recipe.mixup.label_smoothing

    def mixed(images: np.ndarray, labels: np.ndarray, mix: Mix) -> tuple[np.ndarray, np.ndarray]:
        soft = random_draws.soft_targets(labels, mix, batches.classes(recipe), smoothing)
        return random_draws.mix_images(images, mix), soft

    def load(samples: list[Sample], keys: list[Key]) -> tuple[np.ndarray, np.ndarray]:
        return mindspore_pipeline.batch(samples, recipe.data.transforms, keys, **fast)

    return batches.data_batches(recipe, steps, load, mixed)


def about(options: ParityJob) -> dict[str, object]:
    """The head of the trace: who recorded it, on what, from which recipe."""
    recipe = options.recipe
    return {
        "framework": "mindspore",
        "versions": {"mindspore": mindspore.__version__, "numpy": np.__version__},
        "dtype": "float32",
        **device_targets.described(options.mindspore_device_id),
        "seed": recipe.seed,
        "recipe": recipe.digest,
        **({run_folder.KEY: grey_level(recipe.data.transforms)} if recipe.data.fast_transforms else {}),
    }


def initial_values(options: ParityJob, seed: int, paired: Paired | None) -> dict[str, np.ndarray]:
    """Trainable parameters of a new net drawn from `seed`, by torch state_dict name."""
    if paired is not None:
        return mindspore_user_model.initial_values(options, paired.alignment, seed)
    mindspore.set_seed(seed)
    net = mindspore_models.of_recipe(options.recipe.model)
    trained = {c.name: c.parameter for c in canonical_parameters(net) if c.parameter.requires_grad}
    return {name: trained[name].asnumpy() for name in options.drawn(trained)}


def load_start(net: nn.Cell, checkpoint: str) -> None:
    """Load the converted starting weights, as a user would; the init stage then compares what the net really holds.

    load_param_into_net's own report is not used: it strips prefixes, loads, and still lists the value as not loaded.
    """
    mindspore.load_param_into_net(net, mindspore.load_checkpoint(checkpoint), strict_load=True)


if __name__ == "__main__":
    run(main, ParityJob.read)
