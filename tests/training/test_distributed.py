"""Two processes: equal to one with the big batch, and to DistributedDataParallel, at noise."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from msmigrate.parity.tensor_verdict import uncertain
from msmigrate.training.options import Spread
from msmigrate.training.run import launch
from msmigrate.training.run.train_job import Job

HERE = Path(__file__).parent
# MindSpore's distance from float64, in units of torch float32's own, and where torch happens to be nearly exact
RATIO, FLOOR = 4.0, 2e-6
Arrays = dict[str, np.ndarray]


def beside(name: str) -> ModuleType:
    """A file that the workers share, which is no module of the installed package."""
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


beside("step_cases")
cases = beside("distributed_cases")
RUNS = [
    pytest.param(name, mode, marks=() if mode in cases.modes(name, quick=True) else pytest.mark.full)
    for name in cases.CASES
    for mode in cases.MODES
]


@dataclass(frozen=True)
class Sides:
    """What the ranks of both frameworks found: arrays by 'case/run/step/kind/name'."""

    torch: list[Arrays]
    mindspore: list[Arrays]


def under(arrays: Arrays, place: str) -> Arrays:
    """The arrays below a place, by the rest of their path; the losses of all steps as one, for a single number's noise
    may happen to be next to nothing."""
    found = {name[len(place) + 1 :]: array for name, array in arrays.items() if name.startswith(f"{place}/")}
    losses = [found.pop(name) for name in sorted(name for name in found if name.endswith("/loss"))]
    return {**found, "loss": np.stack(losses)} if losses else found


@pytest.fixture(scope="session")
def sides(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Sides:
    """One job of each framework, side by side, for neither needs the other."""
    selected = [item for item in request.session.items if item.path == Path(__file__)]
    extent = "all" if any(item.get_closest_marker("full") for item in selected) else "quick"
    folders = [tmp_path_factory.mktemp(name) for name in ("torch", "mindspore")]
    command = [sys.executable, str(HERE / "distributed_torch_worker.py"), str(folders[0]), extent]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    errors = folders[0] / "stderr.txt"
    with errors.open("w") as stderr:
        torch = subprocess.Popen(command, cwd=folders[0], stderr=stderr, env=environment)
    try:
        job = Job(recipe=Path("none"), folder=folders[1], gate={"extent": extent})
        worker = (str(HERE / "distributed_mindspore_worker.py"),)
        assert launch.run(job, Spread(cases.WORLD), worker=worker) == 0
        assert torch.wait(timeout=600) == 0, errors.read_text(encoding="utf-8")
    finally:
        torch.kill()
        torch.wait()
    found = []
    for folder in folders:
        found.append([dict(np.load(folder / f"rank_{rank}.npz")) for rank in range(cases.WORLD)])
    return Sides(*found)


def wrong(ours: Arrays, noisy: Arrays, exact: Arrays) -> dict[str, str]:
    """Name -> how far ours stands from the float64 result, for each that rounding does not explain."""
    assert ours.keys() == noisy.keys() == exact.keys()
    found = {}
    for name, array in ours.items():
        assert array.shape == exact[name].shape, name
        size = np.linalg.norm(exact[name])
        error, noise = (np.linalg.norm(each.astype(np.float64) - exact[name]) for each in (array, noisy[name]))
        if not error <= uncertain(array.size) * (RATIO * noise + FLOOR * size):
            found[name] = f"{error / size:.1e} away, torch {noise / size:.1e}"
    return found


@pytest.mark.parametrize(("case", "mode"), [each for each in RUNS if "sync" not in each.values[0]])
def test_ranks_train_as_those_of_distributed_data_parallel(sides, case, mode):
    for rank in range(cases.WORLD):
        ours = under(sides.mindspore[rank], f"{case}/{mode}")
        theirs = [under(sides.torch[rank], f"{case}/{bits}") for bits in (32, 64)]
        assert len(ours) > 100
        assert wrong(ours, *theirs) == {}


@pytest.mark.parametrize(("case", "mode"), [each for each in RUNS if "local" not in each.values[0]])
def test_ranks_train_as_one_process_with_the_big_batch(sides, case, mode):
    """Also with BatchNorms, whose statistics are then of all images: torch's SyncBatchNorm is defined by this."""
    alone = [under(sides.torch[0], f"{case}/alone{bits}") for bits in (32, 64)]
    for ranks in sides.mindspore:
        ours = under(ranks, f"{case}/{mode}")
        assert len(ours) > 100
        assert wrong(ours, *alone) == {}


@pytest.mark.parametrize("case", ["lenet", "sync"])
def test_mindspore_alone_trains_the_big_batch_so_too(sides, case):
    theirs = [under(sides.torch[0], f"{case}/alone{bits}") for bits in (32, 64)]
    assert wrong(under(sides.mindspore[0], f"{case}/alone"), *theirs) == {}


def test_torch_itself_trains_the_same_with_two_processes(sides):
    two, one = under(sides.torch[0], "lenet/64"), under(sides.torch[0], "lenet/alone64")
    assert two.keys() == one.keys()
    assert max(np.abs(two[name] - one[name]).max() for name in two) < 1e-12


@pytest.mark.parametrize(("case", "mode"), RUNS)
def test_ranks_hold_the_same_weights(sides, case, mode):
    """To the bit; but plain BatchNorms keep the statistics of their own images."""
    first, second = (under(ranks, f"{case}/{mode}") for ranks in sides.mindspore)
    differing = {name for name in first if not np.array_equal(first[name], second[name])}
    own = {name for name in first if name.endswith(("running_mean", "running_var"))} if "local" in case else set()
    assert differing == own
    assert bool(own) == ("local" in case)


@pytest.mark.parametrize(
    "case", [pytest.param(name, marks=() if name in cases.QUICK else pytest.mark.full) for name in cases.CASES]
)
def test_clipping_is_active_in_every_step(sides, case):
    gradients = under(sides.torch[0], f"{case}/64" if "sync" not in case else f"{case}/alone64")
    for step in range(cases.STEPS):
        squares = [np.square(array).sum() for name, array in gradients.items() if name.startswith(f"{step}/grads/")]
        assert np.sqrt(sum(squares)) > cases.CASES[case].recipe.clip.max_norm


@pytest.mark.parametrize("mode", cases.MODES)
@pytest.mark.parametrize("layer", cases.LAYERS)
def test_a_batch_norm_over_all_processes_is_that_of_all_images(sides, layer, mode):
    """Forward, gradients, statistics, evaluation; also for unequal shares, and a mean of 300 spreads."""
    noisy, exact = (under(sides.torch[0], f"layers/{bits}/{layer}") for bits in (32, 64))
    parts = [under(ranks, f"layers/{mode}/{layer}") for ranks in sides.mindspore]
    ours = {name: np.concatenate([part[name] for part in parts]) for name in ("y", "dx", "eval")}
    ours |= {name: parts[0][name] + parts[1][name] for name in ("dgamma", "dbeta")}  # each rank has its share
    ours |= {name: parts[0][name] for name in ("mean", "variance")}
    assert all(np.array_equal(parts[0][name], parts[1][name]) for name in ("mean", "variance"))
    spread = np.abs(layer_input_mean(layer)) / 0.5
    # what float32 can say of an image of the far channel: the distance from its mean, of numbers of the mean's size
    floor = dict.fromkeys(("y", "dx", "dgamma"), 4 * spread * 2**-24)
    for name, array in ours.items():
        size = np.linalg.norm(exact[name])
        error, noise = (np.linalg.norm(each - exact[name]) for each in (array, noisy[name]))
        assert error <= RATIO * noise + max(FLOOR, floor.get(name, 0)) * size, name


def layer_input_mean(layer: str) -> float:
    """The mean of a layer input's first channel, which lies far from zero."""
    return float(cases.layer_input(layer)[0][:, 0].mean())


def test_rank_0s_parameters_reach_every_rank_whatever_their_dtype(sides):
    first, second = (under(ranks, "collectives/broadcast") for ranks in sides.mindspore)
    assert {array.dtype.name for array in first.values()} == {"float32", "int64"}
    assert len(first) == 7
    assert first.pop("count") == second.pop("count") == 7
    for number, name in enumerate(first):
        assert np.array_equal(first[name], second[name])
        assert (first[name] == number).all(), name


@pytest.mark.parametrize("way", ["pynative", "jit"])
def test_gradients_become_their_mean(sides, way):
    for ranks in sides.mindspore:
        wide, narrow = ranks[f"collectives/reduce/{way}/0"], ranks[f"collectives/reduce/{way}/1"]
        assert wide.tolist() == [1.5, 3.0, 4.5]
        assert narrow.dtype == np.float16
        assert narrow.tolist() == [60000.0, 1.0]  # whose sum float16 cannot hold


def test_gradients_go_in_the_messages_that_the_recipe_says(sides):
    """MindSpore merges those that have one number; a CPU sends each alone."""
    for ranks in sides.mindspore:
        first, *others = ranks["messages/numbers"]
        assert len(set(others)) == 1 and first not in others
        assert [ranks[f"messages/{index}"].tolist() for index in range(3)] == [[0, 0.5], [1, 0.5], [2, 0.5]]


def test_numbers_become_their_mean(sides):
    for ranks in sides.mindspore:
        mean = ranks["collectives/mean"]
        assert mean[0] == 16777215.0
        assert mean[1:4] == pytest.approx([1e-9, 0.6, -1.5], rel=2e-7)
        assert np.isnan(mean[4])
        assert not np.isfinite(mean[5:]).any()
        assert ranks["collectives/nothing"].shape == (0,)


def test_each_rank_keeps_to_its_share_of_the_cores(sides):
    there = sorted(os.sched_getaffinity(0))
    shares = [ranks["collectives/cores"].tolist() for ranks in sides.mindspore]
    if len(there) == 1:
        assert shares == [there, there]
    else:
        assert shares == [there[: len(there) // 2], there[len(there) // 2 :]]
