"""`msmigrate predict`: torch's probabilities, class names from several places, and images that cannot be read."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msmigrate.errors import BadInput, WorkerFailed
from msmigrate.option_fields import STDOUT
from msmigrate.workflows.evaluate import run_predict
from plain_lines import besides_progress
from scipy.special import softmax
from trained_digits import RECIPE, WORDS, Trained


def predict(checkpoint: Path, *images: Path, **options: Any) -> int:
    return run_predict(checkpoint, images, **{"json_file": STDOUT, **options})


def files(trained: Trained) -> list[Path]:
    return sorted(trained.tree.rglob("*.png"))


def test_probabilities_are_torchs_and_damage_is_told(
    trained: Trained, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mixed = tmp_path / "mixed"
    (mixed / "below").mkdir(parents=True)
    chosen = files(trained)[:7]
    for file in chosen:
        shutil.copy(file, mixed / "below")
    (mixed / "below" / "0cut.png").write_bytes(chosen[0].read_bytes()[:60])
    (mixed / "notes.txt").write_text("not an image, and not asked for")
    (tmp_path / "asked for").write_text("not an image, but asked for")
    assert predict(trained.own, mixed, tmp_path / "asked for", batch=3, top=3) == 2
    told = capsys.readouterr()
    found = json.loads(told.out)
    assert [Path(one["image"]).name for one in found["predictions"]] == sorted(file.name for file in chosen)
    for one in found["predictions"]:
        logits = trained.logits[int(Path(one["image"]).stem)].astype(np.float64)
        likeliest = np.argsort(-logits)[:3]
        assert [known["class"] for known in one["classes"]] == [WORDS[index] for index in likeliest]
        assert [known["index"] for known in one["classes"]] == likeliest.tolist()
        probabilities = [known["probability"] for known in one["classes"]]
        np.testing.assert_allclose(probabilities, softmax(logits)[likeliest], rtol=0, atol=1e-5)
    assert [one["image"] for one in found["errors"]] == [str(mixed / "below" / "0cut.png"), str(tmp_path / "asked for")]
    lines = told.err.splitlines()
    assert len(lines) == 2 and all(line.startswith("msmigrate: ") for line in lines)
    assert "0cut.png cannot be decoded" in lines[0] and "asked for is not an image" in lines[1]


def test_the_command_prints_a_table_with_given_names(trained: Trained, tmp_path: Path) -> None:
    """From a torch checkpoint, which knows no names; more classes are asked for than there are."""
    names = tmp_path / "names.txt"
    names.write_text("\n".join(word.upper() for word in WORDS) + "\n")
    image = files(trained)[0]
    command = [sys.executable, "-m", "msmigrate", "predict", trained.torch, image, "--recipe", RECIPE]
    done = subprocess.run([*command, "--classes", names, "--top", "11"], capture_output=True, text=True)
    assert (done.returncode, besides_progress(done.stderr)) == (0, ""), done
    expected = [WORDS[index].upper() for index in np.argsort(-trained.logits[int(image.stem)])]
    words = done.stdout.split()
    assert [word for word in words if word in {name.upper() for name in WORDS}] == expected


@pytest.mark.full
def test_one_batch_of_everything_is_as_single_images(trained: Trained, capsys: pytest.CaptureFixture[str]) -> None:
    chosen = files(trained)[:5]
    assert predict(trained.own, *chosen, ema=True) == 0
    together = json.loads(capsys.readouterr().out)["predictions"]
    assert predict(trained.own, *chosen, ema=True, batch=1) == 0
    alone = json.loads(capsys.readouterr().out)["predictions"]
    for one, other in zip(together, alone, strict=True):
        likeliest = [known["probability"] for known in one["classes"]], [k["probability"] for k in other["classes"]]
        np.testing.assert_allclose(*likeliest, rtol=0, atol=1e-6)
        logits = trained.ema_logits[int(Path(one["image"]).stem)]
        assert one["classes"][0]["class"] == WORDS[logits.argmax()]


def text(folder: Path, content: bytes) -> Path:
    (folder / "names.txt").write_bytes(content)
    return folder / "names.txt"


REFUSED: dict[str, Any] = {
    "no file": (lambda t, d: ([d / "none.png"], {}), "there is no file or folder"),
    "an empty folder": (lambda t, d: ([d], {}), "has no images in it"),
    "no names": (lambda t, d: ([t.tree], {"classes": d / "none.txt"}), "cannot be read"),
    "names that are no text": (lambda t, d: ([t.tree], {"classes": text(d, b"\xff\xfe\n")}), "not text in UTF-8"),
    "too few names": (lambda t, d: ([t.tree], {"classes": text(d, b"a\nb\n")}), "names 2 classes and the model"),
    "a tree without classes": (lambda t, d: ([t.tree], {"classes": d}), "has no folders in it"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_predicted_is_refused_before_a_framework_starts(
    trained: Trained, tmp_path: Path, case: str
) -> None:
    arguments, words = REFUSED[case]
    images, options = arguments(trained, tmp_path)
    with pytest.raises(BadInput, match=words) as caught:
        predict(trained.own, *images, worker=("/bin/false",), **options)
    assert "\n" not in str(caught.value)


def test_names_may_be_those_of_a_tree(trained: Trained) -> None:
    """Ten class folders are ten names: the work goes on as far as the net."""
    with pytest.raises(WorkerFailed):
        predict(trained.own, trained.tree, classes=trained.tree, worker=("/bin/false",))


@pytest.mark.full
def test_no_image_at_all_is_an_error(trained: Trained, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"")
    with pytest.raises(BadInput, match=r"not one of the images could be used; .*a\.png is not an image"):
        predict(trained.own, tmp_path)
