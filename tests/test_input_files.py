"""Every reader of a file that a user, or another file, names: it opens regular files only, and never waits.

Each is given a pipe, a device, a socket, a folder, a file of a terabyte, and names that no file can have.
"""

from __future__ import annotations

import ast
import os
import signal
import socket
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import house_rules
import pytest
from msmigrate import input_files
from msmigrate.deploy.job import read_key
from msmigrate.errors import MsmigrateError
from msmigrate.input_files import typed
from msmigrate.mappings import user_rows
from msmigrate.migrate.analyze.model_analysis import analyze
from msmigrate.migrate.analyze.onnx_worker import read as read_onnx
from msmigrate.migrate.checkpoint.formats.registry import open_source
from msmigrate.migrate.checkpoint.user_map import read_rules
from msmigrate.migrate.source_files import read_script_file
from msmigrate.parity import run_folder
from msmigrate.parity.align import model_structure
from msmigrate.parity.replay.module_calls import Recording
from msmigrate.parity.run import read_causes
from msmigrate.parity.trace import Trace
from msmigrate.training import checkpoints
from msmigrate.training.checkpoints import is_foreign
from msmigrate.training.data import image_folder, sources
from msmigrate.training.data.array_files import read_batches
from msmigrate.training.inference import class_file
from msmigrate.training.models.converted_models import maker
from msmigrate.training.recipe import digest as digests
from msmigrate.training.recipe import reader
from msmigrate.workflows import parity_gate

CHECKOUT = Path(__file__).parent.parent

Reader = Callable[[Path], Any]
READERS: dict[str, Reader] = {
    "recipe.yaml": reader.load,
    "map.yaml": read_rules,
    "rows.yaml": lambda path: user_rows.read((path,), ("layer",)),
    "rows.yaml, for its digest": digests._content,
    "source.py, for its digest": digests._source,
    "source.py": lambda path: maker(path, "torchvision:resnet18"),
    "report.json": lambda path: parity_gate._read(path),
    "trace.json": lambda path: Trace(path.parent),
    "run.json": lambda path: run_folder.read(path.parent),
    "replay.json": lambda path: Recording.open(path.parent),
    "structure.json": model_structure.read,
    "causes.json": read_causes,
    "batch.npz": lambda path: read_batches(path, 1),
    "batch.safetensors": lambda path: read_batches(path, 1),
    "classes.txt": class_file,
    "fine_label_names.txt": lambda path: sources._class_names(path, sources.CIFAR100),
    "train.py": read_script_file,
    "model.onnx": read_onnx,
    "model.onnx, by name": lambda path: analyze(str(path), mode="graph", target="CPU"),
    "weights.pth": lambda path: open_source(str(path)),
    "weights.ckpt": checkpoints.read,
    "weights.ckpt, for its digest": digests.file_digest,
    "weights.ckpt, for its kind": is_foreign,
    "image.png": image_folder.read,
    "key": lambda path: read_key(path, "AES-GCM"),
}
FOLDERS = ("weights.pth", "classes.txt")  # which may be folders as well
LARGE = ("weights.pth", "weights.ckpt", "batch.npz", "batch.safetensors")  # of which only a part is looked at, or all
DIGESTS = ("weights.ckpt, for its digest", "weights.ckpt, for its kind")  # a terabyte has one, too


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_link_to_zeros(path: Path) -> None:
    path.symlink_to("/dev/zero")


def make_link_to_a_terminal(path: Path) -> None:
    _master, terminal = os.openpty()
    path.symlink_to(os.ttyname(terminal))


def make_socket(path: Path) -> None:
    here = socket.socket(socket.AF_UNIX)
    with tempfile.TemporaryDirectory() as short:  # a socket's path has at most a hundred letters
        here.bind(f"{short}/socket")
        Path(short, "socket").rename(path)
    here.close()


def make_huge(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 40)


KINDS: dict[str, Callable[[Path], None]] = {
    "a pipe": make_pipe,
    "a device": make_link_to_zeros,
    "a terminal": make_link_to_a_terminal,
    "a socket": make_socket,
    "directory": Path.mkdir,
    "larger than": make_huge,
}


@pytest.fixture
def alarm() -> Iterator[None]:
    """Ends a test that waits for something."""

    def stop(*_: object) -> None:
        raise TimeoutError("it waits")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(5)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("alarm")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", READERS)
def test_what_is_no_regular_file_is_refused_in_a_line(tmp_path: Path, name: str, kind: str) -> None:
    file = tmp_path / name.partition(",")[0]
    KINDS[kind](file)
    if (kind == "directory" and name in FOLDERS) or (kind == "larger than" and name in DIGESTS):
        return
    with pytest.raises(MsmigrateError) as refused:
        READERS[name](file)
    text = str(refused.value)
    assert text.isprintable() and len(text) < 600
    if not (kind == "larger than" and name in LARGE) and not (kind == "directory" and name == "train.py"):
        assert kind.replace("terminal", "device") in text.lower(), text


@pytest.mark.parametrize("name", sorted(READERS.keys() - {"fine_label_names.txt"}))  # need not be there
def test_what_is_not_there_is_refused_in_a_line(tmp_path: Path, name: str) -> None:
    file = tmp_path / "none" / name.partition(",")[0]
    with pytest.raises(MsmigrateError) as refused:
        READERS[name](file)
    assert "\n" not in str(refused.value)


def test_a_link_to_a_regular_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("\ufeffä")
    (tmp_path / "link").symlink_to(tmp_path / "there")
    assert input_files.read_text(tmp_path / "link", 100) == "ä"
    assert input_files.unreadable(tmp_path / "link") is None


def test_a_name_that_no_file_can_have_is_not_there() -> None:
    for name in ("a\0b", "\ud800", "x" * 300):
        assert input_files.unreadable(name) is not None
    assert input_files.unreadable("none") == "there is no file none"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b'{"a": NaN}', "NaN, which is no number"),
        (b"[-Infinity]", "-Infinity, which is no number"),
        (b"[" + b"9" * 5000 + b"]", "digits"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b"[" + b"[]," * 1_000_000 + b"1]", "more than 2,000,000 values"),
        (b'{"a": {"b": 1, "b": 1}}', "the key 'b' twice"),
        (b'["\xff"]', "no text in UTF-8 at byte 2"),
        (b"", "Expecting value"),
    ],
)
def test_json_that_means_no_small_tree_of_data_is_refused(content: bytes, says: str) -> None:
    with pytest.raises(ValueError, match="no valid JSON: .*" + says):
        input_files.json_value(content)


# That no reader is forgotten -------------------------------------------------------------------------------------

OWN = {  # what else the package opens for reading: nothing that a user, or a file of the user's, names
    "installed with msmigrate": "cli/options "
    "mappings/row_reader mappings/state_names migrate/source/emit/names_and_imports reports/html/parity_page "
    "reports/html/__init__ training/data/sources training/recipe/digest",
    "the machine's own": "doctor/machine doctor/packages doctor/frameworks training/device_targets "
    "parity/record/torch_device processes temporary migrate/analyze/onnx_worker workers/worker",
    "left by a process of msmigrate's in a folder of its own": "deploy/lite deploy/mindspore_export_worker "
    "deploy/serving/mindspore_servable_worker deploy/onnx_check_worker deploy/export "
    "parity/job deploy/output_files training/metrics migrate/source/observe/mindspore_variations_worker "
    "migrate/source/observe/torch_variations_worker "
    "training/recipe/schema training/run/launch training/step/mindspore_compile",
    "checked before this process was started": "deploy/serving/mindspore_server_worker",
    "Python has imported it, or would": "migrate/source/observe/observations migrate/source_files "
    "migrate/model_spec workers/parent",
}


def reads_otherwise(file: Path) -> list[int]:
    """The lines on which a file of the package opens something for reading without input_files."""
    found = []
    for node in ast.walk(house_rules.parse(file)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        texts = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        opens = node.func.attr == "open" and (texts[:1] in (["r"], ["rb"]) or not (node.args or node.keywords))
        if opens or node.func.attr in ("read_text", "read_bytes"):
            found.append(node.lineno)
    return found


def test_every_other_file_is_opened_by_the_one_function() -> None:
    files = {file.relative_to(CHECKOUT): reads_otherwise(file) for file in house_rules.package_files(CHECKOUT)}
    found = {str(file.with_suffix("")): lines for file, lines in files.items() if lines}
    known = {name for names in OWN.values() for name in names.split()}
    assert {name: lines for name, lines in found.items() if name not in known} == {}, "open it with input_files"
    assert known - found.keys() == set(), "opens nothing any more"


def test_json_becomes_what_a_type_says_and_nothing_else() -> None:
    held = {"shape": [2, 3], "trains": True, "dtype": "float32", "made": "", "reached": True}
    assert typed(model_structure.Held, held) == model_structure.Held((2, 3), True)
    assert typed(model_structure.Held, {"shape": [], "trains": False}, whole=False) == model_structure.Held((), False)
    for wrong, why in (
        ({**held, "shape": [2, -3]}, r"shape\.1: "),
        ({**held, "shape": "23"}, "shape: "),
        ({**held, "trains": 1}, "trains: "),
        ({**held, "more": 1}, "more: "),
        ({"shape": [2]}, "trains: "),
        ({"shape": [2], "trains": True}, "lacks a field"),
        ([held], "object"),
    ):
        with pytest.raises(ValueError, match=why):
            typed(model_structure.Held, wrong)
