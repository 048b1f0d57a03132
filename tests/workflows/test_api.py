"""The public API: its names are pinned, importing it brings nothing along, its page is fresh."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msmigrate
import pytest
from msmigrate.cli import docs_pages
from msmigrate.errors import BadInput
from msmigrate.workflows import convert_ckpt

NAMES = [
    "__version__",
    "analyze",
    "assert_parity",
    "compare",
    "convert",
    "convert_model",
    "evaluate",
    "export",
    "inspect",
    "parity_step",
    "plan",
    "predict",
    "record",
    "train",
]


def test_the_names_are_these() -> None:
    assert sorted(msmigrate.__all__) == sorted(NAMES)
    assert set(NAMES) <= set(dir(msmigrate))


def test_every_name_is_a_function_the_second_time_too() -> None:
    rooms = [folder.name for folder in Path(msmigrate.__file__).parent.iterdir() if (folder / "__init__.py").is_file()]
    code = (
        f"import importlib, msmigrate; [importlib.import_module(f'msmigrate.{{room}}') for room in {rooms} "
        "if room not in ('tests', 'nn', 'optim')]; "
        f"assert all(callable(getattr(msmigrate, name)) for name in {NAMES[1:]} for _ in (1, 2))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_neither_framework_is_imported_by_asking_for_a_function() -> None:
    code = (
        f"import sys, msmigrate; [getattr(msmigrate, name) for name in {NAMES[1:]}]; "
        "assert not {'torch', 'mindspore', 'torchvision'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", NAMES[1:])
def test_a_docstring_speaks_of_every_argument_and_of_what_is_raised(name: str) -> None:
    function = getattr(msmigrate, name)
    text = inspect.getdoc(function) or ""
    same_as = [other for other in NAMES[1:] if f"those of `{other}`" in text]
    known = text + "".join(inspect.getdoc(getattr(msmigrate, other)) or "" for other in same_as)
    for argument in inspect.signature(function).parameters:
        assert f"{argument}:" in known or f"{argument}, " in known or f", {argument}:" in known, argument
    assert "Raises" in text


def test_the_page_is_fresh() -> None:
    committed = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
    assert committed == docs_pages.api_page(), "python -m msmigrate.cli.docs_pages docs"


WRONG = [
    (lambda: msmigrate.parity_step(steps="3"), "steps is '3': expected a whole number"),
    (lambda: msmigrate.parity_step(steps=True), "steps is True: expected a whole number"),
    (lambda: msmigrate.parity_step(no_replay="yes"), "no_replay is 'yes': expected True or False"),
    (lambda: msmigrate.parity_step(modules="conv1"), "modules is 'conv1': expected a list of texts"),
    (lambda: msmigrate.parity_step(html=3), "html is 3: expected a path"),
    (lambda: msmigrate.parity_step(3), "recipe is 3: expected a path"),
    (lambda: msmigrate.parity_step(step=3), "parity_step has no option 'step'; it has steps, "),
    (lambda: msmigrate.record("torch", 3), "out is 3: expected a path"),
    (lambda: msmigrate.record("jax", "out"), "there is no framework 'jax'"),
    (lambda: msmigrate.compare(3), "one is 3: expected a path"),
    (lambda: msmigrate.train(epochs="x"), "epochs is 'x': expected a whole number"),
    (lambda: msmigrate.train(dry_run=True), "train has no option 'dry_run'"),
    (lambda: msmigrate.export("a.ckpt", "a.mindir", batch="2"), "batch is '2': expected a whole number"),
    (lambda: msmigrate.export(3, "a.mindir"), "checkpoint is 3: expected a path"),
    (lambda: msmigrate.convert_model("a.py:f", "b.py", shapes="1x3"), "shapes is '1x3': expected a list of texts"),
    (lambda: msmigrate.convert_model("a.py:f", "b.py", seed=1.5), "seed is 1.5: expected a whole number"),
    (lambda: msmigrate.convert("a.pth", 3), "destination is 3: expected a path"),
    (lambda: msmigrate.convert("a.pth", "a/", max_shard_size="5GB"), "max_shard_size is '5GB': expected a whole"),
    (lambda: msmigrate.inspect(3), "path is 3: expected a path"),
    (lambda: msmigrate.evaluate(3), "checkpoint is 3: expected a path"),
    (lambda: msmigrate.predict("a.ckpt", [3]), "images is 3: expected a path"),
    (lambda: msmigrate.analyze("torchvision:resnet18", mode="eager"), "mode is one of pynative, graph"),
]


@pytest.mark.parametrize(("call", "said"), WRONG, ids=[said for _, said in WRONG])
def test_a_wrong_value_is_one_sentence_before_anything_starts(call: Callable[[], Any], said: str) -> None:
    with pytest.raises(BadInput) as refused:
        call()
    assert said in str(refused.value) and "\n" not in str(refused.value)


def test_msmigrates_own_nets_have_the_same_name_as_on_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(convert_ckpt.converting, "make_plan", lambda *args, **words: asked.append(words["into"]))
    msmigrate.plan("a.pth", into="msmigrate:resnet50(num_classes=10)")
    assert asked == ["msmigrate.training.models.mindspore_models:build('resnet50', num_classes=10)"]
