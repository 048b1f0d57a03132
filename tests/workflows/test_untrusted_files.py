"""Nothing that a data file names is imported, built with its arguments, opened or fetched, whatever command reads it.

Each checkpoint here names something that leaves a trace: a file that writes another when it is imported, a place whose
opening is noticed, an argument that reaches for the network.
"""

from __future__ import annotations

import copy
import hashlib
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from msmigrate.cli import group
from msmigrate.deploy.output_files import refuse_code
from msmigrate.errors import BadCheckpoint, BadInput, BadTrace, MsmigrateError, NotTrusted, Unsupported, WorkerFailed
from msmigrate.migrate.checkpoint.formats.ckpt import field_of
from msmigrate.migrate.checkpoint.inspect_file import DIGEST, LARGEST, stored_source, trusted
from msmigrate.option_fields import STDOUT
from msmigrate.training import checkpoints
from msmigrate.training.data.sources import open_source
from msmigrate.training.models import converted_models
from msmigrate.training.recipe import recipe_in_checkpoint
from msmigrate.training.recipe.schema import Model
from msmigrate.training.run.train_job import Job
from msmigrate.workflows import export, record
from msmigrate.workflows.evaluate import run_evaluate, run_predict
from msmigrate.workflows.export import serve
from PIL import Image
from trained_digits import RECIPE, run

CANARY = "from pathlib import Path\nPath(__file__).with_suffix('.ran').write_text('')\n"
NET = """
from mindspore import nn, ops

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(64, 10)

    def construct(self, x):
        return self.fc(ops.flatten(x))

def resnet18():
    return Net()
"""
PLAIN = {
    "model": {"name": "timm:resnet18", "args": {"num_classes": 10}},
    "data": {"source": "digits:train", "validation": "digits:test", "batch": 50},
    "optimizer": {"name": "SGD"},
}
NONE = ("false",)
SEEN: list[str] = []  # what was opened or asked of the network while WATCHED
WATCHED: list[bool] = []


def _audit(event: str, args: tuple[Any, ...]) -> None:
    network = event.startswith("socket.") and event != "socket.gethostname"  # which asks this machine alone
    if WATCHED and (network or event in ("open", "os.listdir", "os.scandir", "exec", "import")):
        SEEN.append(f"{event} {args[0] if args else None}")


sys.addaudithook(_audit)


@pytest.fixture
def watched() -> Iterator[list[str]]:
    SEEN.clear()
    WATCHED.append(True)
    yield SEEN
    WATCHED.clear()


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    """A file that tells by another one that it was run."""
    (tmp_path / "else where").mkdir()
    file = tmp_path / "else where" / "canary.py"
    file.write_text(CANARY + NET)
    return file


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def checkpoint(folder: Path, recipe: Any = PLAIN, **about: Any) -> Path:
    """A checkpoint of `train`, of a net with one layer, that carries this recipe."""
    path = folder / "named.ckpt"
    random = np.random.default_rng(0)
    tensors = {"fc.weight": random.normal(size=(10, 64)).astype(np.float32), "fc.bias": np.zeros(10, np.float32)}
    checkpoints.write(path, tensors, {**run([str(i) for i in range(10)]), "recipe": recipe, **about})
    return path


def changed(**parts: Any) -> dict[str, Any]:
    """The plain recipe with other parts: model__args={…} puts them into what stands there."""
    tree: dict[str, Any] = copy.deepcopy(PLAIN)
    for place, value in parts.items():
        *outer, last = place.split("__")
        holder = tree
        for key in outer:
            holder = holder[key]
        holder[last] = {**holder.get(last, {}), **value} if isinstance(value, dict) else value
    return tree


def commands(path: Path, folder: Path, **options: Any) -> Iterator[Any]:
    """What reads a checkpoint: each of them as a call that ends before a framework is started."""
    image = folder / "image.png"
    image.write_bytes(b"")
    plain: dict[str, Any] = dict.fromkeys(("recipe", "batch", "target"), None)
    predict = {**plain, "classes": None, "ema": False, "top": 5, "json_file": None, "worker": NONE, **options}
    yield lambda: run_predict(path, [image], **predict)
    evaluate = {**plain, "data": None, "ema": False, "out": None, "json_file": None, "worker": NONE, **options}
    yield lambda: run_evaluate(path, **evaluate)
    yield lambda: export.run(path, folder / "net.mindir", "mindir", worker=lambda name: NONE, **options)
    yield lambda: export.run(path, folder / "net", "serving", worker=lambda name: NONE, **options)
    yield lambda: serve(path, port=0, worker=lambda name: NONE, **options)


def refusals(path: Path, folder: Path, **options: Any) -> Iterator[MsmigrateError]:
    """What each command says of the checkpoint, before a framework is started."""
    for command in commands(path, folder, **options):
        with pytest.raises((BadInput, Unsupported)) as caught:
            command()
        assert not isinstance(caught.value, WorkerFailed)
        assert "\n" not in str(caught.value) and len(str(caught.value)) < 900
        yield caught.value


# the source


def test_a_torch_file_that_a_checkpoint_names_is_not_even_opened(
    tmp_path: Path, canary: Path, watched: list[str]
) -> None:
    other = canary.with_name("torch_canary.py")
    other.write_text(CANARY + "def build(): pass\n")
    named = changed(model={"name": f"{other}:build", "source": str(canary), "classes": 10})
    path = checkpoint(tmp_path, named, **{DIGEST: digest(canary)})
    watched.clear()
    for error in refusals(path, tmp_path):
        assert isinstance(error, NotTrusted) and error.add == ("--trust-source", f"{canary}@sha256:{digest(canary)}")
    for error in refusals(checkpoint(tmp_path, changed(model={"name": f"{other}:build", "classes": 10})), tmp_path):
        assert "needs source" in str(error)
    assert not [event for event in watched if "torch_canary" in event] and not canary.with_suffix(".ran").exists()


def test_no_source_is_imported_at_a_checkpoint_s_word(tmp_path: Path, canary: Path, watched: list[str]) -> None:
    named = changed(model__source=str(canary))
    known = digest(canary)
    for about, says in (
        ({}, "whose content at training was not noted"),
        ({DIGEST: known}, "as it was at training"),
        ({DIGEST: "0" * 64}, "which has changed since training"),
        ({DIGEST: 5}, "was not noted"),
    ):
        for error in refusals(checkpoint(tmp_path, named, **about), tmp_path):
            assert isinstance(error, NotTrusted) and error.add == ("--trust-source", f"{canary}@sha256:{known}")
            assert says in str(error) and "canary.py" in str(error) and "--model FILE.py:resnet18" in str(error)
    assert not canary.with_suffix(".ran").exists()
    assert not [event for event in watched if event.startswith(("exec", "import")) and "canary" in event]


@pytest.mark.parametrize("name", ["no such.py", "folder.py", "pipe.py", "huge.py", "net.txt", "a\x1b[2J.py", "a\0b.py"])
def test_what_is_no_source_is_not_opened_and_has_no_line_to_paste(tmp_path: Path, canary: Path, name: str) -> None:
    place = canary.parent / name
    if name == "folder.py":
        place.mkdir()
    elif name == "pipe.py":
        os.mkfifo(place)
    elif name == "huge.py":
        with place.open("wb") as file:
            file.truncate(LARGEST + 1)
    elif name == "net.txt" or "\x1b" in name:
        place.write_text(CANARY)
    for error in refusals(checkpoint(tmp_path, changed(model__source=str(place))), tmp_path):
        assert not isinstance(error, NotTrusted) or error.add == ()


def test_trust_is_of_one_file_with_one_content(tmp_path: Path, canary: Path, watched: list[str]) -> None:
    path, known = checkpoint(tmp_path, changed(model__source=str(canary)), **{DIGEST: digest(canary)}), digest(canary)
    for trust, says in (
        (str(canary), "expected FILE@sha256:DIGEST"),
        ("", "expected FILE@sha256:DIGEST"),
        (f"sha256:{known}", "expected FILE@sha256:DIGEST"),
        (f"{canary}@sha256:{'0' * 64}", f"has changed: read it, then name it with sha256:{known}"),
        (f"{canary}x@sha256:{known}", "there is no Python file"),
    ):
        for error in refusals(path, tmp_path, trust_source=trust):
            assert says in str(error)
    for error in refusals(path, tmp_path, trust_source=f"{canary}@sha256:{known}", model="net.py:build"):
        assert "leave one out" in str(error)
    for error in refusals(checkpoint(tmp_path), tmp_path, trust_source=f"{canary}@sha256:{known}"):
        assert "names none" in str(error)
    assert not canary.with_suffix(".ran").exists()


def test_what_is_trusted_runs_alone_and_is_what_was_read(tmp_path: Path, canary: Path) -> None:
    """A copy of just these bytes is imported: neither a neighbour nor what the file becomes."""
    copy_of = trusted(f"{canary}@sha256:{digest(canary).upper()}", tmp_path)
    canary.write_text("raise SystemExit")
    assert copy_of.read_text() == CANARY + NET and list(copy_of.parent.iterdir()) == [copy_of]


@pytest.mark.parametrize("trust", [True, pytest.param(False, marks=pytest.mark.full)])
def test_a_trusted_source_predicts_and_so_does_one_that_the_user_names(
    tmp_path: Path, canary: Path, capfd: pytest.CaptureFixture[str], trust: bool
) -> None:
    """With arguments of its torch model that no checkpoint may say: the file needs none."""
    recipe = changed(model__source=str(canary), model__args={"pretrained_cfg": {"url": "http://127.0.0.1:1/x"}})
    path = checkpoint(tmp_path, recipe, **{DIGEST: digest(canary)})
    options: dict[str, Any] = dict.fromkeys(("data", "recipe", "batch", "out"), None)
    options |= {"trust_source": f"{canary}@sha256:{digest(canary)}"} if trust else {"model": f"{canary}:resnet18"}
    assert run_evaluate(path, ema=False, target="CPU", json_file=STDOUT, **options) == 0
    found = json.loads(capfd.readouterr().out)
    source = open_source("digits:test", 10, training=False)
    images = np.stack([np.asarray(Image.open(io.BytesIO(source[i].data))) for i in range(len(source))]) / 255
    logits = images.reshape(len(images), -1) @ checkpoints.read(path).tensors["fc.weight"].T
    assert found["images"] == 360 and found["top1"] == pytest.approx((logits.argmax(1) == source.labels).mean())
    assert canary.with_suffix(".ran").exists() is not trust  # what is trusted runs as a copy, elsewhere


def test_inspect_shows_the_source_and_the_option(tmp_path: Path, canary: Path) -> None:
    def page(*options: str) -> str:
        done = CliRunner().invoke(group.cli, ["inspect", str(tmp_path / "named.ckpt"), *options])
        assert done.exit_code == 0, done.output
        return done.output

    known = digest(canary)
    checkpoint(tmp_path, changed(model__source=str(canary)), **{DIGEST: known})
    assert f"its model's source: {canary}, as it was at training\n" in page()
    assert f"add: --trust-source '{canary}@sha256:{known}'\n" in page()
    found = json.loads(page("--json"))["source"]
    assert found == {"path": str(canary), "then": known, "now": known, "trust": f"{canary}@sha256:{known}"}
    canary.write_text(CANARY + "# more\n")
    assert "which has changed since training" in page() and f"at training it was sha256:{known}" in page()
    assert digest(canary) in page()
    canary.unlink()
    assert "which is not here" in page() and "--trust-source" not in page()
    checkpoint(tmp_path, changed(model__source="a\x1b[2J.py"))
    assert "\x1b" not in page()
    checkpoint(tmp_path)
    assert "model's source" not in page() and json.loads(page("--json"))["source"] is None
    for odd in (None, [], {"model": 5}, {"model": {"source": ["x"]}}):
        assert stored_source({"recipe": odd}) is None


@pytest.mark.full
def test_training_notes_what_was_in_the_source(tmp_path: Path, canary: Path) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(
        f"model: {{name: 'timm:resnet18', args: {{num_classes: 10}}, source: '{canary}'}}\n"
        "data: {source: digits:train, batch: 50}\noptimizer: {name: SGD, args: {lr: 0.1}}\n"
    )
    job = Job(recipe=recipe, folder=tmp_path / "run", max_steps=2)
    job.checkpoints.mkdir(parents=True)
    job.write(tmp_path / "job.json")
    worker = "msmigrate.training.run.mindspore_worker"
    subprocess.run([sys.executable, "-m", worker, str(tmp_path / "job.json")], check=True, capture_output=True)
    written = next(job.checkpoints.glob("step-*.ckpt"))
    noted = checkpoints.read(written).run
    assert noted is not None and noted[DIGEST] == digest(canary)
    found = stored_source(noted)
    assert found is not None and found.words == "as it was at training"
    canary.write_text("")
    for error in refusals(written, tmp_path):
        assert "which has changed since training" in str(error)


def test_the_line_to_paste_is_the_command_with_one_word_more(
    tmp_path: Path, canary: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    path = checkpoint(tmp_path, changed(model__source=str(canary)))
    monkeypatch.setattr(sys, "argv", ["msmigrate", "predict", str(path), "my image.png", "--top", "3"])
    (tmp_path / "my image.png").write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        group.main()
    said = capfd.readouterr().err
    assert ended.value.code == 2 and said.count("\n") == 1
    words = f"--trust-source '{canary}@sha256:{digest(canary)}'"
    assert said.endswith(f": msmigrate predict {path} 'my image.png' --top 3 {words}\n")


# the arguments and the name

FOREIGN: dict[str, Any] = {
    "pretrained": True,
    "pretrained_cfg": {"url": "http://127.0.0.1:1/x"},
    "pretrained_cfg_overlay": {"file": "/etc/passwd"},
    "checkpoint_path": "/etc/passwd",
    "cache_dir": "/tmp",
    "weights": "DEFAULT",
    "weights_backbone": "DEFAULT",
    "features_only": True,
    "act_layer": "relu",
    "norm_layer": "os.system",
    "block": "x",
    "depth": 10**9,
    "num_classes, pretrained": True,
    "drop_rate": 2,
    "drop_path_rate": "0.1",
    "num_classes": 10**9,
    "in_chans": 10**6,
    "img_size": [224, 224, 224],
    "image_size": 10**6,
    "global_pool": "../x",
    "aux_logits": "yes",
}


@pytest.mark.parametrize("argument", FOREIGN)
def test_no_argument_of_a_checkpoint_s_reaches_further_than_a_size_or_a_rate(
    tmp_path: Path, watched: list[str], argument: str
) -> None:
    value = FOREIGN[argument]
    path = checkpoint(tmp_path, changed(model__args={argument: value}))
    for error in refusals(path, tmp_path):
        assert argument in str(error)
        if argument.isidentifier():  # as no other name can be said
            assert isinstance(error, NotTrusted) and error.add[0] == "--model"
            assert error.add[1].startswith("timm:resnet18(num_classes=")
    spelled = changed(model=f"torchvision:resnet18({argument}={value!r})")
    if argument.isidentifier():
        assert all(argument in str(error) for error in refusals(checkpoint(tmp_path, spelled), tmp_path))
    assert not [event for event in watched if event.startswith("socket.")]


def test_harmless_arguments_are_taken(tmp_path: Path) -> None:
    args = {"num_classes": 10, "drop_rate": 0.1, "in_chans": 1, "img_size": [32, 32], "global_pool": "avg"}
    args |= {"zero_init_last": False}
    assert recipe_in_checkpoint.foreign_argument(Model(name="timm:resnet18", args=args)) is None
    for command in commands(checkpoint(tmp_path, changed(model__args=args)), tmp_path):
        with pytest.raises((WorkerFailed, BadInput)) as caught:  # as far as a framework, or images without a size
            command()
        assert not isinstance(caught.value, NotTrusted | BadCheckpoint)


NAMES = (
    *("timm:hf-hub:someone/net", "hf-hub:someone/net", "timm:local-dir:/etc", "torchvision:../x", "torchvision:a.b"),
    *("canary.py:build", "canary:build", "os:system", "msmigrate:resnet18", "timm:", ":", "", "a" * 3000, "\x1b[2J"),
)


@pytest.mark.parametrize("name", NAMES)
def test_no_name_of_a_checkpoint_s_leads_out_of_the_two_zoos(tmp_path: Path, canary: Path, name: str) -> None:
    (tmp_path / "canary.py").write_text(CANARY)
    for model in (name, {"name": name}, {"name": name, "args": {"num_classes": 10}}):
        path = checkpoint(tmp_path, {**changed(), "model": model})
        assert all("cannot be used" in str(error) for error in refusals(path, tmp_path))
    assert not list(tmp_path.rglob("*.ran"))


# what else it names


def test_no_place_is_read_at_a_checkpoint_s_word(tmp_path: Path, canary: Path, watched: list[str]) -> None:
    place = canary.parent
    (place / "one").mkdir()
    (place / "one" / "1.png").write_bytes(b"")
    watched.clear()
    resize = [{"name": "Resize", "args": {"size": 8}}, {"name": "ToTensor"}]  # any shape: the first image would say
    for source in (f"folder:{place}", f"cifar10:{place}"):
        named = changed(data__validation=source, data__source=source, model__checkpoint=str(place / "weights.pth"))
        path = checkpoint(tmp_path, {**named, "data": {**named["data"], "transforms": resize}})
        with pytest.raises(NotTrusted, match="validation images are in") as caught:
            list(commands(path, tmp_path))[1]()
        assert caught.value.add == (source,)
        for command in commands(path, tmp_path):
            with pytest.raises((WorkerFailed, BadInput)):
                command()
    assert not [event for event in watched if "else where" in event]


PARTS: dict[str, Any] = {
    "a function": {"data__transforms": [{"name": "os.system", "args": {"command": "touch ran"}}]},
    "a class": {"data__transforms": [{"name": "torchvision.datasets.ImageFolder", "args": {"root": "/"}}]},
    "a lambda": {"data__transforms": [{"name": "Lambda", "args": {"lambd": "print"}}]},
    "another kind": {"data__eval_transforms": [{"name": "torch.load", "args": {"f": "/etc/passwd"}}]},
    "a huge image": {"data__transforms": [{"name": "Resize", "args": {"size": 10**6}}, {"name": "ToTensor"}]},
    "many pads": {"data__transforms": [{"name": "Pad", "args": {"padding": 300}}] * 40},
    "many transforms": {"data__transforms": [{"name": "ToTensor"}] * 1000},
    "a huge batch": {"data__batch": 10**9},
    "many workers": {"data__workers": 10**9},
    "a letter for a terminal": {"data__validation": "folder:\x1b[2J"},
    "half a letter": {"data__validation": "folder:\ud800"},
    "no model": {"model": {"name": None}},
    "a list": {"data": []},
}


@pytest.mark.parametrize("case", PARTS)
def test_nothing_else_in_the_recipe_is_taken_as_it_stands(tmp_path: Path, case: str) -> None:
    recipe = {**changed(), **PARTS[case]} if "__" not in next(iter(PARTS[case])) else changed(**PARTS[case])
    assert all("cannot be used" in str(error) for error in refusals(checkpoint(tmp_path, recipe), tmp_path))


def test_a_net_that_is_too_large_is_never_allocated(tmp_path: Path) -> None:
    for args in ({"width": 10**6}, {"layers": [500, 500, 500, 500]}, {"num_classes": 10**9}):
        path = checkpoint(tmp_path, {**changed(), "model": {"name": "resnet_tiny", "args": args}})
        assert all("too large" in str(error) for error in refusals(path, tmp_path))


# other files


def test_a_run_s_folder_names_no_source_to_import(tmp_path: Path, canary: Path) -> None:
    from msmigrate.workflows import train

    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(
        f"model: {{name: 'timm:resnet18', source: '{canary}'}}\noptimizer: {{name: SGD}}\ndata: {{source: digits}}\n"
    )
    folder = tmp_path / "run"
    (folder / "checkpoints").mkdir(parents=True)
    Job(recipe=recipe, folder=folder).write(folder / "JOB.json")
    for more in ({}, {"dry_run": True}):
        with pytest.raises(NotTrusted, match=r"JOB\.json says that the run is of .*canary\.py") as caught:
            train.run(resume=True, out=folder, **more)
        assert caught.value.add == (str(recipe),)
    recipe.write_text(
        "model: {name: 'timm:resnet18', args: {pretrained: true}}\noptimizer: {name: SGD}\ndata: {source: digits}\n"
    )
    with pytest.raises(NotTrusted, match="built with pretrained=True"):
        train.run(resume=True, out=folder)
    assert not canary.with_suffix(".ran").exists()


def test_a_recorded_folder_s_links_lead_nowhere(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("")
    (tmp_path / "A" / "replay").mkdir(parents=True)
    (tmp_path / "A" / "replay" / "x.npy").symlink_to(tmp_path / "secret")
    with pytest.raises(BadTrace, match=r"x\.npy is a link"):
        record._copy(tmp_path / "A" / "replay", tmp_path / "B")
    assert not (tmp_path / "B").exists()


def test_sources_that_others_can_write_are_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = converted_models.cache_folder()
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o777)
    with pytest.raises(MsmigrateError, match="others can write to it: chmod 700"):
        converted_models.cache_folder()


def test_a_mindir_s_own_code_is_not_loaded(tmp_path: Path) -> None:
    def mindir(operator: bytes, location: bytes = b"net_variables/data_0") -> Path:
        node = field_of(4, operator) + field_of(3, b"Custom.weight")  # a name that is no operator's
        tensor = field_of(7, b"w") + field_of(12, field_of(1, location))
        graph = field_of(1, node) + field_of(3, tensor)
        primitive = field_of(1, operator) + field_of(2, re.sub(rb"^REF::|:\d+$", b"", operator))
        (tmp_path / "net.mindir").write_bytes(
            field_of(1, b"0.2.0") + field_of(2, b"MindSpore") + field_of(7, graph) + field_of(12, primitive)
        )
        return tmp_path / "net.mindir"

    refuse_code(mindir(b"REF::Conv2D:3"))
    for operator in (b"REF::Custom:3", b"Custom", b"REF::PyExecute:1"):
        with pytest.raises(BadInput, match="runs code that the file names"):
            refuse_code(mindir(operator))
        with pytest.raises(BadInput, match="runs code that the file names"):
            serve(tmp_path / "net.mindir", worker=lambda name: NONE)
    for location in (b"/etc/passwd", b"../../x"):
        with pytest.raises(BadInput, match="is not next to it"):
            refuse_code(mindir(b"Add", location))
    content = mindir(b"Add").read_bytes()
    for cut in range(1, len(content)):
        (tmp_path / "cut.mindir").write_bytes(content[:cut])
        try:
            refuse_code(tmp_path / "cut.mindir")
        except BadInput as error:
            assert "is no MindIR, or it is damaged" in str(error)


@pytest.mark.parametrize("form", ["npz", "npy in npz"])
def test_a_batch_file_s_pickles_are_not_read(tmp_path: Path, form: str) -> None:
    from msmigrate.training.data.array_files import read_batches

    class Canary:
        def __reduce__(self) -> Any:
            return (Path.write_text, (tmp_path / "ran", ""))

    np.savez(tmp_path / "batch.npz", images=np.array([Canary()], dtype=object), labels=np.zeros(1, np.int64))
    with pytest.raises(BadInput, match=r"cannot be read|is damaged"):
        read_batches(tmp_path / "batch.npz", 1)
    assert not (tmp_path / "ran").exists()


def test_a_typed_recipe_is_the_user_s_word(tmp_path: Path, canary: Path) -> None:
    """What the user writes into a recipe and names is used as it stands: as far as a framework."""
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(RECIPE.read_text().replace("{name: resnet_tiny", f"{{name: 'timm:resnet18', source: '{canary}'"))
    path = checkpoint(tmp_path, changed(model__source="/etc/passwd.py"))
    for command in commands(path, tmp_path, recipe=recipe):
        with pytest.raises(WorkerFailed):
            command()
