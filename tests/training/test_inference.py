"""What evaluation and prediction resolve before a framework starts, and what they make of a net's outputs."""

from __future__ import annotations

import dataclasses
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msmigrate.errors import BadCheckpoint, BadInput, BadRecipe, Unsupported, WorkerFailed
from msmigrate.training.checkpoints import fit, is_foreign
from msmigrate.training.data.sample import Sample
from msmigrate.training.data.sources import open_source
from msmigrate.training.inference import (
    ImageFiles,
    Prepared,
    Request,
    Subject,
    image_files,
    infer,
    labelled,
    mode_of,
    preparation,
    source_named,
)
from msmigrate.training.metrics import Results, Scores, log_softmax
from msmigrate.training.recipe.schema import Recipe
from msmigrate.workers.messages import Message, Progress
from scipy.special import log_softmax as scipy_log_softmax

RECIPE = Recipe.model_validate(
    {
        "model": {"name": "lenet5"},
        "data": {"source": "digits:train", "validation": "digits:test", "workers": 3},
        "optimizer": {"name": "SGD", "args": {"lr": 0.1}},
    }
)
REQUEST = Request(recipe=RECIPE, weights=Path("w.ckpt"), shown="w.ckpt", source="digits:test")


def subject(*classes: str) -> Subject:
    return Subject(Path("c.ckpt"), Path("c.ckpt"), RECIPE, classes or None, None, torch=False)


# weights

WANTED = {"conv.weight": ((2, 1, 3, 3), "float32"), "fc.weight": ((10, 4), "float32"), "fc.bias": ((10,), "float32")}
HELD = {name: np.ones(shape, dtype) for name, (shape, dtype) in WANTED.items()}


def refusal(**changes: np.ndarray | None) -> str:
    """What is said of weights with some of them changed, or taken away (None); '_' stands for '.'."""
    named = {name.replace("_", "."): array for name, array in changes.items()}
    held = {name: array for name, array in {**HELD, **named}.items() if array is not None}
    with pytest.raises(BadCheckpoint) as caught:
        fit("c.ckpt", held, WANTED, RECIPE)
    assert "\n" not in str(caught.value) and str(caught.value).startswith("c.ckpt")
    return str(caught.value)


def test_weights_fit_when_they_are_all_there_and_nothing_else() -> None:
    beside = {"optimizer.x": np.zeros(1), "msmigrate.scaler": np.zeros(1), "ema.fc.bias": np.zeros(10)}
    found = fit("c.ckpt", {**beside, **HELD}, WANTED, RECIPE)
    assert list(found) == list(WANTED)
    assert all(found[name] is HELD[name] for name in WANTED)


def test_a_moving_average_is_taken_whole_and_alone() -> None:
    wanted = {f"ema.{name}": about for name, about in WANTED.items()}
    averages = {f"ema.{name}": 2 * array for name, array in HELD.items()}
    found = fit("c.ckpt", {**HELD, **averages}, wanted, RECIPE)
    assert all((array == 2).all() for array in found.values())
    del averages["ema.fc.bias"]
    with pytest.raises(BadCheckpoint, match=r"lacks ema\.fc\.bias"):
        fit("c.ckpt", {**HELD, **averages}, wanted, RECIPE)


def test_weights_that_do_not_fit_are_named() -> None:
    assert "it lacks conv.weight (it has conv1.weight); the net has no conv1.weight" in refusal(
        conv_weight=None, conv1_weight=HELD["conv.weight"]
    )
    assert "the net has no learning.rate" in refusal(learning_rate=np.zeros(1, np.float32))
    assert "conv.weight is 2 × 3 × 3 × 3 and the recipe's lenet5 needs 2 × 1 × 3 × 3" in refusal(
        conv_weight=np.ones((2, 3, 3, 3), np.float32)
    )
    assert "conv.weight is float16" in refusal(conv_weight=HELD["conv.weight"].astype(np.float16))
    assert "fc.bias holds numbers that are not finite" in refusal(fc_bias=np.full(10, np.nan, np.float32))


def test_another_number_of_classes_is_said_as_such() -> None:
    said = refusal(fc_weight=np.ones((1000, 4), np.float32), fc_bias=np.ones(1000, np.float32))
    assert "has 1000 classes (fc.weight is 1000 × 4) and the recipe's lenet5 has 10" in said
    assert said.endswith("set model.args.num_classes to 1000")


def test_what_is_no_ckpt_is_known_by_its_content_or_name(tmp_path: Path) -> None:
    for name, content, expected in (
        ("a.ckpt", b"PK\x03\x04", True),
        ("a.pth", b"\x80\x02", True),
        ("b.pth", b"\x80\x02", True),
        ("a.safetensors", b"\x40" + bytes(7) + b'{"a"', True),
        ("b.ckpt", b"\n", False),
    ):
        (tmp_path / name).write_bytes(content)
        assert is_foreign(tmp_path / name) is expected
    with pytest.raises(BadCheckpoint, match="there is no file"):
        is_foreign(tmp_path / "none.pth")


# data


def test_data_is_a_source_or_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert source_named(None, RECIPE) == "digits:test"
    assert source_named("synthetic:20x8", RECIPE) == "synthetic:20x8"
    assert source_named(str(tmp_path), RECIPE) == f"folder:{tmp_path}"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "digits").mkdir()
    assert source_named("digits", RECIPE) == "digits"
    assert source_named("./digits", RECIPE) == f"folder:{tmp_path}/digits"
    for wrong, said in (("none", "no folder none"), ("./none", "no folder ./none"), ("digits:x", "did you mean")):
        with pytest.raises(BadInput, match=said):
            source_named(wrong, RECIPE)


def test_classes_go_by_name() -> None:
    assert labelled(subject(), "digits:test") == (tuple("0123456789"), None)
    assert labelled(subject(*"9876543210"), "digits:test")[1] == list(range(9, -1, -1))
    with pytest.raises(BadInput, match=r"was not trained on: 3, 4, 5, 6, 7 and 2 more; it knows 0, 1, 2"):
        labelled(subject(*"012"), "digits:test")


def test_images_are_relabelled_and_decoded_as_the_net_knows_them() -> None:
    source = open_source("digits:test", 10, training=False)
    prepared = Prepared(source, list(range(9, -1, -1)), "RGB")
    assert (prepared.labels == 9 - source.labels).all()
    assert prepared[5] == dataclasses.replace(source[5], label=9 - source[5].label, mode="RGB")
    same = Prepared(source, None, None)
    assert same[5] == source[5] and same.mode == "L" and (same.labels == source.labels).all()
    assert mode_of("folder:x", RECIPE) == "L"
    assert mode_of("synthetic", RECIPE) is None


def test_every_class_has_a_name() -> None:
    assert subject(*"abc").names()[:4] == ["a", "b", "c", "class 3"]
    assert subject().names(("x",) * 10) == ["x"] * 10


def test_random_transforms_are_refused_where_they_would_be_used() -> None:
    flip = {"name": "RandomHorizontalFlip"}
    data = {"transforms": [flip, {"name": "ToTensor"}], "eval_transforms": [{"name": "ToTensor"}]}
    fixed = Recipe.model_validate({**RECIPE.model_dump(), "data": data})
    assert [part.name for part in preparation(fixed)] == ["ToTensor"]
    for wrong, said in (
        ({**data, "eval_transforms": None}, r"data\.transforms .* add data\.eval_transforms"),
        ({**data, "eval_transforms": [flip]}, r"data\.eval_transforms"),
    ):
        with pytest.raises(BadRecipe, match=said):
            preparation(Recipe.model_validate({**RECIPE.model_dump(), "data": wrong}))


def test_files_and_folders_of_images(tmp_path: Path) -> None:
    for name in ("b/2.PNG", "b/a/3.jpg", "b/no.txt", "odd.name"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    found = image_files([tmp_path / "odd.name", tmp_path / "b"])
    assert [str(Path(file).relative_to(tmp_path)) for file in found] == ["odd.name", "b/2.PNG", "b/a/3.jpg"]


# batches


class Numbers:
    """Images 0, 1, 2, …, each of them its own number as one byte; `bad` ones cannot be read."""

    name, classes, mode = "numbers", ("even", "odd"), "L"

    def __init__(self, count: int, bad: Sequence[int] = ()) -> None:
        self.labels = np.arange(count, dtype=np.int32) % 2
        self.bad = bad
        self.read: list[int] = []

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> Sample:
        self.read.append(index)
        if index in self.bad:
            raise BadInput(f"number {index} cannot be read")
        return Sample(bytes([index]), index % 2, f"number {index}", "L")


def prepare(data: np.ndarray, key: np.ndarray) -> np.ndarray:
    time.sleep(0.002 * (int(data[0]) % 3))  # some threads are later than others
    return np.full((1, 2, 2), data[0], np.float32)


@pytest.fixture(scope="module")
def mindspore_worker() -> Any:
    """The worker's file; its import is MindSpore's, for which no other test has to wait."""
    from msmigrate.training import mindspore_inference_worker

    return mindspore_inference_worker


def test_every_image_comes_once_and_in_order(mindspore_worker: Any) -> None:
    found = list(mindspore_worker.batches(Numbers(23), prepare, size=5, workers=4, skip=False))
    assert [len(batch.names) for batch in found] == [5, 5, 5, 5, 3]
    images = np.concatenate([batch.images for batch in found])
    assert images.shape == (23, 1, 2, 2) and images[:, 0, 0, 0].tolist() == list(range(23))
    assert np.concatenate([batch.labels for batch in found]).tolist() == [n % 2 for n in range(23)]
    assert [name for batch in found for name in batch.names] == [f"number {n}" for n in range(23)]
    assert found[-1].done == 23


def test_unreadable_images_are_skipped_with_their_reasons_or_fatal(mindspore_worker: Any) -> None:
    bad = (0, 4, 5, 6, 7, 8, 9, 22)
    found = list(mindspore_worker.batches(Numbers(23, bad), prepare, size=5, workers=4, skip=True))
    assert [len(batch.names) for batch in found] == [5, 5, 5, 0]  # the last image of all is skipped
    assert [skipped for batch in found for skipped in batch.skipped] == [(n, f"number {n} cannot be read") for n in bad]
    with pytest.raises(BadInput, match=r"numbers: number 4 cannot be read \(data\.on_corrupt: skip"):
        list(mindspore_worker.batches(Numbers(23, (4, 9)), prepare, size=5, workers=4, skip=False))


def test_no_more_than_a_few_batches_are_held_ready(mindspore_worker: Any) -> None:
    source = Numbers(100)
    ready = mindspore_worker.batches(source, prepare, size=5, workers=4, skip=False)
    next(ready)
    time.sleep(0.2)
    assert len(source.read) <= 5 + mindspore_worker.AHEAD * 5 + 1
    ready.close()
    assert threading.active_count() < 4


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"gone\.png cannot be read: No such file"):
        ImageFiles([str(tmp_path / "gone.png")], "RGB")[0]


# outputs


def test_scores_are_the_softmaxs() -> None:
    generator = np.random.default_rng(1)
    logits = (generator.normal(size=(9, 7)) * 30).astype(np.float32)
    labels = generator.integers(0, 7, 9)
    scores = Scores(top=3)
    scores.add([f"i{n}" for n in range(4)], labels[:4], logits[:4])
    scores.add([f"i{n}" for n in range(4, 9)], labels[4:], logits[4:])
    found = scores.results([(3, "why")], 1.0, "CPU", {})
    expected = scipy_log_softmax(logits.astype(np.float64), axis=1)
    np.testing.assert_allclose(log_softmax(logits), expected, rtol=1e-12)
    np.testing.assert_allclose(found.losses, -expected[np.arange(9), labels], rtol=1e-12)
    np.testing.assert_array_equal(found.classes, np.argsort(-logits, axis=1)[:, :3])
    np.testing.assert_allclose(found.probabilities, -np.sort(-np.exp(expected), axis=1)[:, :3], rtol=1e-12)


def test_outputs_that_are_not_finite_are_refused() -> None:
    logits = np.zeros((3, 4), np.float32)
    logits[1, 2] = np.nan
    with pytest.raises(BadInput, match="output for b is not finite"):
        Scores(top=1).add(["a", "b", "c"], np.zeros(3, np.int32), logits)
    with pytest.raises(BadInput, match="b is of class 4, and the net has the classes 0 to 3"):
        Scores(top=1).add(["a", "b"], np.array([0, 4], np.int32), np.zeros((2, 4), np.float32))
    with pytest.raises(BadInput, match="not one of the images could be used; gone"):
        Scores(top=1).results([(0, "gone")], 1.0, "CPU", {})


def test_results_survive_the_way_between_processes(tmp_path: Path) -> None:
    scores = Scores(top=2)
    scores.add(["é", "b"], np.array([1, 0]), np.array([[1.0, 2.0], [3.0, 1.0]]))
    stored = scores.results([(1, "why")], 2.5, "CPU", {"numpy": "1"})
    stored.write(tmp_path)
    found = Results.read(tmp_path)
    for name, value in vars(stored).items():
        np.testing.assert_array_equal(getattr(found, name), value)
    assert found.skipped == [(1, "why")]


# the process


def worker(code: str) -> tuple[str, ...]:
    say = "lambda kind, **facts: print(json.dumps({'kind': kind, **facts}), flush=True)"
    return (sys.executable, "-c", f"import json, os, sys\nsay = {say}\n{code}")


@pytest.mark.parametrize(
    ("code", "kind", "said"),
    [
        ("say('failure', error='Unsupported', text='no such thing'); sys.exit(2)", Unsupported, "^no such thing$"),
        (
            "say('failure', error='SystemExit', text='odd'); sys.exit(2)",
            WorkerFailed,
            ": SystemExit: odd$",
        ),
        ("print('first', file=sys.stderr); print('last', file=sys.stderr); sys.exit(3)", WorkerFailed, "code 3: last$"),
        ("os.kill(os.getpid(), 9)", WorkerFailed, "killed by signal 9 .out of memory"),
    ],
)
def test_a_worker_that_stops_is_explained(tmp_path: Path, code: str, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        infer(REQUEST, tmp_path, worker=worker(code))


def test_what_a_worker_does_is_passed_on(tmp_path: Path) -> None:
    """What MindSpore prints between is not, and the request arrives as it was made."""
    write = (
        "from pathlib import Path\nfrom msmigrate.training.inference import Request\n"
        "from msmigrate.training.metrics import Scores\nimport numpy as np\n"
        "request = Request.model_validate_json(Path(sys.argv[1]).read_text())\n"
        "print('[WARNING] MindSpore says this'); print('[1, 2]'); say('progress', what=request.model_dump_json())\n"
        "scores = Scores(1); scores.add(['a'], np.zeros(1, int), np.zeros((1, 2)))\n"
        "say('progress', what='images', done=1, total=1)\n"
        "scores.results([], 1.0, 'CPU', {}).write(Path(sys.argv[1]).parent)"
    )
    heard: list[Message] = []
    found = infer(REQUEST, tmp_path, lambda name, message: heard.append(message), worker(write))
    assert found.names == ["a"]
    first, last = heard
    assert isinstance(first, Progress) and Request.model_validate_json(first.what) == REQUEST
    assert last == Progress("images", done=1, total=1)
