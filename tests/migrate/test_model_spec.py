"""A model's name is checked by reading: what is not there is refused, and what cannot be known is let through."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from msmigrate.errors import BadInput, WorkerFailed
from msmigrate.migrate.model_spec import (
    ask,
    called,
    check,
    function,
    one_start,
    parse,
    place_in_model,
    place_of,
    with_words,
)
from msmigrate.parity.job import ParityJob

# what binds `build` at the top of a file, or may do so
BOUND = {
    "a function": "def build(): ...",
    "a function with defaults": "def build(classes=10, *, width=4, **more): ...",
    "a decorated one": "import functools\n@functools.cache\ndef build(depth): ...",
    "a class": "class build: ...",
    "a class whose base makes it": "from torch import nn\nclass build(nn.Linear): ...",
    "an assignment": "from functools import partial\nbuild = partial(print)",
    "an annotated one": "from collections.abc import Callable\nbuild: Callable = print",
    "a tuple": "other, (build, *rest) = print, (print, 1)",
    "a lambda": "build = lambda: None",
    "another name": "def make(): ...\nbuild = make",
    "a walrus": "if (build := print): ...",
    "a walrus in a comprehension": "[build := each for each in (print,)]",
    "an import": "from somewhere import build",
    "a renamed import": "from somewhere import make as build",
    "a module": "import build.of.it",
    "under if": "import os\nif os.name == 'posix':\n    def build(): ...\nelse:\n    other = 1",
    "under else": "if 0:\n    other = 1\nelse:\n    def build(): ...",
    "under try": "try:\n    from fast import build\nexcept ImportError:\n    def build(): ...",
    "under finally": "try:\n    pass\nfinally:\n    build = print",
    "under with": "import contextlib\nwith contextlib.suppress(Exception) as build: ...",
    "a loop": "for build in (print,): ...",
    "a loop's body": "for each in (1,):\n    while True:\n        build = print\n        break",
    "a match": "match print:\n    case build: ...",
    "the rest of a match": "match {}:\n    case {**build}: ...",
    "import *": "from somewhere import *",
    "a global": "def setup():\n    global build\n    build = print\nsetup()",
    "globals()": "globals().update(build=print)",
    "exec": "exec('def build(): ...')",
    "__getattr__": "def __getattr__(name): return print",
    "its own module": "import sys\nsys.modules[__name__].build = print",
    "several times": "build = None\ndef build(): ...",
    "an odd escape": "text = '\\d'\ndef build(): ...",
    "another encoding": "# coding: latin-1\nname = '\xe9'\ndef build(): ...",
}
UNBOUND = {
    "nothing": ("", "net.py has no function build"),
    "inside a function": ("def make():\n    def build(): ...", "net.py has no function build; it has make"),
    "inside a class": ("class Net:\n    def build(self): ...", "net.py has no function build; it has Net"),
    "where it is run": ("def bild(): ...\nif __name__ == '__main__':\n    build = bild", "did you mean bild"),
    "for types only": (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from x import build",
        "no function build",
    ),
    "another global": ("def setup():\n    global made\n    made = 1", "has no function build; it has setup"),
    "modules of a net": ("def make(net):\n    net.modules()\n    setattr(net, 'build', 1)", "it has make"),
    "many": ("".join(f"def made_{i}(): ...\n" for i in range(9)), "made_5 and 3 more"),
    "a number": ("build = 3", "net.py:1: build is no function"),
    "a list": ("\nbuild = [1]", "net.py:2: build is no function"),
    "async": ("async def build(): ...", "net.py:1: build is an async function"),
    "wants more": ("def build(classes, depth=3): ...", "net.py:1: build needs classes: give it, as in "),
    "a loss": (
        "def build(outputs, labels, weight=1): ...",
        "; a loss, or what else computes with tensors, is none that",
    ),
    "wants more by name": ("def build(*, classes): ...", "net.py:1: build needs classes"),
    "a class that wants more": ("class build:\n    def __init__(self, depth): ...", "net.py:2: build needs depth"),
    "broken": ("def build(:", "net.py:1: "),
    "broken further down": ("x = 1\nif x\n    y = 2", "net.py:2: "),
    "a zero byte": ("x = 1\0", "net.py"),
    "nested too deeply": ("(" * 5000, "net.py"),
}


def write(folder: Path, text: str) -> str:
    encoding = "latin-1" if "latin-1" in text else "utf-8"
    (folder / "net.py").write_bytes(text.encode(encoding))
    return f"{folder / 'net.py'}:build"


@pytest.mark.parametrize("case", BOUND)
def test_what_may_be_there_is_let_through(tmp_path: Path, case: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert check(write(tmp_path, BOUND[case]), "torch").name == "build"
    assert capfd.readouterr() == ("", "") and "somewhere" not in sys.modules


@pytest.mark.parametrize("case", UNBOUND)
def test_what_is_not_there_is_one_line(tmp_path: Path, case: str) -> None:
    text, said = UNBOUND[case]
    with pytest.raises(BadInput) as refused:
        check(write(tmp_path, text), "mindspore")
    assert said in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("(1)", None),
        ("(1, 2, 3)", "takes at most 2 arguments by position, and gets 3"),
        ("(1, depth=2, width=3)", None),
        ("(1, dept=2)", "has no argument dept; did you mean depth?"),
        ("(depth=2)", "needs classes"),
        ("(classes=1)", "has no argument classes"),
    ],
)
def test_arguments_have_to_fit(tmp_path: Path, call: str, said: str | None) -> None:
    spec = write(tmp_path, "def build(classes, /, depth=1, *, width=4): ...") + call
    if said is None:
        assert check(spec, "torch").name == "build"
    else:
        with pytest.raises(BadInput, match=said.replace("?", r"\?")):
            check(spec, "torch")


def test_a_module_is_found_as_import_finds_it_and_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = tmp_path / "ours" / "inner"
    inner.mkdir(parents=True)
    (tmp_path / "ours" / "__init__.py").write_text("raise SystemExit('it ran')")
    (inner / "net.py").write_text("raise SystemExit('it ran')\ndef build(): ...")  # `inner` is a namespace package
    (tmp_path / "apart").mkdir()
    (tmp_path / "apart" / "other.py").write_text("def build(): ...")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path / "apart"))
    for spec in ("ours.inner.net:build", "other:build", "os.path:join('a')", "math:sqrt(1)", "msmigrate:resnet50"):
        assert check(spec, "torch")
    for spec, said in (
        ("ours.inner.net:bild", "ours.inner.net has no function bild; did you mean build?"),
        ("ours.outer.net:build", "there is no module ours.outer.net: ours.outer is not there"),
        ("other.net:build", "there is no module other.net"),
        ("ours:build", "ours has no function build"),
        ("a/b:build", "a/b is neither a Python file, which ends in .py, nor the name of a module"),
    ):
        with pytest.raises(BadInput) as refused:
            check(spec, "torch")
        assert said in str(refused.value)
    assert "ours" not in sys.modules and "other" not in sys.modules


@pytest.mark.parametrize("spec", ["torchvision:resnet18", "torchvision:maskrcnn_resnet50_fpn", "timm:convnext_tiny"])
def test_what_a_zoo_has_is_read_from_its_source(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    packages = {"torch", "torchvision", "timm"}
    for name in packages:  # another test may have imported it
        monkeypatch.delitem(sys.modules, name, raising=False)
    assert check(spec, "torch") and check(f"{spec}(num_classes=3)", "torch")
    assert not packages & set(sys.modules)


WORDS = """
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--width", type=int, required=True)
args = parser.parse_args()


def build():
    return args.width
"""


def test_a_file_finds_its_own_words_on_the_command_line(tmp_path: Path) -> None:
    spec = parse(with_words(write(tmp_path, WORDS), ["--width", "3"]))
    assert called(spec) == 3 and "--width" not in sys.argv


def test_words_that_are_missing_are_asked_for(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(BadInput, match=r"net.py:6 reads .*required: --width. Give its arguments after --"):
        called(parse(write(tmp_path, WORDS)))
    assert capfd.readouterr() == ("", "")


def test_a_file_that_ends_python_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="exits Python"):
        called(parse(write(tmp_path, "import sys\nsys.exit('no data')\ndef build(): ...")))


def test_what_fails_behind_the_function_is_noted(tmp_path: Path) -> None:
    notes: list[str] = []
    found = function(parse(write(tmp_path, "def build(): return 1\n\nopen('no such data')")), notes)
    assert found() == 1 and "only up to line 3" in notes[0] and "no such data" in notes[0]


def test_without_anybody_to_read_the_notes_a_file_that_fails_is_refused(tmp_path: Path) -> None:
    """MindSpore's own side, and a loss: half of a file is another one."""
    with pytest.raises(FileNotFoundError):
        function(parse(write(tmp_path, "def build(): return 1\n\nopen('no such data')")))


def test_what_fails_before_the_function_is_left_out_and_noted(tmp_path: Path) -> None:
    notes: list[str] = []
    text = (
        "WIDTH = 2\ndata = open('no such data')\nfirst = data.read()\nclass build:\n    width = WIDTH\nopen('no more')"
    )
    found = function(parse(write(tmp_path, text)), notes)
    assert found.width == 2 and ":2 was left out" in notes[0] and len(notes) == 1


def test_what_was_left_out_is_said_with_the_place_where_it_failed(tmp_path: Path) -> None:
    (tmp_path / "beside_it.py").write_text("\n\nfirst = unknown")
    notes: list[str] = []
    function(parse(write(tmp_path, "import beside_it\ndef build(): return 1")), notes)
    assert notes[0].endswith("NameError: name 'unknown' is not defined (beside_it.py, line 3)")


def test_a_call_gets_its_arguments_as_they_were_typed(tmp_path: Path) -> None:
    """A model is made more than once, and a class may change a list that it is given."""
    spec = parse(f"{write(tmp_path, 'def build(widths): widths.insert(0, 3); return widths')}([4])")
    assert [called(spec), called(spec)] == [[3, 4], [3, 4]]


def test_a_function_that_needs_what_failed_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r":1: FileNotFoundError.*build is not defined: move training .*__main__"):
        function(parse(write(tmp_path, "data = open('no such data')\nbuild = data.read")), [])


NET = """
import os, pathlib, torch
torch.seen = getattr(torch, "seen", 0) + 1

def build(kind="Linear"):
    with pathlib.Path(__file__).with_name("asked").open("a") as file:
        print(os.getppid(), torch.seen, file=file)
    return getattr(torch.nn, kind)(2, 3)
"""


def test_what_is_asked_in_one_start_is_asked_of_forks_of_one_process(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(NET)
    worker, net = "checkpoint.torch_model_worker", f"{tmp_path}/net.py:build"
    with one_start():
        found = []
        for spec in (net, f"{net}('Bilinear')", f"{net}('GRU')"):
            with one_start():
                try:
                    found.append(ask(worker, spec, "--model"))
                except WorkerFailed as error:
                    found.append(str(error))
    assert found[0]["classes"][""][0] == "torch.nn.Linear" and found[2]["classes"][""][0] == "torch.nn.GRU"
    assert "--model" in found[1] and "net.py, line 8" in found[1] and "Bilinear" in found[1]
    first, second, again, last = [line.split() for line in (tmp_path / "asked").read_text().splitlines()]
    assert first[0] == second[0] == again[0] != last[0]  # one that has failed is not asked again
    # built without memory, and again where that fails: in either fork the file is imported into a torch of its own
    assert [first[1], second[1], again[1], last[1]] == ["1"] * 4


def test_the_place_of_an_error_of_a_step_is_in_the_users_code(tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    file.write_text("import json\n\n\ndef run():\n    return json.loads('{')\n")
    names: dict[str, Any] = {}
    exec(compile(file.read_text(), str(file), "exec"), names)
    with pytest.raises(ValueError) as in_model:
        names["run"]()
    assert place_in_model(in_model.value) == " (net.py, line 5)"
    with pytest.raises(FileNotFoundError) as in_ours:
        ParityJob.read(tmp_path / "job.json")
    assert in_ours.value.__traceback__ is not None
    ours = in_ours.value.with_traceback(in_ours.value.__traceback__.tb_next)  # without this test
    assert place_in_model(ours) == "" != place_of(ours)
