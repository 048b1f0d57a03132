"""What a command line names and is not there, or is not what it should be, is one line before any framework starts."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from msmigrate import assert_parity
from msmigrate.cli import group as cli
from msmigrate.cli import inputs
from msmigrate.cli.inputs import Input
from msmigrate.errors import MsmigrateError
from msmigrate.migrate.checkpoint.convert import convert
from msmigrate.parity.job import Pair, ParityJob
from msmigrate.parity.run import parity_step
from msmigrate.training.recipe import reader as recipes
from safetensors.numpy import save_file

TINY = Path(__file__).parent.parent / "parity" / "tiny.yaml"
NET = """
from functools import partial
import math as build_of_math
number = 3
made = partial(print)
class Net:
    def __init__(self, depth): ...
def build(classes=10): ...
def needs(depth): ...
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with right and wrong files of every kind, which is the working directory; no process may start."""
    image, labels = np.ones((4, 3, 8, 8), np.float32), np.arange(4)
    (tmp_path / "net.py").write_text(NET)
    (tmp_path / "net.txt").write_text(NET)
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "folder.pth").mkdir()
    (tmp_path / "broken.py").write_text("import os\ndef build(:\n")
    (tmp_path / "latin.py").write_bytes(b"name = '\xe9'\ndef build(): ...\n")
    (tmp_path / "text.pth").write_text("no checkpoint")
    (tmp_path / "empty.pth").write_bytes(b"")
    np.savez(tmp_path / "arrays.npz", a=image)
    (tmp_path / "arrays.npz").rename(tmp_path / "arrays.pth")
    (tmp_path / "cut.pth").write_bytes((tmp_path / "arrays.pth").read_bytes()[:200])
    save_file({"fc.weight": image}, tmp_path / "right.safetensors")
    np.savez(tmp_path / "right.npz", images=image, labels=labels)
    np.savez(tmp_path / "unlabelled.npz", images=image)
    np.savez(tmp_path / "double.npz", images=image.astype(np.float64), labels=labels)
    (tmp_path / "text.npz").write_text("no archive")
    (tmp_path / "cut.npz").write_bytes((tmp_path / "right.npz").read_bytes()[:300])
    (tmp_path / "cut.safetensors").write_bytes((tmp_path / "right.safetensors").read_bytes()[:100])
    (tmp_path / "regex.yaml").write_text("- {torch: '(', mindspore: x}\n")
    (tmp_path / "mapping.yaml").write_text("torch: fc\n")
    (tmp_path / "no.yaml").write_text("- [\n")
    (tmp_path / "text.mindir").write_text("no MindIR")
    os.mkfifo(tmp_path / "pipe.py")
    os.mkfifo(tmp_path / "pipe.pth")
    os.mkfifo(tmp_path / "pipe.npz")

    class Watched(subprocess.Popen):
        def __init__(self, command: Any, *words: Any, **options: Any) -> None:
            assert sys.executable not in command, f"a process was started: {command}"  # NumPy starts lscpu
            super().__init__(command, *words, **options)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(subprocess, "Popen", Watched)
    return tmp_path


Wrong = Sequence[tuple[str, str]]  # words, and what is said of them
MODEL: Wrong = [
    ("nowhere.py:build", "there is no file nowhere.py"),
    ("folder.py:build", "folder.py is a folder"),
    ("pipe.py:build", "pipe.py cannot be read: it is a pipe"),
    ("broken.py:build", "broken.py:2: "),
    ("latin.py:build", "latin.py"),
    ("net.py:bild", "net.py has no function bild; did you mean build?"),
    ("net.py:depth", "net.py has no function depth; it has Net, build, needs"),
    ("net.py:number", "net.py:4: number is no function"),
    ("net.py:needs", "net.py:9: needs needs depth: give it, as in net.py:needs(depth=…)"),
    ("net.py:Net", "net.py:7: Net needs depth"),
    ("net.py:build(clases=3)", "net.py:8: build has no argument clases; did you mean classes?"),
    ("net.py:build(1, 2)", "net.py:8: build takes at most 1 arguments by position, and gets 2"),
    ("net.txt:build", "net.txt"),
    ("net.py:build(", "does not name a model"),
    ("nowhere.module:build", "there is no module nowhere.module"),
    ("xml.nowhere:build", "there is no module xml.nowhere"),
    ("xml.dom:build", "xml.dom has no function build"),
    ("msmigrate:resnet19", "no model is called 'resnet19'; did you mean resnet"),
]
TORCH: Wrong = [
    *MODEL,
    ("torchvision:resnet19", "torchvision has no model resnet19; did you mean resnet18"),
    ("timm:vit_tinny_patch16_224", "timm has no model vit_tinny_patch16_224; did you mean vit_tiny_patch16_224"),
    ("mindcv:resnet18", "mindcv:resnet18 is not torch's"),
]
MINDSPORE: Wrong = [*MODEL, ("torchvision:resnet18", "torchvision:resnet18 is not MindSpore's: name a MindSpore model")]
FILE: Wrong = [("nowhere.yaml", "there is no file nowhere.yaml"), ("folder.py", "folder.py"), ("pipe.py", "pipe.py")]
CHECKPOINT: Wrong = [
    ("nowhere.pth", "there is no file nowhere.pth"),
    ("text.pth", "text.pth is no checkpoint of torch or MindSpore"),
    ("empty.pth", "empty.pth is empty"),
    ("arrays.pth", "arrays.pth"),
    ("cut.pth", "cut.pth"),
    ("pipe.pth", "pipe.pth cannot be read: it is a pipe"),
]
BATCH: Wrong = [
    ("nowhere.npz", "there is no file nowhere.npz"),
    ("folder.pth", "folder.pth: a batch is a file of .npz or .safetensors, or folder:PATH"),
    ("net.txt", "net.txt: a batch is a file of .npz or .safetensors"),
    ("text.npz", "text.npz"),
    ("cut.npz", "cut.npz"),
    ("cut.safetensors", "the file was cut short"),
    ("pipe.npz", "pipe.npz: cannot be read: it is a pipe"),
    ("unlabelled.npz", "unlabelled.npz: it lacks one of them; expected images"),
    ("double.npz", "double.npz: images is float64; save it as float32"),
    ("right.safetensors", "right.safetensors: has 'fc.weight'; expected images"),
    ("folder:nowhere", "there is no folder nowhere"),
]
MAP: Wrong = [
    ("nowhere.yaml", "nowhere.yaml: there is no such file"),
    ("folder.py", "folder.py"),
    ("regex.yaml", "regex.yaml:1: '(' is no regular expression"),
    ("mapping.yaml", "mapping.yaml: expected a list"),
    ("no.yaml", "no.yaml"),
]
WRONG: dict[Input, Wrong] = {
    inputs.TORCH_MODEL: TORCH,
    inputs.MINDSPORE_MODEL: MINDSPORE,
    inputs.EXPORTED_MODEL: [("torchvision:resnet19", "torchvision has no model resnet19"), *MODEL],
    inputs.RECIPE_OR_MODEL: [*FILE, ("net.py:bild", "has no function bild"), ("torchvision:resnet19", "no model")],
    inputs.OPTIMIZER: TORCH,
    inputs.CHECKPOINT: [*CHECKPOINT, ("folder.pth", "folder.pth")],
    inputs.TORCH_WEIGHTS: [
        *CHECKPOINT,
        ("folder.pth", "folder.pth"),
        ("right.safetensors", "right.safetensors was not written by torch.save, so torch cannot load it"),
    ],
    inputs.NET: [*CHECKPOINT, ("nowhere.mindir", "there is no file nowhere.mindir")],
    inputs.BATCH_FILE: BATCH,
    inputs.NAME_MAP: MAP,
    inputs.RECIPE: [*FILE, ("resnet5", "no recipe of that name; did you mean resnet50")],
    inputs.PARITY_REPORT: [(word, f"{said}") for word, said in FILE],
    inputs.FILE_OR_FOLDER: [
        ("nowhere", "there is no file nowhere"),
        ("pipe.py", "pipe.py cannot be read: it is a pipe"),
    ],
    inputs.IMAGES: [
        ("folder:nowhere", "there is no folder nowhere"),
        ("./nowhere", "there is no folder ./nowhere"),
        (
            "photograph",
            "there is no folder photograph, and there is no source 'photograph'; did you mean 'photographs'",
        ),
    ],
}
BEFORE = {"eval data": ["right.safetensors"]}  # the arguments that stand before one
# what commands write, and so may not be there
WRITTEN = {"out", "html", "json_file", "junit", "markdown", "keep", "write_map", "parity_report", "page", "recipe"}


def parameters() -> Iterator[tuple[str, click.Parameter]]:
    for name, command in cli.commands_of(cli.cli).items():
        for group in [command] if not isinstance(command, click.Group) else cli.commands_of(command).values():
            yield from ((name, parameter) for parameter in group.params)


PLACES = [
    (command, parameter, word, said)
    for command, parameter in parameters()
    for word, said in WRONG.get(parameter.type, ())  # type: ignore[call-overload]
]


def refused(words: Sequence[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """The one line that a command line gets, with exit code 2."""
    monkeypatch.setattr(sys, "argv", ["msmigrate", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    done = capsys.readouterr()
    assert ended.value.code == 2 and done.out == "", done
    path = f"msmigrate {words[0]}: "
    assert done.err.startswith(path) and done.err.count("\n") == 1, done.err
    return done.err.removeprefix(path)


@pytest.mark.parametrize(
    ("command", "parameter", "word", "said"), PLACES, ids=[f"{c} {p.name} {word}" for c, p, word, _ in PLACES]
)
def test_what_is_wrong_is_one_line_before_a_framework_starts(
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    parameter: click.Parameter,
    word: str,
    said: str,
) -> None:
    side = {"record": ["--framework", getattr(parameter.type, "framework", "torch")]}.get(command, [])
    if isinstance(parameter, click.Option):
        line = refused([command, f"{parameter.opts[-1]}={word}", *side], monkeypatch, capsys)
        assert line.startswith(f"{max(parameter.opts, key=len)}: ")
    else:
        line = refused([command, *side, *BEFORE.get(f"{command} {parameter.name}", []), word], monkeypatch, capsys)
    assert said in line


def test_every_kind_of_input_is_tried_somewhere() -> None:
    tried = {id(parameter.type) for _, parameter, _, _ in PLACES}
    kinds = {name: kind for name, kind in vars(inputs).items() if isinstance(kind, Input)}
    assert [name for name, kind in kinds.items() if id(kind) not in tried] == ["READ_FIRST"]
    assert len(PLACES) > 200


def test_every_parameter_that_names_something_to_read_is_checked() -> None:
    unchecked = [
        f"{command} {parameter.name}"
        for command, parameter in parameters()
        if not isinstance(parameter.type, Input)
        and (isinstance(parameter.type, click.Path) or parameter.metavar in ("SPEC", "MODEL", "CKPT"))
        and parameter.name not in (*WRITTEN, "mappings")
    ]
    assert set(unchecked) == {"data folder", "data into"}  # which starts no framework


# What is wrong elsewhere than in a word of the command line


def recipe(folder: Path, text: str) -> str:
    (folder / "recipe.yaml").write_text(f"{text}\noptimizer: {{name: SGD, args: {{lr: 0.1}}}}\n")
    return "recipe.yaml"


RECIPES = {
    "no checkpoint": ("model: {name: lenet5, checkpoint: none.pth}", "none.pth"),
    "no torch checkpoint": (
        "model: {name: lenet5, checkpoint: right.safetensors}",
        "right.safetensors was not written by torch.save",
    ),
    "text as checkpoint": ("model: {name: lenet5, checkpoint: text.pth}", "text.pth is no checkpoint"),
    "no images": ("model: {name: lenet5}\ndata: {source: 'folder:none'}", "there is no folder"),
    "no CIFAR": ("model: {name: lenet5}\ndata: {source: 'cifar10:none'}", "there is no folder"),
    "no source": ("model: {name: 'torchvision:resnet18', source: none.py}", "none.py"),
    "a broken source": ("model: {name: 'torchvision:resnet18', source: broken.py}", "broken.py is no Python"),
    "a zoo's model and no checkpoint": ("model: {name: 'torchvision:resnet18', checkpoint: none.pth}", "none.pth"),
}


@pytest.mark.parametrize("case", RECIPES)
@pytest.mark.parametrize("command", ["parity-step", "record", "train"])
def test_what_a_recipe_names_is_looked_for_first(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str, case: str
) -> None:
    text, said = RECIPES[case]
    more = {"record": ["--framework", "torch", "-o", "new"], "train": ["--out", "new"]}.get(command, [])
    line = refused([command, recipe(here, text), *more], monkeypatch, capsys)
    assert said in line
    assert case != "no source" or "there is no file " in line or "none.py cannot be read: No such file" in line
    assert not (here / "new").exists()


WORDS: dict[str, tuple[list[str], str]] = {
    "analyze, no function": (["analyze", "net.py:bild"], "net.py has no function bild; did you mean build?"),
    "analyze, no file": (["analyze", "nowhere.py:build"], "there is no file nowhere.py"),
    "analyze, a zoo": (["analyze", "torchvision:resnet19"], "torchvision has no model resnet19"),
    "analyze, a script": (["analyze", "nowhere.py"], "nowhere.py"),
    "analyze, ONNX": (["analyze", "nowhere.onnx"], "there is no file nowhere.onnx"),
    "serve, no MindIR": (["serve", "text.mindir"], "text.mindir is no MindIR"),
    "export, a folder": (["export", "folder.pth", "-o", "x.mindir"], "folder.pth is a folder"),
    "export, a model": (
        ["export", "right.safetensors", "-o", "x.onnx", "--format", "onnx", "--model", "resnet5"],
        "resnet5",
    ),
    "predict, an image": (["predict", "right.safetensors", "nowhere.png"], "nowhere.png"),
    "compare": (["compare", "folder.py"], "no run.json"),
    "record, with": (["record", "--framework", "mindspore", "-o", "x", "--with", "folder.py"], "no run.json"),
    "convert-ckpt": (["convert-ckpt", "text.pth", "x.ckpt", "--into", "net.py:build"], "text.pth is no checkpoint"),
    "both of a pair": (
        ["parity-step", "--torch", "net.py:build", "--mindspore", "net.py:build", "--batch-file", "unlabelled.npz"],
        "it lacks one of them",
    ),
    "a torch model alone": (["parity-step", "--torch", "net.py:build", "--map", "regex.yaml"], "no regular expression"),
}


@pytest.mark.parametrize("case", WORDS)
def test_what_a_command_reads_itself_is_one_line_too(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    words, said = WORDS[case]
    assert said in refused(words, monkeypatch, capsys)


def test_a_half_asks_for_nothing_that_the_other_machine_has(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["record", "--framework", "mindspore", "-o", "new", "--torch", "nowhere.py:build", "--ckpt", "nowhere.pth"]
    line = refused([*words, "--mindspore", "net.py:build"], monkeypatch, capsys)
    assert "give torch's trace with --with" in line


def of_python(here: Path) -> list[tuple[Callable[[], object], str]]:
    right, tiny = "net.py:build", recipes.load(TINY)

    def step(**more: Any) -> object:
        pair = Pair(**{"torch": right, "mindspore": right, **more})
        return parity_step(TINY, ParityJob(tiny, here / "run", pair=pair))

    return [
        (lambda: assert_parity("net.py:bild", right), "--torch net.py:bild: net.py has no function bild"),
        (lambda: assert_parity(right, "nowhere.py:f"), "--mindspore nowhere.py:f: there is no file nowhere.py"),
        (lambda: assert_parity(right, right, ckpt="text.pth"), "text.pth is no checkpoint"),
        (lambda: assert_parity(right, right, batch_file="unlabelled.npz"), "it lacks one of them"),
        (lambda: assert_parity(right, right, map_file="regex.yaml"), "regex.yaml:1: '(' is no regular expression"),
        (lambda: step(torch="broken.py:build"), "broken.py:2: "),
        (lambda: step(checkpoint=Path("right.safetensors")), "was not written by torch.save"),
        (
            lambda: convert("right.safetensors", "x.ckpt", into="net.py:bild"),
            "--into net.py:bild: net.py has no function",
        ),
        (
            lambda: convert("right.safetensors", "x.ckpt", model="nowhere.py:f"),
            "--model nowhere.py:f: there is no file",
        ),
    ]


@pytest.mark.parametrize("number", range(9))
def test_programs_get_the_same(here: Path, number: int) -> None:
    call, said = of_python(here)[number]
    with pytest.raises(MsmigrateError) as error:
        call()
    assert said in str(error.value) and "\n" not in str(error.value)
    assert not (here / "run").exists() and len(of_python(here)) == 9
