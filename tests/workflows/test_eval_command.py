"""`msmigrate eval`: image by image what torch itself predicts, the figures scikit-learn gives, and its refusals."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msmigrate.errors import BadCheckpoint, BadDestination, BadInput, BadRecipe, Unsupported, WorkerFailed
from msmigrate.option_fields import STDOUT
from msmigrate.training import checkpoints
from msmigrate.training.metrics import Evaluation
from msmigrate.training.run.train_job import Job
from msmigrate.workflows import evaluate as eval_command
from plain_lines import besides_progress
from scipy.special import log_softmax
from sklearn.metrics import accuracy_score, classification_report, confusion_matrix, top_k_accuracy_score
from trained_digits import IN_TREE, RECIPE, WORDS, Trained, run

COMMAND = (sys.executable, "-m", "msmigrate", "eval")
FLIP = "{name: RandomHorizontalFlip}"
OWN_FILES = {"report.json", "predictions.json", "confusion.png"}


def evaluate(checkpoint: Path, **options: Any) -> int:
    return eval_command.run_evaluate(checkpoint, **{"json_file": STDOUT, **options})


@pytest.fixture(scope="module")
def of_torch(trained: Trained, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict, list[dict]]:
    """The command on torch's own file, as a user runs it: what it prints, report.json and predictions.json."""
    out = tmp_path_factory.mktemp("out") / "of torch"
    before = trained.torch.read_bytes()
    environment = {name: value for name, value in os.environ.items() if name != "FORCE_COLOR"}
    done = subprocess.run(
        [*COMMAND, trained.torch, "digits:test", "--recipe", RECIPE, "--out", out],
        capture_output=True,
        text=True,
        env={**environment, "NO_COLOR": "1", "COLUMNS": "80"},
    )
    assert (done.returncode, besides_progress(done.stderr)) == (0, ""), done
    assert {file.name for file in out.iterdir()} == OWN_FILES
    assert (out / "confusion.png").read_bytes().startswith(b"\x89PNG")
    assert trained.torch.read_bytes() == before
    return done.stdout, *(json.loads((out / name).read_text()) for name in ("report.json", "predictions.json"))


def assert_as_torch(found: list[dict], logits: np.ndarray, labels: np.ndarray) -> None:
    """Every image's class, probability, loss and five likeliest classes are those of torch's logits."""
    logs = log_softmax(logits.astype(np.float64), axis=1)
    order = np.argsort(-logits, axis=1)
    assert [image["predicted"] for image in found] == [WORDS[i] for i in order[:, 0]]
    assert [image["label"] for image in found] == [WORDS[i] for i in labels]
    for image, log, classes, label in zip(found, logs, order, labels, strict=True):
        top = [one["probability"] for one in image["top"]]
        np.testing.assert_allclose(top, np.exp(log[classes[:5]]), rtol=0, atol=1e-5)
        np.testing.assert_allclose(image["loss"], -log[label], rtol=1e-4, atol=1e-5)
        assert image["probability"] == top[0]


def test_predictions_are_torchs_image_by_image(trained: Trained, of_torch: tuple[str, dict, list[dict]]) -> None:
    *_, found = of_torch
    assert [image["name"] for image in found] == [f"digit {row}" for row in range(1437, 1797)]
    in_words = [
        {**image, "predicted": WORDS[int(image["predicted"])], "label": WORDS[int(image["label"])]} for image in found
    ]
    assert_as_torch(in_words, trained.logits, trained.labels)


def test_figures_are_scikit_learns_of_torchs_outputs(trained: Trained, of_torch: tuple[str, dict, list[dict]]) -> None:
    _, report, _ = of_torch
    labels, predicted = trained.labels, trained.logits.argmax(1)
    assert report["images"] == 360
    assert 0.5 < report["top1"] < 1.0  # a model that is always right, or never, would show little
    assert report["top1"] == accuracy_score(labels, predicted)
    assert report["top5"] == top_k_accuracy_score(labels, trained.logits, k=5)
    assert report["loss"] == pytest.approx(trained.loss, rel=1e-5)
    assert report["confusion_matrix"] == confusion_matrix(labels, predicted).tolist()
    expected = classification_report(labels, predicted, output_dict=True, zero_division=0)
    averages = {"macro average": "macro avg", "weighted average": "weighted avg"}
    for row in report["classes"] + report["averages"]:
        figures = expected[averages.get(row["name"], row["name"])]
        assert (row["precision"], row["recall"], row["f1"], row["support"]) == tuple(figures.values())


def test_the_plainest_mistakes_are_told(of_torch: tuple[str, dict, list[dict]]) -> None:
    printed, report, found = of_torch
    wrong = sorted((i for i in found if i["label"] != i["predicted"]), key=lambda i: -i["probability"])
    assert [one["name"] for one in report["surest_mistakes"]] == [one["name"] for one in wrong[:10]]
    first = report["most_confused"][0]
    matrix = np.array(report["confusion_matrix"]) * (1 - np.eye(10, dtype=int))
    assert first["images"] == matrix.max() == matrix[int(first["label"]), int(first["predicted"])]
    times = "time" if first["images"] == 1 else "times"
    assert f"{first['label']} taken for {first['predicted']}: {first['images']} {times}" in printed
    assert f"top-1 {report['top1']:.2%}   top-5 {report['top5']:.2%}   loss {report['loss']:.4f}" in printed
    assert wrong[0]["name"] in printed
    lines = printed.splitlines()
    assert all(len(line) <= 80 for line in lines[:-1]) and lines[-1].startswith("Written to "), printed


def test_classes_go_by_name_and_the_moving_average_is_its_own(
    trained: Trained, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The tree's folders are in another order than the classes were in training."""
    for ema, logits in ((False, trained.logits), (True, trained.ema_logits)):
        assert evaluate(trained.own, data=str(trained.tree), ema=ema, out=tmp_path, batch=25) == 0
        report = json.loads(capsys.readouterr().out)
        assert report == json.loads((tmp_path / "report.json").read_text())
        assert report["weights"] == ("moving average" if ema else "weights")
        assert any("--ema evaluates that" in note for note in report["notes"]) is not ema
        assert (report["step"], report["source"]) == (45, f"folder:{trained.tree}")
        found = json.loads((tmp_path / "predictions.json").read_text())
        places = [int(Path(image["name"]).stem) for image in found]
        assert sorted(places) == list(range(IN_TREE))
        assert_as_torch(found, logits[places], trained.labels[places])
    assert (trained.logits.argmax(1) != trained.ema_logits.argmax(1))[:IN_TREE].any()


@pytest.mark.full
def test_a_corrupt_image_is_fatal_or_skipped_by_the_recipe(
    trained: Trained, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = trained.tree / "one" / "zz.png"
    bad.write_bytes(b"not an image")
    try:
        with pytest.raises(BadInput, match=r"one/zz\.png is not an image: .*on_corrupt: skip"):
            evaluate(trained.torch, data=str(trained.tree), recipe=RECIPE)
        skipping = tmp_path / "skip.yaml"
        skipping.write_text(RECIPE.read_text().replace("data:", "data:\n  on_corrupt: skip"))
        assert evaluate(trained.torch, data=str(trained.tree), recipe=skipping) == 0
    finally:
        bad.unlink()
    report = json.loads(capsys.readouterr().out)
    assert report["images"] == IN_TREE
    assert len(report["skipped"]) == 1 and "zz.png" in report["skipped"][0]


@pytest.mark.full
def test_a_trained_checkpoint_measures_what_its_training_logged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = changed(tmp_path, "args: {lr: 0.05}}", "args: {lr: 0.02}}\nema: {decay: 0.8}\ntrain: {epochs: 1}")
    job = Job(recipe=recipe, folder=tmp_path / "run", max_steps=25)
    job.folder.mkdir()
    job.write(tmp_path / "job.json")
    subprocess.run(
        [sys.executable, "-m", "msmigrate.training.run.mindspore_worker", str(tmp_path / "job.json")], check=True
    )
    events = [json.loads(line) for line in job.log.read_text().splitlines()]
    logged = [event for event in events if event["event"] == "validation"][-1]
    for ema, expected in ((False, logged), (True, logged["ema"])):
        assert evaluate(job.checkpoints / "best.ckpt", ema=ema) == 0
        report = json.loads(capsys.readouterr().out)
        assert report["step"] == 25
        assert (report["top1"], report["top5"]) == (expected["top1"], expected["top5"])
        assert report["loss"] == pytest.approx(expected["loss"], rel=1e-5)


def changed(folder: Path, old: str, new: str) -> Path:
    """The recipe with another text."""
    path = folder / "changed.yaml"
    text = RECIPE.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    return path


def damaged(trained: Trained, folder: Path) -> Path:
    content = bytearray(trained.own.read_bytes())
    content[len(content) // 2] ^= 16
    (folder / "flipped.ckpt").write_bytes(content)
    return folder / "flipped.ckpt"


def cut(trained: Trained, folder: Path) -> Path:
    (folder / "cut.ckpt").write_bytes(trained.own.read_bytes()[:-4000])
    return folder / "cut.ckpt"


def relabelled(trained: Trained, folder: Path, **about: Any) -> Path:
    """The checkpoint with something else in what it says of its run."""
    path = folder / "relabelled.ckpt"
    checkpoints.write(path, checkpoints.read(trained.own).tensors, {**run(list(WORDS)), **about})
    return path


def tree(folder: Path, *classes: str) -> Path:
    for name in classes:
        (folder / "tree" / name).mkdir(parents=True)
        (folder / "tree" / name / "1.png").write_bytes(b"")
    return folder / "tree"


# what is asked for, the kind of error, and what it says; all before a framework is started
REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "no file": (lambda t, d: (d / "no.ckpt", {}), BadCheckpoint, "there is no file"),
    "a folder": (lambda t, d: (d, {}), BadCheckpoint, "is a folder"),
    "cut short": (lambda t, d: (cut(t, d), {}), BadCheckpoint, "damaged"),
    "a flipped bit": (lambda t, d: (damaged(t, d), {}), BadCheckpoint, "checksum"),
    "no checkpoint": (lambda t, d: (RECIPE, {}), BadCheckpoint, "is no checkpoint of torch or MindSpore"),
    "torch without recipe": (lambda t, d: (t.torch, {}), BadInput, "add --model NAME or --recipe FILE"),
    "torch with ema": (lambda t, d: (t.torch, {"ema": True, "recipe": RECIPE}), BadInput, "--ema"),
    "recipe in the checkpoint": (
        lambda t, d: (relabelled(t, d, recipe={"model": {"name": "vgg"}, "optimizer": {"name": "SGD"}}), {}),
        BadRecipe,
        "carries a recipe that cannot be used",
    ),
    "no recipe in the checkpoint": (
        lambda t, d: (relabelled(t, d, recipe=[]), {}),
        BadCheckpoint,
        "carries a recipe that cannot be used",
    ),
    "odd class names": (lambda t, d: (relabelled(t, d, classes=["a", "a"]), {}), BadCheckpoint, "class names"),
    "class names for a terminal": (
        lambda t, d: (relabelled(t, d, classes=["a", "\x1b[2J"]), {}),
        BadCheckpoint,
        "class names",
    ),
    "too few classes": (
        lambda t, d: (t.own, {"recipe": changed(d, "num_classes: 10", "num_classes: 5")}),
        BadInput,
        "was trained on 10 classes and the recipe's resnet_tiny has 5",
    ),
    "random transforms": (
        lambda t, d: (
            t.own,
            {"recipe": changed(d, "- {name: ToT", "- {name: RandomHorizontalFlip}\n    - {name: ToT")},
        ),
        BadRecipe,
        "RandomHorizontalFlip",
    ),
    "no data": (
        lambda t, d: (t.own, {"recipe": changed(d, "validation: digits:test", "workers: 1")}),
        BadInput,
        "no data.validation",
    ),
    "no folder": (lambda t, d: (t.own, {"data": str(d / "none")}), BadInput, "there is no folder"),
    "no source": (lambda t, d: (t.own, {"data": "digits:tset"}), BadInput, "did you mean 'digits:test'"),
    "an empty folder": (lambda t, d: (t.own, {"data": str(d)}), BadInput, "has no folders in it"),
    "unknown classes": (
        lambda t, d: (t.own, {"data": str(tree(d, "one", "eleven", "twelve"))}),
        BadInput,
        "not trained on: eleven, twelve; it knows zero",
    ),
    "too many folders": (
        lambda t, d: (t.torch, {"data": str(tree(d, *(f"{n:02}" for n in range(11)))), "recipe": RECIPE}),
        BadInput,
        "11 classes",
    ),
    "out is a file": (lambda t, d: (t.own, {"out": RECIPE}), BadDestination, "is a file"),
    "out is below a file": (lambda t, d: (t.own, {"out": RECIPE / "x"}), BadDestination, "is a file"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_evaluated_is_refused_before_a_framework_starts(
    trained: Trained, tmp_path: Path, case: str
) -> None:
    arguments, kind, words = REFUSED[case]
    checkpoint, options = arguments(trained, tmp_path)
    with pytest.raises(kind) as caught:
        evaluate(checkpoint, worker=("/bin/false",), **options)
    assert words in str(caught.value) and "\n" not in str(caught.value)
    assert not isinstance(caught.value, WorkerFailed)


@pytest.mark.full
def test_a_target_that_is_not_there_is_refused(trained: Trained) -> None:
    with pytest.raises(Unsupported, match="cannot use Ascend here") as caught:
        evaluate(trained.own, data=str(trained.tree), target="Ascend", worker=("/bin/false",))
    assert "\n" not in str(caught.value)


def test_an_out_folder_keeps_its_other_files(trained: Trained, tmp_path: Path) -> None:
    """Nothing is written where the work fails."""
    (tmp_path / "mine.txt").write_text("kept")
    with pytest.raises(WorkerFailed):
        evaluate(trained.own, data=str(trained.tree), out=tmp_path, worker=("/bin/false",))
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]


def test_a_report_without_classes_stands_beside_no_other_evaluations_files(tmp_path: Path) -> None:
    about = eval_command.About("a.ckpt", "net", "0" * 8, "weights", 1, 1, "arrays:a.npz", "CPU", {}, 1.0, [], [])
    found = Evaluation(4, None, None, 0.25, [], [], np.zeros((0, 0), np.int64), [], [])
    for name in (*OWN_FILES, "mine.txt"):
        (tmp_path / name).write_text("of an earlier evaluation")
    eval_command._write(tmp_path, about, found, None, [])  # type: ignore[arg-type]
    assert {file.name for file in tmp_path.iterdir()} == {"report.json", "mine.txt"}
    assert json.loads((tmp_path / "report.json").read_text())["loss"] == 0.25
