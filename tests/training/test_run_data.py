"""What a run's images come to, and what is refused before anything is started."""

from __future__ import annotations

from pathlib import Path

import pytest
from msmigrate.errors import BadInput, MsmigrateError
from msmigrate.training.data import sources
from msmigrate.training.data.random_draws import epoch_order
from msmigrate.training.recipe.schema import Recipe
from msmigrate.training.run.plan import look, shard_size
from PIL import Image


def recipe(classes: int = 10, **data: object) -> Recipe:
    return Recipe.model_validate(
        {
            "model": {"name": "resnet_tiny", "args": {"num_classes": classes}},
            "data": {"source": "digits:train", "batch": 32, **data},
            "optimizer": {"name": "SGD", "args": {"lr": 0.1}},
        }
    )


def tree(folder: Path, **classes: int) -> str:
    """A folder of made-up images, so many of each class."""
    for name, count in classes.items():
        (folder / name).mkdir(parents=True)
        for index in range(count):
            Image.new("RGB", (4, 4)).save(folder / name / f"{index}.png")
    return f"folder:{folder}"


def test_the_digits() -> None:
    found = look(recipe(validation="digits:test"))
    assert (found.training.images, found.training.classes, found.steps_per_epoch) == (1437, 10, 44)
    assert found.validation is not None and found.validation.images == 360
    assert (found.training.smallest, found.training.largest) == (141, 146)
    assert found.warnings == ()


@pytest.mark.parametrize("processes", [1, 2, 3, 8])
@pytest.mark.parametrize("drop_last", [True, False])
def test_a_shard_is_what_the_sampler_deals_out(processes: int, drop_last: bool) -> None:
    for images in (8, 9, 1437):
        order = epoch_order(
            images, seed=1, epoch=0, shuffle=True, drop_last=drop_last, rank=processes - 1, world=processes
        )
        assert shard_size(images, processes, drop_last) == len(order)


def test_steps_count_the_last_batch_unless_it_is_dropped() -> None:
    assert look(recipe(drop_last=False)).steps_per_epoch == 45
    assert look(recipe(), processes=2).steps_per_epoch == 22
    assert look(recipe(), processes=2).shard == 718


def test_looking_reads_no_image(tmp_path: Path) -> None:
    source = tree(tmp_path, cat=3, dog=2)
    for file in tmp_path.glob("*/*.png"):
        file.write_bytes(b"no image at all")
    found = look(recipe(2, source=source, batch=2))
    assert (found.training.smallest, found.training.largest, found.steps_per_epoch) == (2, 3, 2)


REFUSED = [
    ({"source": "folder:/none/there"}, {}, "there is no folder /none/there"),
    ({"validation": "folder:/none/there"}, {}, "there is no folder /none/there"),
    ({"classes": 4}, {}, "num_classes"),
    ({"batch": 2000}, {}, "batch 2000 is larger than what one process gets: 1437 images; lower data.batch to 1437"),
    ({}, {"processes": 100}, "over 100 processes are 14 each; lower data.batch to 14 or less, or set data.drop_last"),
]


@pytest.mark.parametrize(("options", "more", "said"), REFUSED)
def test_what_cannot_be_trained_on_is_one_line(options: dict[str, object], more: dict[str, int], said: str) -> None:
    with pytest.raises(MsmigrateError) as caught:
        look(recipe(**options), **more)  # type: ignore[arg-type]
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_a_label_out_of_range_names_the_image(monkeypatch: pytest.MonkeyPatch) -> None:
    original = sources.open_source

    def damaged(source: str, classes: int, *, training: bool) -> sources.Source:
        opened = original(source, classes, training=training)
        opened.labels[7] = 10
        return opened

    monkeypatch.setattr(sources, "open_source", damaged)
    with pytest.raises(BadInput, match="digits:train: image 7 has label 10, and the model's 10 classes are 0 to 9"):
        look(recipe())


@pytest.mark.parametrize(
    ("classes", "said"),
    [
        ({"cat": 1}, "has no class 'dog'"),
        ({"cat": 1, "cow": 1, "dog": 1}, "has a class 'cow' that training has not"),
        ({"cat": 1, "cow": 1}, "has no class 'dog'"),
    ],
)
def test_a_validation_set_of_other_classes_is_refused(tmp_path: Path, classes: dict[str, int], said: str) -> None:
    source, held_out = tree(tmp_path / "train", cat=2, dog=2), tree(tmp_path / "val", **classes)
    with pytest.raises(BadInput, match=said):
        look(recipe(3, source=source, validation=held_out, batch=2))


def test_what_may_be_a_mistake_is_a_warning(tmp_path: Path) -> None:
    source = tree(tmp_path, cat=2, dog=2)
    found = look(recipe(10, source=source, validation=source, batch=2))
    assert len(found.warnings) == 2
    assert (
        "2 classes and the model 10" in found.warnings[0]
        and "data.validation is the training data" in found.warnings[1]
    )


def test_a_source_with_test_images_of_its_own_is_no_mistake(tmp_path: Path) -> None:
    assert look(recipe(10, source="synthetic:64", validation="synthetic:64", batch=2)).warnings == ()
