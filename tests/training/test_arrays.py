"""A recipe whose data are arrays of a file: what it may say, what reaches the model, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from msmigrate.errors import BadInput, BadRecipe, NotTrusted
from msmigrate.training import inference
from msmigrate.training.data.array_files import check_inputs, check_rows, read_inputs, read_rows
from msmigrate.training.data.sources import open_arrays, open_sources
from msmigrate.training.metrics import Metrics, Scores, Tally, evaluate
from msmigrate.training.recipe import reader as recipes
from msmigrate.training.recipe import recipe_in_checkpoint
from msmigrate.training.recipe.schema import Recipe
from msmigrate.training.run import plan
from msmigrate.training.run.run_log import ValidationLine, history

RECIPE = """
model: {model}
data: {{source: "arrays:{file}", batch: 4{more}}}
optimizer: {{name: SGD, args: {{lr: 0.1}}}}
"""
OWN = "{name: net.py:Net, source: ms.py}"


def load(folder: Path, file: str = "rows.npz", model: str = OWN, more: str = "", end: str = "") -> Recipe:
    """A recipe on this file."""
    recipe = folder / "recipe.yaml"
    recipe.write_text(RECIPE.format(model=model, file=file, more=more) + end)
    return recipes.load(recipe)


def save(folder: Path, name: str = "rows.npz", **arrays: np.ndarray) -> Path:
    """A file of arrays."""
    np.savez(folder / name, **arrays)  # type: ignore[arg-type]
    return folder / name


TOKENS, CLASSES = np.arange(60).reshape(10, 6), np.arange(10) % 3


def test_arrays_are_taken_as_they_are(tmp_path: Path) -> None:
    mask = np.arange(60).reshape(10, 6) % 2 == 0
    save(tmp_path, **{"input": TOKENS, "input.1": mask, "labels": TOKENS.astype(np.float32)})
    recipe = load(tmp_path)
    assert (recipe.data.of_arrays, recipe.data.unit, recipe.data.transforms) == (True, "rows", [])
    assert recipe.data.source == f"arrays:{tmp_path / 'rows.npz'}"
    found = open_arrays(recipe.data.source, recipe.model)
    assert [array.dtype for array in found.inputs] == [np.int64, bool] and found.labels.dtype == np.float32
    assert len(found) == 10 and found.classes == ()
    inputs, labels = found.rows(np.array([7, 2]))
    assert np.array_equal(inputs[0], TOKENS[[7, 2]]) and np.array_equal(inputs[1], mask[[7, 2]])
    assert np.array_equal(labels, TOKENS[[7, 2]])
    assert plan.look(recipe).training == plan.SourceFacts(recipe.data.source, 10, 0, 0, 0)


def test_labels_are_classes_where_the_model_tells_some_apart(tmp_path: Path) -> None:
    save(tmp_path, input=TOKENS, labels=CLASSES)
    own = "{name: net.py:Net, source: ms.py, classes: 3}"
    assert open_sources(load(tmp_path, model=own).data, load(tmp_path, model=own).model)[0].classes == ("0", "1", "2")
    assert load(tmp_path).model.known_classes is None and load(tmp_path, model="resnet18").model.known_classes == 1000
    assert not open_arrays(load(tmp_path).data.source, load(tmp_path).model).classes
    two = load(tmp_path, model="{name: net.py:Net, source: ms.py, classes: 2}")
    with pytest.raises(BadInput, match="row 2 has label 2, and the model's 2 classes are 0 to 1"):
        open_sources(two.data, two.model)
    save(tmp_path, input=TOKENS, labels=TOKENS % 3)  # a label for each word is none of an example
    assert not open_arrays(load(tmp_path, model=own).data.source, load(tmp_path, model=own).model).classes


@pytest.mark.parametrize(
    ("more", "end", "said"),
    [
        (", transforms: [{name: ToTensor}]", "", "data.transforms is for images"),
        (", eval_transforms: [{name: ToTensor}]", "", "data.eval_transforms is for images"),
        (", fast_transforms: true", "", "data.fast_transforms is for images"),
        (", cache: true", "", "data.cache is for images"),
        (", on_corrupt: skip", "", "data.on_corrupt is for images"),
        (", validation: digits", "", "data.validation: digits and data.source arrays:.*: both have to be arrays:FILE"),
        ("", "mixup: {}\n", "mixup is for images"),
    ],
)
def test_what_is_for_images_is_refused(tmp_path: Path, more: str, end: str, said: str) -> None:
    with pytest.raises(BadRecipe, match=said):
        load(tmp_path, more=more, end=end)


@pytest.mark.parametrize("file", ["", "rows", "rows.npy", "folder/"])
def test_another_kind_of_file_is_refused_at_once(tmp_path: Path, file: str) -> None:
    with pytest.raises(BadRecipe, match=r"ends in \.npz or \.safetensors"):
        load(tmp_path, file)


def test_images_have_no_arrays_beside_them(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(
        "model: resnet18\ndata: {source: digits, validation: arrays:x.npz}\noptimizer: {name: SGD, args: {lr: 0.1}}\n"
    )
    with pytest.raises(BadRecipe, match="both have to be arrays:FILE, or neither"):
        recipes.load(recipe)


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"input": TOKENS}, "it lacks one of them"),
        ({"labels": CLASSES}, "it lacks one of them"),
        ({"input": TOKENS, "labels": CLASSES[:9]}, "input has 10 rows and labels 9"),
        ({"input": TOKENS, "input.1": TOKENS[:3], "labels": CLASSES}, "input.1 has 3 rows and labels 10"),
        ({"input": TOKENS, "input.2": TOKENS, "labels": CLASSES}, r"the inputs are numbered \[0, 2\]"),
        ({"tokens": TOKENS, "labels": CLASSES}, "has 'tokens'"),
        ({"input": TOKENS * 0.5, "labels": CLASSES}, "input is float64; save it as float32 or int64"),
        ({"images1": TOKENS, "labels1": CLASSES, "images2": TOKENS, "labels2": CLASSES}, "has 2 batches"),
    ],
)
def test_what_a_file_lacks_is_told(tmp_path: Path, arrays: dict[str, np.ndarray], said: str) -> None:
    path = save(tmp_path, **arrays)
    for read in (check_rows, read_rows):
        with pytest.raises(BadInput, match=rf"{path.name}: .*{said}"):
            read(path)


def test_validation_has_the_arrays_of_training(tmp_path: Path) -> None:
    save(tmp_path, input=TOKENS, labels=CLASSES)
    save(tmp_path, "other.npz", input=TOKENS.astype(np.float32), labels=CLASSES)
    recipe = load(tmp_path, more=", validation: arrays:other.npz")
    with pytest.raises(
        BadInput, match=r"other\.npz has the arrays float32, int64, and the training data have int64, int64"
    ):
        open_sources(recipe.data, recipe.model)


def test_to_predict_no_labels_are_needed(tmp_path: Path) -> None:
    path = save(tmp_path, **{"input": TOKENS, "input.1": TOKENS})
    assert check_inputs(path) == ("input", "input.1")
    assert [array.shape for array in read_inputs(path)] == [(10, 6), (10, 6)]
    for other, said in (
        ({"labels": CLASSES}, "expected input, input.1"),
        ({"input1": TOKENS}, "expected input, input.1"),
        ({"input": TOKENS, "input.2": TOKENS}, r"numbered \[0, 2\]"),
        ({"input": TOKENS, "images": TOKENS}, "images means the same as another name"),
        ({"input": TOKENS, "input.1": TOKENS[:4]}, "input.1 has 4 rows and input 10"),
    ):
        with pytest.raises(BadInput, match=said):
            check_inputs(save(tmp_path, **other))


def test_where_a_file_lies_does_not_count_and_is_not_read_at_a_checkpoint_s_word(tmp_path: Path) -> None:
    (tmp_path / "ms.py").write_text("def Net(): pass\n")
    (tmp_path / "net.py").write_text("def Net(): pass\n")
    recipe = load(tmp_path, more=", validation: arrays:val.npz")
    assert recipe.digest == load(tmp_path, "elsewhere/other.npz").digest
    kept = recipe_in_checkpoint.read(tmp_path / "x.ckpt", recipe.model_dump(mode="json"), None)
    assert kept.data.source == "arrays:" and kept.data.of_arrays
    with pytest.raises(NotTrusted, match="the checkpoint's validation data are in arrays:"):
        inference.source_named(None, kept, stored=True)


def test_a_file_is_named_by_its_path_alone(tmp_path: Path) -> None:
    path = save(tmp_path, input=TOKENS, labels=CLASSES)
    assert inference.source_at(str(path)) == f"arrays:{path}"
    with pytest.raises(BadInput, match="there is no file"):
        inference.source_at("none.npz")


def test_of_no_classes_there_is_a_loss_alone() -> None:
    tally = Tally()
    tally.add_loss(1.0, 4)
    tally.add_loss(4.0, 2)
    assert tally.metrics() == Metrics(2.0, None, None)
    scores = Scores(5)
    scores.add_loss(["row 0", "row 1"], 1.0)
    scores.add_loss(["row 2"], 4.0)
    found = evaluate(scores.results([], 1.0, "CPU", {}), [])
    assert (found.images, found.top1, found.top5, found.loss, found.classes) == (3, None, None, 2.0, [])
    with pytest.raises(BadInput, match="the loss of row 3 and the 1 after it is nan"):
        scores.add_loss(["row 3", "row 4"], float("nan"))


def test_the_best_epoch_is_the_one_with_the_lowest_loss() -> None:
    measured = [(3.0, 2.5), (1.0, 0.5), (2.0, 0.7)]
    lines = [
        {"event": "validation", "epoch": n, "step": n, "loss": loss, "ema": {"loss": average}}
        for n, (loss, average) in enumerate(measured)
    ]
    best = history([{"event": "plan", "classes": 0}, *lines]).best
    assert best is not None
    line, of_average = best
    assert isinstance(line, ValidationLine) and (line.step, of_average) == (1, True)
