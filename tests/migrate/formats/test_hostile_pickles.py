"""No file makes msmigrate run anything, whatever its format and wherever the attack stands in it, nor work for ever."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import hostile_pickles
import pytest
from hostile_pickles import attacks
from msmigrate.errors import BadCheckpoint, MsmigrateError, Unsupported
from msmigrate.migrate.checkpoint import convert
from msmigrate.migrate.checkpoint.formats import pth_weights, restricted_pickle
from msmigrate.migrate.checkpoint.formats.reader import Checkpoint
from msmigrate.migrate.checkpoint.formats.registry import open_source
from tiny_checkpoints import floats, integer, mapping, named, rebuilt, text, write
from tiny_legacy import blocks, legacy_tensor, module, pickled, write_legacy

WEIGHT = floats(2)
NAMES = sorted(attacks("x"))


def made(path: Path, form: str, body: bytes) -> Path:
    """A file whose pickle is the body, alone or as an entry beside a tensor."""
    kind, _, place = form.partition(", ")
    if place == "beside":
        tensor = rebuilt(WEIGHT, "0") if kind == "zip" else legacy_tensor(WEIGHT, "0")
        body = b"}" + text("own.a") + tensor + b"s" + text("evil") + body + b"s"
    if kind == "bare":
        path.write_bytes(pickled(body))
        return path
    if kind == "zip":
        return write(path, body, {"0": WEIGHT.content})
    return write_legacy(path, body, blocks([WEIGHT] if place == "beside" else []))


@pytest.mark.parametrize("form", ["zip, alone", "zip, beside", "legacy, alone", "legacy, beside", "bare, alone"])
@pytest.mark.parametrize("name", NAMES)
def test_nothing_runs(tmp_path: Path, name: str, form: str) -> None:
    canary = tmp_path / "canary"
    attack = attacks(str(canary))[name]
    path = made(tmp_path / "x.pth", form, attack.body)
    if attack.says is None and form.endswith("beside"):
        result = convert.convert(path, tmp_path / "x.ckpt")
        assert [entry.name for entry in result.plan.written] == ["own.a"]
        assert result.plan.checkpoint.others["evil"].startswith("an object of ")
    else:
        says = attack.says or "an object of .*, neither a state dict nor a torch.nn.Module"
        with pytest.raises(
            (BadCheckpoint, Unsupported), match="bare pickle" if form.startswith("bare") else says
        ) as error:
            convert.convert(path, tmp_path / "x.ckpt")
        assert "\n" not in str(error.value)
        assert not (tmp_path / "x.ckpt").exists()
    assert not canary.exists()


def test_the_attacks_are_real(tmp_path: Path) -> None:
    """Python's own unpickler falls for them, so that the test above can fail."""
    command = [sys.executable, hostile_pickles.__file__, str(tmp_path / "canary")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.splitlines()[-1]) == [n for n, attack in attacks("x").items() if attack.live]
    assert len(NAMES) > 50


@pytest.mark.parametrize(
    ("module_name", "name"),
    [
        *(("os.path", "join"), ("torch.jit._script", "ScriptModule"), ("builtins", "vars"), ("copyreg", "pickle")),
        *(("asyncio.subprocess", "Process"), ("multiprocessing.util", "spawnv_passfds"), ("sys", "exit")),
        *(("http.client", "HTTPConnection"), ("requests.api", "get"), ("shutil", "rmtree"), ("types", "CodeType")),
        *(("inspect", "getsource"), ("socket", "socket"), ("nt", "system"), ("torch.distributed.rpc", "rpc_sync")),
        *(("collections", "os.system"), ("foo", "builtins.eval"), ("foo", "__import__"), ("foo", "Bar.__class__")),
    ],
)
def test_more_names_that_only_attacks_use(module_name: str, name: str) -> None:
    with pytest.raises(BadCheckpoint, match=f"names {module_name}.{name}, which no checkpoint needs"):
        restricted_pickle.load(pickled(named(module_name, name)))


@pytest.mark.parametrize(
    ("module_name", "name"),
    [
        *(("code.models.net", "Net"), ("platform.config", "Config"), ("mypkg", "Outer.Inner"), ("datetime", "date")),
        *(("argparse", "Namespace"), ("types", "SimpleNamespace"), ("numpy", "float32"), ("torch", "device")),
        *(("builtins", "slice"), ("copyreg", "_reconstructor"), ("torch.nn.functional", "relu"), ("io", "BytesIO")),
        *(("__main__", "Net"), ("profile.settings", "Settings"), ("osmodel", "Net"), ("mypkg", "__Private")),
        *(("torch.nn.modules.conv", "Conv2d"), ("torch._C._nn", "gelu"), ("torch.optim.lr_scheduler", "OneCycleLR")),
    ],
)
def test_names_that_checkpoints_have_are_placeholders(module_name: str, name: str) -> None:
    assert restricted_pickle.load(pickled(named(module_name, name))).name == f"{module_name}.{name}"


def read(path: Path) -> Checkpoint:
    with open_source(str(path)) as source:
        return source.checkpoint()


def again(index: int) -> bytes:
    return b"j" + index.to_bytes(4, "little")


def remembered(body: bytes, index: int) -> bytes:
    return body + b"r" + index.to_bytes(4, "little")


@pytest.mark.parametrize("tensors", [{}, {"w": rebuilt(WEIGHT, "0")}], ids=["empty", "full"])
def test_a_few_shared_modules_do_not_make_names_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tensors: dict[str, bytes]
) -> None:
    """Sixty modules, each of which holds the next one twice, have 2**60 names."""
    monkeypatch.setattr(pth_weights, "MAX_NAMES", 10_000)
    body = remembered(module("foo.Leaf", tensors), 0)
    for level in range(1, 60):
        body += b"0" + remembered(module("foo.Twice", modules={"a": again(level - 1), "b": again(level - 1)}), level)
    with pytest.raises(BadCheckpoint, match="absurdly many modules"):
        read(write(tmp_path / "x.pth", body, {"0": WEIGHT.content}))


def test_long_names_do_not_add_up_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pth_weights, "MAX_LETTERS", 50_000)
    leaf = remembered(module("foo.Leaf", {"w": rebuilt(WEIGHT, "0")}), 0)
    body = leaf + b"0" + module("foo.Wide", modules={f"{number:0900}": again(0) for number in range(100)})
    with pytest.raises(BadCheckpoint, match="absurdly many"):
        read(write(tmp_path / "x.pth", body, {"0": WEIGHT.content}))


def test_a_module_inside_itself_is_refused(tmp_path: Path) -> None:
    state = [("_parameters", b"}"), ("_buffers", b"}"), ("_modules", b"}" + text("me") + again(0) + b"s")]
    body = remembered(named("foo", "Net") + b")\x81", 0) + mapping(state) + b"b"
    with pytest.raises(BadCheckpoint, match="its module me contains itself"):
        read(write(tmp_path / "x.pth", body, {}))


@pytest.mark.parametrize(("depth", "fits"), [(200, True), (201, False), (20_000, False)])
def test_modules_nest_only_so_deep(tmp_path: Path, depth: int, fits: bool) -> None:
    around = b"0" + remembered(module("foo.Net", modules={"a": again(0)}), 0)
    body = remembered(module("foo.Leaf", {"w": rebuilt(WEIGHT, "0")}), 0) + around * depth
    path = write(tmp_path / "x.pth", body, {"0": WEIGHT.content})
    if fits:
        assert list(read(path).tensors) == ["a." * depth + "w"]
    else:
        with pytest.raises(BadCheckpoint, match="more than 200 deep"):
            read(path)


def test_shared_dicts_are_looked_through_once(tmp_path: Path) -> None:
    """A thousand keys lead to one dict, of which a thousand keys lead to the next: a billion ways to nothing."""
    body = remembered(mapping([("epoch", integer(1))]), 0)
    for level in range(1, 4):
        body += b"0" + remembered(mapping((str(key), again(level - 1)) for key in range(1000)), level)
    with pytest.raises(BadCheckpoint, match="holds no tensors"):
        read(write(tmp_path / "x.pth", body, {}))


def test_a_dict_that_holds_itself_is_looked_through_once(tmp_path: Path) -> None:
    body = remembered(b"}", 0) + text("me") + again(0) + b"s"
    with pytest.raises(BadCheckpoint, match="holds no tensors"):
        read(write(tmp_path / "x.pth", body, {}))


@pytest.mark.parametrize("kind", ["tuples", "calls"])
def test_a_quarter_of_a_million_nested_objects_are_no_trouble(tmp_path: Path, kind: str) -> None:
    count = 250_000
    body = b"N" + b"\x85" * count
    if kind == "calls":
        body = remembered(named("foo", "Bar"), 0) + again(0) * (count - 1) + b")R" + b"\x85R" * (count - 1)
    with pytest.raises(BadCheckpoint, match=r"neither a state dict|not a state dict"):
        read(write(tmp_path / "x.pth", body, {}))


def test_every_damaged_byte_of_a_legacy_file_is_one_clear_error_or_none(tmp_path: Path) -> None:
    body = mapping([("w", legacy_tensor(WEIGHT, "0")), ("net", module("torch.nn.modules.linear.Identity"))])
    whole = write_legacy(tmp_path / "x.pth", body, blocks([WEIGHT])).read_bytes()
    path = tmp_path / "y.pth"
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x41]) + whole[at + 1 :])
        try:
            read(path)
        except MsmigrateError as error:
            assert "\n" not in str(error)
