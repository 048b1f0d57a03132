"""`msmigrate export`: what it leaves and what it refuses, with workers that only pretend; the real ones in
tests/export."""

from __future__ import annotations

import ast
import json
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from msmigrate.deploy import lite
from msmigrate.errors import BadCheckpoint, BadDestination, BadInput, BadRecipe, Unsupported, WorkerFailed
from msmigrate.option_fields import STDOUT
from msmigrate.workflows import export as export_command
from onnx import TensorProto, helper
from trained_digits import RECIPE, WORDS, Trained

FAKE = Path(__file__).parent / "export_fake_worker.py"


ARRAYS: list[Path] = []  # where what the workers leave lies


@pytest.fixture(scope="module", autouse=True)
def arrays(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("arrays")
    exact = np.random.default_rng(0).standard_normal((4, 10))
    near = exact * (1 + 1e-6 * np.random.default_rng(1).standard_normal(exact.shape))
    rounded = exact.astype(np.float32)
    made = {"exact": exact, "rounded": rounded, "near": near.astype(np.float32)}
    made |= {f"off{off}": rounded * np.float32(1 + off) for off in (0.0, 1e-3)}
    for name, array in made.items():
        np.savez(folder / name, array)
    ARRAYS.append(folder)
    yield
    ARRAYS.pop()


def fake(name: str, off: float = 0.0) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", str(FAKE), name, str(off), str(ARRAYS[0]))


def export(checkpoint: Path, out: Path, form: str = "mindir", off: float = 0.0, **options: Any) -> int:
    def worker(name: str) -> tuple[str, ...]:
        return fake(name, off)

    return export_command.run(checkpoint, out, form, **{"worker": worker, **options})


def test_a_file_is_there_once_it_is_verified(
    trained: Trained, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "net.mindir"
    assert export(trained.own, out) == 0
    assert out.read_bytes() == b"a net"
    assert stat.S_IMODE(out.stat().st_mode) & 0o600 == 0o600
    printed = capsys.readouterr().out
    assert "MindIR = torch" in printed and f"Written to {out}" in printed
    with pytest.raises(BadDestination, match="pass --force"):
        export(trained.own, out)
    assert export(trained.own, out, force=True, json_file=STDOUT) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["same"] and told["files"] == [str(out)] and told["torch"] == "msmigrate:resnet_tiny(num_classes=10)"
    assert {one["verdict"] for one in told["comparisons"]} == {"pass"}


@pytest.mark.parametrize("form", ["mindir", "onnx", "lite"])
def test_a_disagreement_leaves_nothing(
    trained: Trained, tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    out = tmp_path / f"net.{'ms' if form == 'lite' else form}"
    assert export(trained.own, out, form, off=1e-3) == 1
    assert list(tmp_path.iterdir()) == []
    printed = capsys.readouterr().out
    assert "differs from torch" in printed and f"{out} was not written." in printed


def test_an_old_file_survives_a_disagreement(trained: Trained, tmp_path: Path) -> None:
    out = tmp_path / "net.mindir"
    out.write_bytes(b"old")
    assert export(trained.own, out, off=1e-3, force=True) == 1
    assert out.read_bytes() == b"old"


def converter(folder: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    """A converter_lite on PATH."""
    file = folder / "bin" / lite.CONVERTER
    file.parent.mkdir()
    file.write_text(
        f"#!{sys.executable}\nimport sys, pathlib\nargs = dict(a[2:].split('=', 1) for a in sys.argv[1:])\n{body}"
    )
    file.chmod(0o755)
    monkeypatch.setenv("PATH", f"{file.parent}:/usr/bin:/bin")


GOOD = """
assert args['fmk'] in ('MINDIR', 'ONNX') and pathlib.Path(args['modelFile']).stat().st_size
pathlib.Path(args['outputFile'] + '.ms').write_bytes(b'\\0\\0\\0\\0MSL2 the rest')
print('CONVERT RESULT SUCCESS:0')
"""
BROKEN = {
    "exit code": ("print('[ERROR] unsupported op: Foo'); sys.exit(1)", r"exit code 1: \[ERROR\] unsupported op: Foo"),
    "no success": ("print('CONVERT RESULT FAILED: -1')", "does not say that it succeeded: CONVERT RESULT FAILED"),
    "no model": ("print('CONVERT RESULT SUCCESS:0')", "left no model"),
    "no lite model": (GOOD.replace("MSL2", "zzzz"), "no model of MindSpore Lite"),
}


@pytest.mark.parametrize("form", ["mindir", "onnx"])
def test_lite_leaves_the_net_the_model_and_the_call(
    trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    converter(tmp_path, monkeypatch, GOOD)
    out = tmp_path / "out" / "net.ms"
    out.parent.mkdir()
    assert export(trained.own, out, "lite", from_onnx=form == "onnx") == 0
    assert {file.name for file in out.parent.iterdir()} == {"net.ms", f"net.{form}", "net.lite.json"}
    assert out.read_bytes()[4:8] == b"MSL2"
    call = json.loads((out.parent / "net.lite.json").read_text())
    assert call["run"] and call["command"][1:3] == [
        f"--fmk={form.upper()}",
        f"--modelFile={out.with_suffix('.' + form)}",
    ]
    assert call["shell"] in capsys.readouterr().out


@pytest.mark.parametrize("case", BROKEN)
def test_a_converter_that_fails_leaves_nothing(
    trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    body, words = BROKEN[case]
    converter(tmp_path, monkeypatch, body)
    out = tmp_path / "out" / "net.ms"
    out.parent.mkdir()
    with pytest.raises(WorkerFailed, match=words):
        export(trained.own, out, "lite")
    assert list(out.parent.iterdir()) == []


def test_without_a_converter_the_call_is_told(
    trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert export(trained.own, tmp_path / "net.ms", "lite") == 0
    assert {file.name for file in tmp_path.iterdir()} == {"net.mindir", "net.lite.json"}
    assert "converter_lite is not on PATH; run this where it is: converter_lite --fmk=MINDIR" in capsys.readouterr().out


def test_an_onnx_file_is_checked_and_converted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy")
    given = tmp_path / "given.onnx"
    onnx.save(helper.make_model(helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])), given)
    converter(tmp_path, monkeypatch, GOOD)
    assert export_command.run(given, tmp_path / "net.ms", "lite") == 0
    names = {file.name for file in tmp_path.iterdir()} - {"bin"}
    assert names == {"given.onnx", "net.ms", "net.onnx", "net.lite.json"}
    given.write_bytes(b"no model")
    with pytest.raises(BadInput, match="no valid ONNX model"):
        export_command.run(given, tmp_path / "other.ms", "lite")


def test_a_servable_has_the_documented_layout(
    trained: Trained, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "digits"
    assert export(trained.own, out, "serving") == 0
    files = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    assert files == {"servable_config.py", "1/model.mindir", "classes.json", "client.py", "server.py"}
    assert json.loads((out / "classes.json").read_text()) == list(WORDS)
    tree = ast.parse((out / "servable_config.py").read_text())
    methods = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef) and node.decorator_list}
    assert methods.keys() == {"classify_top1", "classify_top5", "predict"}
    text = (out / "servable_config.py").read_text()
    for operator in (
        "vision.Decode(to_pil=True),",
        "vision.Grayscale(num_output_channels=1),",
        "vision.Resize(size=32,",
    ):
        assert operator in text
    for name in ("client.py", "server.py"):
        compile((out / name).read_text(), name, "exec")
    assert [path.name for path in tmp_path.iterdir()] == ["digits"]
    with pytest.raises(BadDestination, match="pass --force"):
        export(trained.own, out, "serving")
    assert export(trained.own, out, "serving", force=True) == 0
    (out / "mine.txt").write_text("mine")
    with pytest.raises(BadDestination, match=r"holds mine\.txt"):
        export(trained.own, out, "serving", force=True)


def test_a_servable_that_does_not_agree_is_not_left(trained: Trained, tmp_path: Path) -> None:
    def worker(name: str) -> tuple[str, ...]:
        return fake(name, 1e-3 if name == "serving.mindspore_servable_worker" else 0.0)

    with pytest.raises(WorkerFailed, match="exit code 1"):
        export(trained.own, tmp_path / "digits", "serving", worker=worker)
    names = tmp_path / "names.txt"
    names.write_text("a\nb\n")
    with pytest.raises(BadInput, match="names 2 classes"):
        export(trained.own, tmp_path / "digits", "serving", classes=names)
    assert list(tmp_path.iterdir()) == [names]


KEY = b"sixteen letters!"
REFUSED: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "no file": ({"checkpoint": Path("none.ckpt")}, BadCheckpoint, "there is no file none.ckpt"),
    "wrong ending": ({"out": "net.onnx"}, BadInput, "ends in .mindir"),
    "lite's ending": ({"form": "lite"}, BadInput, "ends in .ms"),
    "no folder": ({"out": "none/net.mindir"}, BadDestination, "does not exist"),
    "two models": ({"model": "resnet50", "recipe": RECIPE}, BadInput, "--model or --recipe, not both"),
    "no model": ({"model": "resnet51"}, BadRecipe, "did you mean resnet50"),
    "torch of a recipe's": ({"torch": "torchvision:resnet18"}, BadInput, "of a Cell of your own"),
    "no spec": ({"model": "net.py:"}, BadInput, "does not name a model"),
    "odd shape": ({"shapes": ("3x",)}, BadInput, "--input 3x"),
    "mode alone": ({"enc_mode": "AES-CBC"}, BadInput, "give both"),
    "no key": ({"key_file": Path("none.key")}, BadInput, "cannot be read"),
    "short key": ({"key_file": RECIPE}, BadInput, "a key for AES-GCM has 16 or 24 or 32"),
    "key for onnx": ({"key_file": RECIPE, "form": "onnx", "out": "net.onnx"}, BadInput, "no encryption"),
    "from onnx": ({"from_onnx": True}, BadInput, "--format lite"),
    "serving without recipe": (
        {"form": "serving", "model": "resnet50", "of": "torch", "out": "net"},
        BadInput,
        "--recipe FILE",
    ),
    "no name of a servable": ({"form": "serving", "out": "net.mindir"}, BadInput, "letters, digits and _"),
    "classes alone": ({"classes": RECIPE}, BadInput, "--format serving"),
    "dynamic lite": ({"form": "lite", "out": "net.ms", "dynamic": True}, BadInput, "--dynamic"),
    "no images": ({"images": Path("none")}, BadInput, "there is no file or folder none"),
    "no size": ({"model": "lenet5", "of": "torch"}, BadInput, "add --input SHAPE"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_exported_is_refused_before_a_framework_starts(
    trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    given, kind, words = REFUSED[case]
    monkeypatch.chdir(tmp_path)
    options = {"out": "net.mindir", **given}
    options.setdefault("checkpoint", getattr(trained, options.pop("of", "own")))
    out = Path(options.pop("out"))
    with pytest.raises(kind) as caught:
        export(options.pop("checkpoint"), out, options.pop("form", "mindir"), worker=lambda name: ("false",), **options)
    assert words in str(caught.value) and "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_that_names_no_model_needs_one(trained: Trained, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="does not say which model it belongs to: add --model NAME or --recipe FILE"):
        export(trained.torch, tmp_path / "net.mindir", worker=lambda name: ("false",))


def test_air_is_refused_with_the_commands_for_ascend(trained: Trained, tmp_path: Path) -> None:
    for model, words in (
        ("resnet50", "convert-ckpt x.pth x.ckpt && python -c"),
        ("torchvision:vgg11", "convert-model torchvision:vgg11 -o vgg11_ms.py"),
        ("net.py:build", "from net import build as make"),
    ):
        with pytest.raises(Unsupported) as caught:
            export(Path("x.pth"), tmp_path / "net.air", "air", model=model, shapes=("1x3x64x64",))
        assert words in str(caught.value) and "ms.set_device('\"'\"'Ascend'\"'\"')" in str(caught.value)
        assert "(1, 3, 64, 64)" in str(caught.value)


def test_a_key_is_never_told(trained: Trained, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    key = tmp_path / "key"
    key.write_bytes(KEY + b"\n")
    assert export(trained.own, tmp_path / "net.mindir", key_file=key, json_file=STDOUT) == 0
    said = "".join(capfd.readouterr())
    assert KEY.decode() not in said and KEY.hex() not in said
