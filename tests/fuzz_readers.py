"""Every reader of files and requests: sound inputs for it, how they are damaged, and what reads them.

`case(kind, seed, number)` is the same for the same three; fuzz_checking.py has it read, and says what has to hold.
Checkpoints are made and judged by tests/migrate/fuzz_inputs.py and fuzz_check.py.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

sys.path.extend(
    str(Path(__file__).parent / folder) for folder in ("", "migrate", "migrate/analyze", "parity", "reports")
)

import fuzz_bytes
import fuzz_inputs
import made_up_reports
import numpy as np
import onnx_files
import traces
from fuzz_damage import (
    LURES,
    bytes_damaged,
    json_damaged,
    lines_damaged,
    lured,
    npz_damaged,
    rest_damaged,
    safetensors_damaged,
    script_damaged,
    yaml_damaged,
)
from msmigrate.deploy.job import read_key, shape_of
from msmigrate.deploy.output_files import refuse_code
from msmigrate.deploy.serving import rest_app
from msmigrate.errors import MsmigrateError
from msmigrate.mappings import user_rows
from msmigrate.migrate.analyze import onnx_worker
from msmigrate.migrate.analyze.script_analysis import analyze_script
from msmigrate.migrate.checkpoint.formats.ckpt import field_of
from msmigrate.migrate.checkpoint.user_map import apply, read_rules
from msmigrate.migrate.model_spec import check as check_spec
from msmigrate.migrate.recipe_draft.draft import draft_recipe
from msmigrate.parity import run_folder
from msmigrate.parity.align import model_structure
from msmigrate.parity.build_result import report as report_of
from msmigrate.parity.job import ParityJob
from msmigrate.parity.options import STAGES
from msmigrate.parity.replay import module_calls
from msmigrate.parity.result import Finding, MadeWith, Report
from msmigrate.parity.run import read_causes
from msmigrate.parity.tensor_verdict import Verdict
from msmigrate.printable import json_line
from msmigrate.reports import mapping_table, parity_terminal, script_analysis
from msmigrate.reports.html.parity_page import page
from msmigrate.reports.parity_ci import junit, markdown
from msmigrate.reports.terminal import Console
from msmigrate.training import checkpoints
from msmigrate.training.data import image_folder, sources
from msmigrate.training.data.array_files import read_batches
from msmigrate.training.data.sample import Sample, decode
from msmigrate.training.inference import class_file, subject
from msmigrate.training.models.converted_models import maker
from msmigrate.training.models.model_names import flat
from msmigrate.training.options import NetOptions
from msmigrate.training.recipe import reader as recipes
from msmigrate.training.run import run_log
from msmigrate.workflows import parity_gate
from PIL import Image

TESTS = Path(__file__).parent
CHECKOUT = TESTS.parent
RECIPE = TESTS / "parity" / "tiny.yaml"
NAMES = {"layer1": True, "layer1.0": True, "layer1.0.conv": True, "layer1.0.conv.weight": False, "fc": True}
THERE = {"stage1", "stage1.0", "stage1.0.conv", "stage1.0.conv.weight", "end_point"}
KINDS_OF_ROWS = ("layer", "function", "loss", "optimizer", "schedule", "transform")


class Kind(NamedTuple):
    """What a reader is for: the file's name, sound contents, how they are damaged, and what reads the file."""

    name: str
    seeds: Callable[[], Sequence[bytes]]
    damage: Callable[[Random, Sequence[bytes]], bytes]
    read: Callable[[Path], Any]
    opens: bool = True  # whether it opens the file itself, which may then be a pipe or a device


# Sound inputs ------------------------------------------------------------------------------------------------------


def recipe_seeds() -> list[bytes]:
    files = [*sorted((TESTS / "parity").glob("tiny*.yaml")), *sorted((CHECKOUT / "recipes").glob("*.yaml"))]
    rich = (
        b"model: {name: 'timm:resnet18', args: {num_classes: 10, pretrained_cfg: {url: x}}, source: net.py}\n"
        b"data: {source: 'folder:images', validation: digits:test, transforms: [{name: ToTensor}], batch: 8}\n"
        b"optimizer: {name: SGD, args: {lr: 0.1}, groups: [{params: ['fc*', '*.bias'], args: {lr: 0.2}}]}\n"
        b"schedule: {name: SequentialLR, args: {milestones: [2], "
        b"schedulers: [{name: ConstantLR}, {name: StepLR, args: {step_size: 2}}]}}\n"
    )
    return [*(file.read_bytes() for file in files), rich]


def map_seeds() -> list[bytes]:
    return [
        rb"- {torch: 'layer(\d)\.(\d)', mindspore: 'stage\1.\2'}" + b"\n- {torch: fc, mindspore: end_point}\n",
        b"- torch: layer1\n  mindspore: stage1\n- torch: '(layer|fc)1?'\n  mindspore: end_point\n",
    ]


@cache
def onnx_seeds() -> Sequence[bytes]:
    with scratch() as folder:
        path = folder / "x.onnx"
        made = (
            onnx_files.small,
            partial(onnx_files.small, operator="Odd"),
            partial(onnx_files.small, external="weights.bin"),
            onnx_files.calling_itself,
            partial(onnx_files.doubling, depth=30),
        )
        return [make(path).read_bytes() for make in made]


@cache
def image_seeds() -> Sequence[bytes]:
    found = []
    for form, mode in (("PNG", "RGB"), ("PNG", "P"), ("JPEG", "RGB"), ("BMP", "RGB"), ("WEBP", "RGB"), ("GIF", "P")):
        held = io.BytesIO()
        pixels = np.random.default_rng(0).integers(0, 255, (9, 7, 3), dtype=np.uint8)
        Image.fromarray(pixels).convert(mode).save(held, form)
        found.append(held.getvalue())
    held = io.BytesIO()
    Image.new("RGB", (64, 64)).save(held, "TIFF", compression="tiff_deflate")
    return [*found, held.getvalue(), b"P6 2 2 255\n" + bytes(12)]


def npz_seeds() -> list[bytes]:
    found = []
    for arrays in ({"images": (2, 3, 4, 4), "labels": (2,)}, {"input": (2, 3), "input.1": (2, 3), "labels": (2,)}):
        held = io.BytesIO()
        np.savez(held, **{name: np.zeros(shape, "f4" if name != "labels" else "i8") for name, shape in arrays.items()})
        found.append(held.getvalue())
    return found


def batch_seeds() -> list[bytes]:
    header = {"images": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}
    header["labels"] = {"dtype": "I64", "shape": [2], "data_offsets": [24, 40]}
    text = json.dumps(header).encode()
    return [len(text).to_bytes(8, "little") + text + bytes(40)]


def script_seeds() -> list[bytes]:
    return [file.read_bytes() for file in sorted((TESTS / "migrate/training_scripts").rglob("*.py.txt"))]


def source_seeds() -> list[bytes]:
    return [content + b"\ndef build(depth=18):\n    return None\n" for content in script_seeds()]


def report_seeds() -> list[bytes]:
    made_with = MadeWith("0" * 16, None, 3, 8)
    found = []
    for failing in (None, "loss"):
        findings = [
            Finding(stage, "train", "w", 0, Verdict.FAIL if stage == failing else Verdict.PASS, "off")
            for stage in STAGES
        ]
        report = Report("recipe.yaml", "0" * 16, {"torch": "2"}, findings, made_with=made_with)
        found.append(json.dumps(report.as_json()).encode())
    return found


def rest_seeds() -> list[bytes]:
    image = {"b64": base64.b64encode(image_seeds()[0]).decode()}
    binary = {"b64": base64.b64encode(bytes(16)).decode(), "type": "float32", "shape": [2, 2]}
    given = [[{"x": [[1, 2], [3, 4.5]]}], {"x": binary}, [{"x": image}, {"x": [[1, 2], [3, 4]]}]]
    return [json.dumps({"instances": each}).encode() for each in given]


def structure_seeds() -> list[bytes]:
    weight = model_structure.Held((2, 3), True, "float32", "net.py, line 3")
    layer = model_structure.Module("fc", "Linear", {"weight": weight}, ("n",), "net.py, line 3", {}, False, {})
    whole = model_structure.Module("", "Net", {}, (), "net.py, line 1", {"scale": weight}, True, {"a": "b"})
    called = model_structure.Call("fc", 0, 0, 1, (0,), 1, (2, 2))
    made = model_structure.Structure("torch", (whole, layer), (called,), ((2, 2),), ("step",), False)
    return [json.dumps({"format": model_structure.FORMAT, **asdict(made)}).encode()]


def run_seeds() -> list[bytes]:
    run = run_folder.RunFile("torch", "tiny.yaml", 3, 8, {"torch": "a:b", "mindspore": "c:d"}, False, {"a": "b"}, [])
    return [json.dumps({"format": run_folder.FORMAT, **asdict(run)}).encode()]


def causes_seeds() -> list[bytes]:
    causes = [asdict(cause) for cause in made_up_reports.report().causes]
    return [json.dumps(causes).encode(), json.dumps(causes * 5).encode()]


def row_seeds() -> list[bytes]:
    return [(CHECKOUT / "docs/own_mappings.yaml").read_bytes()]


def class_seeds() -> list[bytes]:
    return ["\n".join(LURES).encode("utf-8", "replace"), b"cat\ndog\n" * 50, "Käfer\n".encode() * 3]


@cache
def trained_seeds() -> Sequence[bytes]:
    tree = recipes.load(RECIPE).model_dump(mode="json", exclude_none=True)
    run = {"recipe": tree, "classes": ["a", "b"], "step": 3, "recipe_digest": "0" * 16}
    return [json.dumps(run).encode()]


def trained(rng: Random, seeds: Sequence[bytes]) -> bytes:
    """A checkpoint of `msmigrate train`, in which what it says of its run is damaged."""
    run = lured(rng, json.loads(rng.choice(seeds)))
    with scratch() as folder:
        try:
            checkpoints.write(folder / "x", {"fc.weight": np.zeros((2, 3), "f4")}, run if isinstance(run, dict) else {})
            content = (folder / "x").read_bytes()
        except (ValueError, TypeError, UnicodeEncodeError, RecursionError):  # NaN, an integer of thousands of digits
            content = b""
    return fuzz_bytes.damaged(rng, content, content) if rng.random() < 0.2 else content


# Traces: a folder of files, of which one is damaged


def record(folder: Path) -> None:
    """A recording of one call."""
    writer = module_calls.Writer(folder)
    stored = writer.store(np.ones((2, 3), dtype=np.float32))
    module = module_calls.Module("", "Net", (), (), ())
    call = module_calls.Call(number=0, path="", caller=None, args=(stored,), kwargs={"a": [1.5, None]}, output=stored)
    writer.close([module], [call], {})


@cache
def files_of(make: Callable[[Path], Any]) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """The files of a folder, and their names."""
    with scratch() as folder:
        make(folder)
        files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return files, tuple(sorted(files))


def one_damaged(make: Callable[[Path], Any], rng: Random, seeds: Sequence[bytes]) -> bytes:
    """The number of the folder's file in the first byte, whether its digest is to fit, then what stands in it."""
    files, names = files_of(make)
    at = rng.randrange(len(names))
    content = files[names[at]]
    ending = names[at].rpartition(".")[2]
    made = {"json": json_damaged, "safetensors": safetensors_damaged}.get(ending, bytes_damaged)
    return bytes([at, rng.random() < 0.8]) + made(rng, [content])


def with_files(make: Callable[[Path], Any], read: Callable[[Path], Any], path: Path) -> None:
    """Read the folder, with the damaged file in the place of the sound one."""
    content = path.read_bytes()
    path.unlink()
    files, names = files_of(make)
    folder = path.parent / "folder"
    for name, held in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content[2:] if name == names[content[0] % len(names)] else held)
    if content[1] % 2:
        fit_digests(folder / names[content[0] % len(names)])
    try:
        read(folder)
    finally:
        shutil.rmtree(folder)


def fit_digests(path: Path) -> None:
    """Have the index beside a damaged file say the file's digest, as one would who wants it read."""
    index = path.parent / "trace.json"
    if path.suffix == ".safetensors" and index.is_file():
        document = json.loads(index.read_text())
        document["files"][path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
        index.write_text(json.dumps(document))


def read_trace(folder: Path) -> None:
    shown_in_all_forms(report_of(RECIPE, ParityJob(recipes.load(RECIPE), folder)))


def read_recording(folder: Path) -> None:
    found = module_calls.Recording.open(folder)
    for call in found.calls.values():
        for stored in flat([call.args, call.kwargs, call.output], module_calls.Stored):
            found.array(stored)


def shown_in_all_forms(report: Any) -> None:
    printed = io.StringIO()
    parity_terminal.show(report, Console(file=printed, width=80))
    for text in (printed.getvalue(), junit(report), markdown(report), page(report)):
        odd = [line for line in text.replace("\t", " ").split("\n") if not line.isprintable()]
        assert not odd, f"not printable: {odd[0][:200]!a}"
    json.dumps(report.as_json())


# Readers -----------------------------------------------------------------------------------------------------------


def read_recipe(path: Path) -> None:
    recipe = recipes.load(path)
    recipe.model_dump_json()
    if recipe.model.source is None:
        assert len(recipe.digest) == 16


def read_map(path: Path) -> None:
    apply(read_rules(path), NAMES, THERE)


def read_rows(path: Path) -> None:
    user_rows.read.cache_clear()
    rows = user_rows.read((path,), KINDS_OF_ROWS)
    json_line(mapping_table.as_json(rows))
    printed = io.StringIO()
    for row in rows:
        mapping_table.show_row(row, Console(file=printed, width=80))


def read_onnx(path: Path) -> None:
    json_line(onnx_worker.report(str(path)))


def read_script(path: Path) -> None:
    analysis = analyze_script(path)
    draft_recipe(analysis)
    json_line(script_analysis.as_json(analysis))
    script_analysis.show(analysis, Console(file=io.StringIO(), width=100))


def read_request(path: Path) -> None:
    body = path.read_bytes()
    for instance in rest_app.instances_of(body):
        try:
            (value,) = rest_app.values_of(instance, ["x"])
            rest_app.plain(rest_app.array_of(value, (2, 2), "float32"))
        except MsmigrateError:
            pass
        try:
            (value,) = rest_app.values_of(instance, ["x"])
            rest_app.image_of(value).load()
        except (MsmigrateError, OSError, SyntaxError, ValueError):  # the worker catches what decoders raise
            pass


def read_classes(path: Path) -> None:
    names = class_file(path)
    printed = io.StringIO()
    Console(file=printed, width=80).print(*names[:50])
    assert all(line.isprintable() for line in printed.getvalue().split("\n"))


def read_cifar(path: Path) -> None:
    labels = sources._labels(path, sources.PIXELS + 1, sources.CIFAR10)
    assert len(labels) < 1_000_000


def read_key_file(path: Path) -> None:
    read_key(path, "AES-GCM")
    with suppress(MsmigrateError):  # the text may also stand on the command line, as a shape
        shape_of(path.read_bytes().decode("utf-8", "replace"))


def read_source_file(path: Path) -> None:
    """What names a function of a file looks for it by reading."""
    with suppress(MsmigrateError):
        maker(path, "torchvision:resnet18")
    check_spec(f"{path}:build", "mindspore")


def read_trained(path: Path) -> None:
    subject(NetOptions(checkpoint=path), path.parent)


def read_log(path: Path) -> None:
    found = run_log.read(path)
    assert isinstance(found.status, str) and found.last_step is not None
    json.dumps([found.best, found.end], default=str)


def mindir_seeds() -> list[bytes]:
    node = field_of(4, b"Conv2D") + field_of(3, b"conv.weight")
    tensor = field_of(7, b"w") + field_of(12, field_of(1, b"net_variables/data_0"))
    graph = field_of(1, node) * 3 + field_of(3, tensor)
    whole = field_of(1, b"0.2.0") + field_of(2, b"MindSpore") + field_of(7, graph)
    return [whole + field_of(12, field_of(1, b"Conv2D")), whole + field_of(8, graph)]


def log_seeds() -> list[bytes]:
    validation = {"event": "validation", "step": 2, "epoch": 1, "loss": 2.0, "top1": 0.5, "top5": 0.9, "samples": 10}
    events: list[dict[str, Any]] = [
        {"event": "plan", "steps": 4, "epochs": 2, "batch": 8, "classes": ["a", "b"], "recipe": {}, "time": 1.0},
        {"event": "step", "step": 1, "loss": 2.5, "lr": 0.1, "seconds": 0.2, "time": 2.0},
        {**validation, "ema": validation, "time": 3.0},
        {"event": "checkpoint", "step": 2, "file": "step2.ckpt", "time": 3.5},
        {"event": "warning", "text": "slow", "time": 3.6},
        {"event": "end", "steps": 4, "time": 4.0},
    ]
    return [b"".join(json.dumps(event).encode() + b"\n" for event in events)]


def folder_kind(make: Callable[[Path], Any], read: Callable[[Path], Any]) -> Kind:
    """A kind whose inputs are folders, of which one file is damaged."""

    def first() -> list[bytes]:
        files, names = files_of(make)
        return [b"\0\0" + files[names[0]]]

    return Kind("damage", first, partial(one_damaged, make), partial(with_files, make, read), opens=False)


KINDS: dict[str, Kind] = {
    "recipe": Kind("recipe.yaml", recipe_seeds, yaml_damaged, read_recipe),
    "name map": Kind("map.yaml", map_seeds, yaml_damaged, read_map),
    "mapping rows": Kind("rows.yaml", row_seeds, yaml_damaged, read_rows),
    "trace": folder_kind(traces.Run().write, read_trace),
    "recording": folder_kind(record, read_recording),
    "structure": Kind("structure.json", structure_seeds, json_damaged, model_structure.read),
    "run file": Kind("run.json", run_seeds, json_damaged, lambda path: run_folder.read(path.parent)),
    "causes": Kind("causes.json", causes_seeds, json_damaged, read_causes),
    "report": Kind("report.json", report_seeds, json_damaged, lambda path: parity_gate._read(path)),
    "ONNX": Kind("x.onnx", onnx_seeds, bytes_damaged, read_onnx),
    "MindIR": Kind("x.mindir", mindir_seeds, bytes_damaged, refuse_code),
    "batch .npz": Kind("batch.npz", npz_seeds, npz_damaged, lambda path: read_batches(path, 2)),
    "batch .safetensors": Kind("x.safetensors", batch_seeds, safetensors_damaged, lambda path: read_batches(path, 2)),
    "training log": Kind("log.jsonl", log_seeds, lines_damaged, read_log),
    "image": Kind("x.png", image_seeds, bytes_damaged, lambda path: decode(Sample(image_folder.read(path), 0, "x"))),
    "script": Kind("train.py", script_seeds, script_damaged, read_script),
    "source": Kind("net.py", source_seeds, script_damaged, read_source_file),
    "request": Kind("request", rest_seeds, rest_damaged, read_request, opens=False),
    "class list": Kind("classes.txt", class_seeds, bytes_damaged, read_classes),
    "CIFAR": Kind("data.bin", lambda: [bytes(2 * (sources.PIXELS + 1))], bytes_damaged, read_cifar, opens=False),
    "key": Kind(
        "key", lambda: [b"0123456789abcdef" * 2, b"0" * 16, b"1x3x224x224:int64"], bytes_damaged, read_key_file
    ),
    "checkpoint of train": Kind(
        "x.ckpt", trained_seeds, trained, lambda path: subject(NetOptions(checkpoint=path), path.parent)
    ),
}
CHECKPOINTS = tuple(fuzz_inputs.FORMATS)
ALL = (*KINDS, *CHECKPOINTS)


def case(kind: str, seed: int, number: int) -> bytes:
    """The content of the input of this number; the same for the same three. Of KINDS only."""
    rng = Random(f"{kind}:{seed}:{number}")
    return KINDS[kind].damage(rng, KINDS[kind].seeds())


@contextmanager
def scratch() -> Iterator[Path]:
    """An empty folder, in memory where that can be."""
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:
        yield Path(name)
