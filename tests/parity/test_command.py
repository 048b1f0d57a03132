"""`msmigrate parity-step` from the outside: exit code, what it prints, what it writes, and what it refuses at once."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from msmigrate.parity.options import STAGES
from msmigrate.parity.record.recorder import STARTS

HERE = Path(__file__).parent
RECIPE = HERE / "tiny.yaml"
COMMAND = (sys.executable, "-m", "msmigrate", "parity-step")
LENET = """
model: {{name: lenet5{checkpoint}}}
data:
  source: digits
  batch: 8
  transforms:
    - {{name: Resize, args: {{size: 32}}}}
    - {{name: ToTensor}}
    - {{name: Normalize, args: {{mean: [0.5], std: [0.5]}}}}
optimizer: {{name: {optimizer}, args: {{lr: 0.001, weight_decay: 1.0e-4}}, no_weight_decay: [bias]}}
schedule: {{name: StepLR, args: {{step_size: 1, gamma: 0.5}}}}
clip: {{max_norm: 0.05}}
accumulate: 2
loss_scale: 1024.0
"""


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str
    seconds: float

    @property
    def error(self) -> str:
        """The one line that bad input gives, behind what says what runs, and that it does, where something did."""
        *notes, error = self.err.splitlines()
        assert self.code == 2 and self.out == "" and error.startswith("msmigrate parity-step: "), self
        assert all(re.match(r"parity-step: |\d+ s: |\d+ tensors of weights", note) for note in notes), self
        return error


def run(*arguments: str | Path, command: tuple[str, ...] = COMMAND) -> Done:
    environment = {name: value for name, value in os.environ.items() if name != "FORCE_COLOR"}
    environment |= {"NO_COLOR": "1", "COLUMNS": "80"}
    began = time.monotonic()
    done = subprocess.run([*command, *map(str, arguments)], capture_output=True, text=True, env=environment)
    return Done(done.returncode, done.stdout, done.stderr, time.monotonic() - began)


def strict(file: Path) -> Any:
    """JSON as its standard has it, without NaN and Infinity."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} in {file.name}")

    return json.loads(file.read_text(encoding="utf-8"), parse_constant=refuse)


def assert_whole_at_80_columns(out: str) -> None:
    assert "\x1b" not in out and "…" not in out
    assert all(len(line) <= 80 for line in out.splitlines()), out
    for stage in STAGES:
        assert re.search(rf"^ ?{stage} +(pass|FAIL|fail|no verdict) ", out, re.MULTILINE), out


@pytest.fixture(scope="module")
def green(tmp_path_factory: pytest.TempPathFactory) -> tuple[Done, Path]:
    """One run of the untouched pair, with --json and --keep."""
    folder = tmp_path_factory.mktemp("green")
    return run(RECIPE, "--json", folder / "report.json", "--keep", folder / "traces"), folder


def test_the_untouched_pair_is_parity(green: tuple[Done, Path]) -> None:
    done, folder = green
    assert done.code == 0, done
    assert not (folder / "traces" / STARTS).exists()  # needed while both sides run, and no longer
    assert "Parity:" in done.out and "tensors compared in six stages." in done.out
    assert_whole_at_80_columns(done.out)


def test_the_json_is_complete(green: tuple[Done, Path]) -> None:
    report = strict(green[1] / "report.json")
    assert report["parity"] is True and report["first_divergence"] is None and report["hints"] == []
    assert set(report["versions"]) == {"torch", "torchvision", "mindspore", "numpy"}
    assert [stage["stage"] for stage in report["stages"]] == list(STAGES)
    assert sum(stage["passed"] for stage in report["stages"]) == len(report["findings"]) > 500
    names = {(f["stage"], f["part"], f["name"]) for f in report["findings"]}
    assert ("gradients", "parameters", "layer4.0.bn3.bias") in names and ("forward", "eval", "fc") in names
    assert len(names) == len(report["findings"])


@pytest.mark.full
def test_a_narrowed_run_judges_its_stages_as_the_whole_does_and_nothing_else(
    green: tuple[Done, Path], tmp_path: Path
) -> None:
    done = run(RECIPE, "--stages", "gradients", "--stages", "forward", "--json", tmp_path / "report.json")
    assert done.code == 0, done
    report, whole = strict(tmp_path / "report.json"), strict(green[1] / "report.json")
    kept = [f for f in whole["findings"] if f["stage"] in ("forward", "gradients")]
    assert report["findings"] == [{**f, "order": i} for i, f in enumerate(kept)]
    assert report["parity"] is None and report["steps"] == 1
    assert report["narrowed"] == {"stages": ["forward", "gradients"], "modules": [], "parity": True}
    flat = " ".join(done.out.split())
    said = (
        f"Parity in forward and gradients: {len(kept)} tensors compared; data, init, loss and update were not judged."
    )
    assert said in flat
    assert_only_these_stages(done.out, ("forward", "gradients"))


@pytest.mark.full
def test_a_run_narrowed_to_modules_judges_these_alone(green: tuple[Done, Path], tmp_path: Path) -> None:
    done = run(
        RECIPE, "--modules", "layer1", "--modules", "fc", "--json", tmp_path / "r.json", "--keep", tmp_path / "k"
    )
    assert done.code == 0, done
    report, whole = strict(tmp_path / "r.json"), strict(green[1] / "report.json")
    names = {f["name"] for f in report["findings"]}
    assert {name.split(".")[0].split(" ")[0] for name in names} == {"layer1", "fc"}
    kept = [
        f for f in whole["findings"] if f["name"].startswith(("layer1", "fc")) and f["stage"] not in ("data", "loss")
    ]
    assert names == {f["name"] for f in kept} and len(report["findings"]) == len(kept)
    assert "of layer1 and fc:" in " ".join(done.out.split())
    assert "other modules, data and loss were not judged" in " ".join(done.out.split())
    entries, all_entries = (
        strict(f / "mindspore-replay" / "trace.json") for f in (tmp_path / "k", green[1] / "traces")
    )
    assert len(entries["entries"]) < len(all_entries["entries"]) / 2


def assert_only_these_stages(out: str, stages: tuple[str, ...]) -> None:
    for stage in STAGES:
        assert bool(re.search(rf"^ ?{stage} +pass ", out, re.MULTILINE)) is (stage in stages), out


def test_kept_traces_are_not_mixed_with_another_run(green: tuple[Done, Path]) -> None:
    traces = green[1] / "traces"
    assert len(list(traces.glob("*/trace.json"))) == 11  # seven of the step, four of its modules alone
    again = run(RECIPE, "--keep", traces)
    assert "is not empty" in again.error
    assert again.seconds < 10


def test_a_broken_side_is_exit_1_with_the_place_and_its_known_pitfall(tmp_path: Path) -> None:
    worker = [sys.executable, str(HERE / "mindspore_broken_worker.py"), "bn_eps"]
    code = f"""if True:
        import sys
        from pathlib import Path
        from msmigrate.workflows.parity_step import run
        asked = dict(steps=1, init_seeds=1, json_file=Path(sys.argv[2]), worst=3)
        sys.exit(run(Path(sys.argv[1]), mindspore_worker={worker}, **asked))
    """
    done = run(RECIPE, tmp_path / "report.json", command=(sys.executable, "-c", code))
    assert done.code == 1, done
    assert_whole_at_80_columns(done.out.replace("(…, ", "("))  # the rest of a call in a fix
    flat = " ".join(done.out.split())
    assert "No parity. First divergence: forward (eval) layer2.0.bn2 off by" in flat
    assert "1 cause, tried out in torch: 1 layer2.0.bn2: BatchNorm2d layer2.0.bn2 computes as with eps=0.001" in flat
    assert "more (--json FILE has all)" in flat
    report = strict(tmp_path / "report.json")
    assert report["parity"] is False and report["first_divergence"]["module"] == "BatchNorm2d"
    assert [stage["verdict"] for stage in report["stages"][:3]] == ["pass", "pass", "fail"]


def test_a_glob_for_a_pair_is_refused_once_torch_has_built_its_model(tmp_path: Path) -> None:
    torch, mindspore = (f"{HERE / 'align' / f'pair_nets_{side}.py'}:Small" for side in ("torch", "mindspore"))
    pair = ("--torch", torch, "--mindspore", mindspore, HERE / "align" / "pair.yaml")
    done = run(*pair, "--modules", "cov", "--keep", tmp_path / "kept")
    assert f"--modules 'cov' matches no module of {torch}; the nearest: conv" in done.error
    assert not list((tmp_path / "kept").glob("*/trace.json"))  # no step was computed


@pytest.mark.full
def test_a_narrowed_run_finds_the_cause_that_the_whole_finds(tmp_path: Path) -> None:
    worker = [sys.executable, str(HERE / "mindspore_broken_worker.py"), "bn_eps"]
    code = f"""if True:
        import sys
        from pathlib import Path
        from msmigrate.workflows.parity_step import run
        asked = dict(stages=["gradients"], json_file=Path(sys.argv[2]))
        sys.exit(run(Path(sys.argv[1]), mindspore_worker={worker}, **asked))
    """
    done = run(RECIPE, tmp_path / "report.json", command=(sys.executable, "-c", code))
    assert done.code == 1, done
    assert "No parity in gradients (data, init, forward, loss and update were not judged)" in " ".join(done.out.split())
    (cause,) = strict(tmp_path / "report.json")["causes"]
    assert cause["place"] == "layer2.0.bn2" and "eps=0.001" in cause["text"]


def make_checkpoint(path: Path) -> Path:
    """A trained LeNet5, as DDP would have saved it."""
    code = f"""if True:
        import torch
        from msmigrate.training.models.torch_models import LeNet5
        torch.manual_seed(1)
        torch.save({{"state_dict": {{f"module.{{k}}": v for k, v in LeNet5().state_dict().items()}}}}, {str(path)!r})
    """
    subprocess.run([sys.executable, "-c", code], check=True)
    return path


@pytest.mark.full
def test_a_checkpoint_with_adam_clipping_accumulation_and_loss_scale_is_green(tmp_path: Path) -> None:
    checkpoint = make_checkpoint(tmp_path / "trained.pth")
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(LENET.format(optimizer="Adam", checkpoint=f", checkpoint: {checkpoint}"))
    done = run(recipe, "--steps", "2", "--json", tmp_path / "report.json")
    assert done.code == 0, done
    parts = {f["part"] for f in strict(tmp_path / "report.json")["findings"]}
    assert {"step2 exp_avg", "step2 exp_avg_sq", "given gradients step"} <= parts
    assert "distribution" not in parts  # nobody draws these weights


REFUSED: dict[str, tuple[Callable[[Path], list[str | Path]], str]] = {
    "no such module": (lambda tmp: [RECIPE, "--modules", "zzz*"], "--modules 'zzz*' matches no module of resnet_tiny"),
    "one module of two": (lambda tmp: [RECIPE, "--modules", "fc", "--modules", "layer5"], "the nearest: layer4"),
    "a stage without modules": (
        lambda tmp: [RECIPE, "--modules", "fc", "--stages", "data"],
        "stage data has no tensors",
    ),
    "no such recipe": (lambda tmp: [tmp / "none.yaml"], "none.yaml"),
    "a folder": (lambda tmp: [tmp], "is a folder, not a file"),
    "an unknown key": (lambda tmp: [_recipe(tmp, "modle: {name: lenet5}")], "model"),
    "an unknown model": (lambda tmp: [_recipe(tmp, "model: {name: lenet6}\noptimizer: {name: SGD}")], "lenet6"),
    "no yaml": (lambda tmp: [_recipe(tmp, "model: [")], "recipe.yaml"),
    "json in no folder": (lambda tmp: [RECIPE, "--json", tmp / "none" / "r.json"], "there is no folder"),
    "json is a folder": (lambda tmp: [RECIPE, "--json", _folder(tmp / "a.json")], "it is a folder"),
    "json without its ending": (lambda tmp: [RECIPE, "--json", tmp / "r"], "has to end in .json"),
    "keep is a file": (lambda tmp: [RECIPE, "--keep", _recipe(tmp, "")], "traces cannot be kept here"),
    "keep is below a file": (lambda tmp: [RECIPE, "--keep", _recipe(tmp, "") / "x"], "traces cannot be kept here"),
}


def _recipe(folder: Path, text: str) -> Path:
    path = folder / "recipe.yaml"
    path.write_text(text)
    return path


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_one_line_before_any_work(tmp_path: Path, case: str) -> None:
    arguments, expected = REFUSED[case]
    done = run(*arguments(tmp_path))
    assert expected in done.error
    assert done.seconds < 10  # no framework was started


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_one_line(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert "no permission" in run(RECIPE, "--json", tmp_path / "r.json").error
    assert "traces cannot be kept here" in run(RECIPE, "--keep", tmp_path / "traces").error


@pytest.mark.full
@pytest.mark.parametrize("optimizer", ["Adam", "AdamW", "RMSprop"])
def test_a_lenet_from_scratch_is_green(tmp_path: Path, optimizer: str) -> None:
    done = run(_recipe(tmp_path, LENET.format(optimizer=optimizer, checkpoint="")))
    assert done.code == 0, done


@pytest.mark.full
def test_one_step_and_every_element_is_green() -> None:
    done = run(RECIPE, "--steps", "1", "--thorough")
    assert done.code == 0, done
