"""Whatever is wrong in a recipe, and wherever, is told in one line with file, line and key, and is never a traceback.

Every recipe of the project, and every part that the mapping table has, is changed at every key: another word for the
key, the key left out, and values of every kind in its place. The quick run takes a drawn sample, `-m full` a larger.
"""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable, Iterator
from functools import partial, reduce
from pathlib import Path
from typing import Any

import msmigrate
import pytest
import yaml
from msmigrate.errors import BadRecipe, Unsupported
from msmigrate.mappings import table
from msmigrate.mappings.rows import Argument
from msmigrate.training.recipe.check import HANDED_OVER, LOSSES, OUTSIDE
from msmigrate.training.recipe.part_arguments import AFTER_TO_TENSOR, DRAWABLE
from msmigrate.training.recipe.reader import load
from msmigrate.training.recipe.schema import Recipe
from msmigrate.training.run import plan

ROOT = Path(msmigrate.__file__).parent
SMALL = {"model": {"name": "lenet5"}, "optimizer": {"name": "SGD"}}
HALF = "half-a-character"  # stands for one, which YAML's writer refuses and its reader takes
PLAIN = ("Resize", "CenterCrop", "Pad", "Grayscale", "ToTensor", "Normalize")  # transforms that draw nothing
REQUIRED = {
    "milestones": [1],
    "lr_lambda": "factors.py:warm_up",
    "schedulers": [{"name": "StepLR", "args": {"step_size": 2}}, {"name": "LinearLR"}],
    "mean": [0.5],
    "std": [0.5],
}
# what the project's recipes leave out
RARE: list[dict[str, Any]] = [
    {"model": {"name": "resnet_tiny", "args": {"block": "basic", "layers": [1, 1, 1, 1]}, "checkpoint": "start.pth"}},
    {"model": {"name": "timm:vit_tiny_patch16_224", "args": {"num_classes": 3}, "source": "vit.py"}},
    {"model": "torchvision:resnet18(num_classes=10)"},
    {"data": {"validation": "folder:x", "fast_transforms": True, "shuffle": False, "cache": True, "drop_last": False}},
    {"data": {"eval_transforms": [{"name": "Pad", "args": {"padding": [1, 2], "fill": 0}}, {"name": "ToTensor"}]}},
    {"optimizer": {"name": "AdamW", "groups": [{"params": ["fc*"], "args": {"lr": 0.1, "betas": [0.9, 0.99]}}]}},
    {"schedule": {"name": "ChainedScheduler", "args": {"schedulers": [{"name": "StepLR", "args": {"step_size": 2}}]}}},
    {"train": {"all_reduce_fusion": [1, 2], "finite": "loss", "watch": {"unchanged": True, "large_change": 0.1}}},
    {"train": {"target": "CPU", "mode": "graph", "device_id": 0, "max_steps": 3, "checkpoint_steps": 2}},
    {"ema": {"decay": 0.9, "min_decay": 0.1, "update_after_step": 1, "warmup_power": 0.5}, "loss_scale": 8},
]
FITS = {"data": ("accumulate",), "mixup": ("loss",), "dynamic_loss_scale": ("loss_scale",)}  # told there
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2.5, -0.5, 10**17, 10**18, 1e308, float("nan"), float("inf")),
    *("", "x", "SGD", "ToTensor", "resnet50", "timm:x", "torchvision:resnet18(num_classes='x')", "folder:x"),
    *("~nobody-here/x", "folder:~nobody-here/x", "\x1b[31m", "\0", HALF, "x" * 5000, "a:b(" * 1500),
    *(f"timm:x(a={'[' * 300}{']' * 300})", f"timm:x(a=0x{'f' * 4000})", f"timm:x(a={'-' * 4000}1)"),
    *([], [None], [1], [[]], [{}], ["a", "b"], [1, 2, 3], [0.5, 0.5], [{"name": "ToTensor"}], [{"name": None}]),
    *({}, {"a": 1}, {1: 2}, {"name": "SGD"}, {"name": None}, {"name": []}, {"a": {"b": [None, {"c": float("nan")}]}}),
)
Place = tuple[Any, ...]


def recipes() -> Iterator[dict[str, Any]]:
    """The project's own recipes, whole."""
    for file in sorted(ROOT.rglob("*.yaml")):
        text = file.read_text(encoding="utf-8")
        if text.startswith("model:") or "\nmodel:" in text:
            yield yaml.load(text, yaml.CSafeLoader)


def parts() -> Iterator[dict[str, Any]]:
    """Small recipes: each with one section of the project's, with what those leave out, and with each of the table's
    optimizers, schedules, losses and transforms with all of its arguments."""
    sections = {json.dumps(item, default=str): item for whole in recipes() for item in whole.items()}
    yield from ({**SMALL, key: section} for key, section in sections.values())
    yield from ({**SMALL, **rare} for rare in RARE)
    for kind in ("optimizer", "schedule", "loss", "transform"):
        for row in table.rows(kind):
            if row.mindspore is None or row.torch in OUTSIDE or (kind == "loss" and row.short not in LOSSES):
                continue
            args = {given.torch: _fit(given) for given in row.arguments if given.torch not in HANDED_OVER}
            part = {"name": row.short, "args": args}
            if kind != "transform":
                yield {**SMALL, kind: part}
            elif row.short in (*PLAIN, *DRAWABLE):
                before = [{"name": "ToTensor"}] if row.short in AFTER_TO_TENSOR else []
                yield {**SMALL, "data": {"transforms": [*before, part]}}


def _fit(argument: Argument) -> Any:
    """A value that an argument takes."""
    if argument.only:
        return argument.only[0]
    return REQUIRED.get(argument.torch, 1) if argument.required else argument.default


def places(tree: Any, at: Place = ()) -> Iterator[Place]:
    """Every key and index on the way to everything in a tree."""
    for key, item in tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ():
        yield (*at, key)
        yield from places(item, (*at, key))


Change = tuple[dict[str, Any], Place, Callable[[Any, Any], None]]


def changes(tree: dict[str, Any]) -> Iterator[Change]:
    """A recipe, where it is changed, and what changes it, given what holds the key there, and the key."""
    for place in places(tree):
        if isinstance(place[-1], str):
            for word in (f"{place[-1]}x", place[-1][1:], place[-1].upper(), f"{place[-1]}\x1b"):
                yield tree, place, partial(_renamed, word)
        yield tree, place, lambda holder, key: holder.pop(key)
        for value in ODD:
            yield tree, place, partial(_replaced, value)


def _renamed(word: str, holder: dict[str, Any], key: str) -> None:
    items = [(word if name == key else name, item) for name, item in holder.items()]
    holder.clear()
    holder.update(items)


def _replaced(value: Any, holder: Any, key: Any) -> None:
    holder[key] = copy.deepcopy(value)


def written(tree: dict[str, Any], place: Place = (), change: Callable[[Any, Any], None] | None = None) -> str:
    """A recipe as YAML, in ASCII, so that every character can stand in it."""
    tree = copy.deepcopy(tree)
    if change is not None:
        change(reduce(lambda holder, key: holder[key], place[:-1], tree), place[-1])
    text: str = yaml.dump(tree, Dumper=yaml.CSafeDumper, sort_keys=False, width=1 << 20)
    return text.replace(HALF, '"\\ud800"')


def check(file: Path, place: Place, text: str) -> bool:
    """Whether a changed recipe is still one; what is said of it otherwise is one line that leads to the change."""
    file.write_text(text, encoding="ascii")
    try:
        recipe = load(file)
    except (BadRecipe, Unsupported) as error:
        said = str(error)
        found = re.fullmatch(rf"{re.escape(str(file))}:(\d+): (.+)", said)
        assert found, said
        assert found[2].isprintable() and len(said) < 800, said
        # it leads into the changed section, or to what has to fit it
        sections = (place[0], *FITS.get(place[0], ()))
        assert any(int(found[1]) in lines(file, section) for section in sections), said
        keys = [str(key).lower() for key in (*place, *sections) if type(key) is str]
        # half of a character is no YAML at all, so that no key is known yet, but the text of the line is shown
        assert any(key in found[2].lower() for key in keys) or r"\\ud800" in found[2], said
        return False
    Recipe.model_validate_json(recipe.model_dump_json())
    assert len(recipe.digest) == 16 if recipe.model.source is None else True
    plan.warnings(recipe.schedule, 10, 2)
    return True


def lines(file: Path, section: str) -> range:
    """The lines of a section; all of them where it has another name now, or is left out."""
    pairs = yaml.compose(file.read_text(encoding="ascii"), yaml.SafeLoader).value
    found = next(((key, node) for key, node in pairs if key.value == section), (pairs[0][0], pairs[-1][1]))
    return range(found[0].start_mark.line + 1, found[1].end_mark.line + 2)


def test_every_recipe_is_one_before_it_is_changed(tmp_path: Path) -> None:
    for tree in (*recipes(), *parts()):
        (tmp_path / "page.yaml").write_text(written(tree), encoding="ascii")
        load(tmp_path / "page.yaml")


def test_what_is_wrong_in_a_recipe_is_one_line_with_its_place(tmp_path: Path) -> None:
    every = [change for tree in parts() for change in changes(tree)]
    drawn = random.Random(0).sample(every, 2500)
    fit = sum(check(tmp_path / "page.yaml", change[1], written(*change)) for change in drawn)
    assert 50 < fit < 1000


@pytest.mark.full
def test_what_is_wrong_anywhere_is_one_line_with_its_place(tmp_path: Path) -> None:
    every = [change for tree in (*parts(), *recipes()) for change in changes(tree)]
    for change in random.Random(1).sample(every, 30_000):
        check(tmp_path / "page.yaml", change[1], written(*change))
