"""Damaged inputs for every reader of files and requests, and what has to hold of each.

`case(kind, seed, number)` is the same for the same three. `check` hands it to the reader in this process, under a limit
of time and of memory. Whatever it holds, it is read or refused with a MsmigrateError: no other exception, no hang, no
hundreds of megabytes, and nothing happens: no module of the input's folder is imported, no file made, no socket opened
and no process started. Checkpoints are made and judged by tests/migrate/fuzz_inputs.py and fuzz_check.py.
"""

from __future__ import annotations

import base64
import copy
import io
import json
import os
import shutil
import sys
import time
import traceback
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

TESTS = Path(__file__).parent
CHECKOUT = TESTS.parent
for folder in ("", "migrate", "migrate/analyze", "parity", "reports"):
    sys.path.insert(0, str(TESTS / folder))

import fuzz_bytes
import fuzz_check
import fuzz_inputs
import made_up_reports
import numpy as np
import onnx_files
import traces
import yaml
from fuzz_check import Outcome, limits
from msmigrate.errors import MsmigrateError
from msmigrate.export import rest_instances
from msmigrate.export.asked import read_key, shape_of
from msmigrate.mappings import user_rows
from msmigrate.migrate.analyze import onnx_operators
from msmigrate.migrate.name_map import apply, read_rules
from msmigrate.migrate.script import analyze_script, draft_recipe
from msmigrate.parity import run_file
from msmigrate.parity.findings import Finding, MadeWith, Report
from msmigrate.parity.judge import Verdict
from msmigrate.parity.trace import STAGES
from msmigrate.parity.diagnosis.run import read_causes
from msmigrate.parity.pairs import structure
from msmigrate.parity.pairs.batch_file import read_batches
from msmigrate.parity.replay import calls
from msmigrate.parity.run import report as report_of
from msmigrate.parity.worker import Options
from msmigrate.printable import json_line, printable
from msmigrate.reports import gate, mapping_table, parity_report, script_report
from msmigrate.reports.junit import junit
from msmigrate.reports.markdown import markdown
from msmigrate.reports.page.html import page
from msmigrate.reports.predict_command import class_file
from msmigrate.reports.terminal import Console
from msmigrate.train import recipe as recipes
from msmigrate.train.data import cifar
from msmigrate.train.data.sample import Sample, decode
from msmigrate.train.inference.subject import NetOptions, subject
from msmigrate.train.run import checkpoints
from PIL import Image

MEMORY = 500 << 20  # bytes that an input may make the process grow by
RECIPE = TESTS / "parity" / "tiny.yaml"
NAMES = {"layer1": True, "layer1.0": True, "layer1.0.conv": True, "layer1.0.conv.weight": False, "fc": True}
THERE = {"stage1", "stage1.0", "stage1.0.conv", "stage1.0.conv.weight", "end_point"}
KINDS_OF_ROWS = ("layer", "function", "loss", "optimizer", "schedule", "transform")
CANARY = "canary"  # the name of the module, the file and whatever else must not come to life

# What tries to make something happen, as it may stand in any text
LURES = (
    *("canary.py", "canary.py:build", "canary:build", "./canary", "/tmp/canary", f"file:///tmp/{CANARY}"),
    *("http://127.0.0.1:9/canary", "hf-hub:canary/canary", "timm:canary", "torchvision:resnet18(weights='DEFAULT')"),
    *("__import__('canary')", "os.system('touch canary')", "$(touch canary)", "`touch canary`", "{{7*7}}", "%s%n"),
    *("(a+)+$", "(a|a)*b", "a{1,60000}", "*a" * 300, "[", "\\", "\\1", "(?P<x>", "/dev/zero", "/dev/stdin"),
    *("\x1b[2J", "\u202e", "\ud800", "1e999999", "0" * 5000, "9" * 5000, "x" * 20_000, "../" * 30, "con\0crete"),
)
YAML = (  # whole files, or what stands in the place of a value
    *(
        "[" * 30_000,
        "{" * 30_000,
        "- " * 20_000,
        "? " * 20_000,
        "&a [*a, *a]",
        "&a {<<: *a}",
        "!!python/name:os.system",
    ),
    *('!!python/object/apply:os.system ["touch canary"]', "!!float 1" + ":1" * 20_000, "!!binary aGk=", "<<: [{a: 1}]"),
    "\n".join(["- &a0 [x, x]", *(f"- &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, 60))]),
)


class Kind(NamedTuple):
    """What a reader is for: the file's name, sound contents, how they are damaged, and what reads the file."""

    name: str
    seeds: Callable[[], Sequence[bytes]]
    damage: Callable[[Random, Sequence[bytes]], bytes]
    read: Callable[[Path], Any]


# Damage ------------------------------------------------------------------------------------------------------------


def bytes_damaged(rng: Random, seeds: Sequence[bytes]) -> bytes:
    return fuzz_bytes.damaged(rng, rng.choice(seeds), rng.choice(seeds))


def lured(rng: Random, value: Any) -> Any:
    """The value with some texts in it, or keys, replaced by lures, and values exchanged."""
    value = fuzz_bytes.damaged_json(rng, value) if rng.random() < 0.7 else copy.deepcopy(value)
    places = fuzz_bytes._places(value)
    for _ in range(rng.choice((0, 1, 1, 3))):
        if not places:
            break
        holder, key = rng.choice(places)
        if isinstance(holder, dict) and rng.random() < 0.2:
            holder[rng.choice(LURES)] = holder.get(key)
        elif (isinstance(holder, dict) and key in holder) or (isinstance(holder, list) and key < len(holder)):
            holder[key] = rng.choice((rng.choice(LURES), [rng.choice(LURES)], {rng.choice(LURES): rng.choice(LURES)}))
    return value


def json_damaged(rng: Random, seeds: Sequence[bytes]) -> bytes:
    draw = rng.random()
    if draw < 0.2:
        return bytes_damaged(rng, seeds)
    return fuzz_bytes.json_text(rng, lured(rng, json.loads(rng.choice(seeds))))


def yaml_damaged(rng: Random, seeds: Sequence[bytes]) -> bytes:
    draw, seed = rng.random(), rng.choice(seeds)
    if draw < 0.25:
        return bytes_damaged(rng, seeds)
    if draw < 0.35:
        return rng.choice(YAML).encode()
    if draw < 0.45:  # something instead of one value, as text
        lines = seed.decode().split("\n")
        at = rng.randrange(len(lines))
        key, colon, _ = lines[at].partition(":")
        lines[at] = f"{key}{colon or ':'} {rng.choice((*YAML, *LURES))}"
        return "\n".join(lines).encode("utf-8", "surrogatepass")
    if draw < 0.5:  # a line again, gone, or elsewhere
        lines = seed.decode().split("\n")
        line = lines.pop(rng.randrange(len(lines)))
        for _ in range(rng.choice((0, 1, 2))):
            lines.insert(rng.randrange(len(lines) + 1), line)
        return "\n".join(lines).encode()
    value = lured(rng, yaml.safe_load(seed))
    if rng.random() < 0.5:
        return fuzz_bytes.json_text(rng, value)
    try:
        return yaml.safe_dump(value, sort_keys=False).encode("utf-8", "surrogatepass")
    except (yaml.YAMLError, ValueError, RecursionError):  # an integer of thousands of digits
        return fuzz_bytes.json_text(rng, value)


WORDS = (
    *(
        "model",
        "optimizer",
        "nn.Conv2d(3, 8, 3)",
        "lambda x: x",
        "yield",
        "await",
        "return",
        "class A(A): pass",
        "global a",
    ),
    *(
        "def f(*a, **k):",
        "import canary",
        "from canary import *",
        "exec('import canary')",
        "open('canary', 'w')",
        "x := 1",
    ),
    *(
        "*x, y = z",
        "match x:\n    case [1, *_]: pass",
        "@decorated",
        "'%s' % x",
        "f'{x!r:>{y}}'",
        "10**10**10",
        "'a' * 10**9",
    ),
    *(
        "[[[[1]*9999]*9999]*9999]",
        "(" * 90 + ")" * 90,
        "-" * 110 + "1",
        "1 << 10**9",
        "range(10**18)",
        "while True: pass",
    ),
    *("x" + ".a" * 110, "\N{BOM}", "\x0c", "\\\n", "# coding: latin-1", "\t", "if 1:\n  " * 30 + "pass"),
)


def script_damaged(rng: Random, seeds: Sequence[bytes]) -> bytes:
    """A script with lines gone, moved, or exchanged for others; mostly still Python."""
    if rng.random() < 0.15:
        return bytes_damaged(rng, seeds)
    lines = rng.choice(seeds).decode().split("\n")
    other = rng.choice(seeds).decode().split("\n")
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(lines))
        indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
        action = rng.randrange(6)
        if action == 0:
            del lines[at]
        elif action == 1:
            lines.insert(at, indent + rng.choice(WORDS))
        elif action == 2:
            lines[at] = indent + rng.choice(other).strip()
        elif action == 3 and "=" in lines[at]:
            lines[at] = lines[at].partition("=")[0] + "= " + rng.choice(WORDS)
        elif action == 4:
            begin = rng.randrange(len(lines))
            lines[at:at] = lines[begin : begin + rng.choice((1, 5, 20))]
        else:
            words = lines[at].split(" ")
            words[rng.randrange(len(words))] = rng.choice(WORDS)
            lines[at] = " ".join(words)
        lines = lines or [""]
    return "\n".join(lines).encode()


def npz_damaged(rng: Random, seeds: Sequence[bytes]) -> bytes:
    """An archive whose members, or their heads, say something else."""
    if rng.random() < 0.4:
        return bytes_damaged(rng, seeds)
    with zipfile.ZipFile(io.BytesIO(rng.choice(seeds))) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = rng.choice(sorted(members))
    action = rng.randrange(4)
    if action == 0:
        shape = rng.choice(("(2, 3)", "(1000000000,)", "(0,)", "()", "(-1,)", "(1,) * 99", str((1 << 62, 1 << 62))))
        kind = rng.choice(("<f4", ">f8", "|O", "<i8", "|b1", "<U9", "|V8", "<M8[ns]", "<f4,<i8", "[('a', '<f4')]"))
        members[name] = npy(f"{{'descr': {kind!r}, 'fortran_order': False, 'shape': {shape}, }}")
    elif action == 1:
        members[name] = npy(rng.choice(("{}", "(" * 3000, "{'descr': 1}", "__import__('canary')", "9" * 5000)))
    elif action == 2:
        members[name] = fuzz_bytes.damaged(rng, members[name], b"".join(members.values()))
    else:
        members[rng.choice((*LURES, "images7.npy", "input.1.npy", "x", "labels.npy", "../x.npy"))] = members.pop(name)
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for name, content in members.items():
            try:
                archive.writestr(name, content)
            except (UnicodeEncodeError, ValueError):
                archive.writestr("x", content)
        if rng.random() < 0.05:
            archive.writestr("images9.npy", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (50000000,)}"))
    return held.getvalue()


def npy(head: str, content: bytes = bytes(64)) -> bytes:
    text = head.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + min(len(text), 65535).to_bytes(2, "little") + text + content


def rest_damaged(rng: Random, seeds: Sequence[bytes]) -> bytes:
    if rng.random() < 0.1:
        number = rng.choice((b"9" * 400_000, b"1e400", b"NaN", b"[" * 50_000, b"-0", b"1" + b"0" * 18, b"true"))
        return rng.choice(seeds).replace(b"1", number, rng.choice((1, 3)))
    return json_damaged(rng, seeds)


# Sound inputs ------------------------------------------------------------------------------------------------------


def recipe_seeds() -> list[bytes]:
    files = [*sorted((TESTS / "parity").glob("tiny*.yaml")), *sorted((CHECKOUT / "recipes").glob("*.yaml"))]
    rich = (
        b"model: {name: 'timm:resnet18', args: {num_classes: 10, pretrained_cfg: {url: x}}, source: net.py}\n"
        b"data: {source: 'folder:images', validation: digits:test, transforms: [{name: ToTensor}], batch: 8}\n"
        b"optimizer: {name: SGD, args: {lr: 0.1}, groups: [{params: ['fc*', '*.bias'], args: {lr: 0.2}}]}\n"
        b"schedule: {name: SequentialLR, args: {milestones: [2], schedulers: [{name: ConstantLR}, {name: StepLR, args: {step_size: 2}}]}}\n"
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


def safetensors_damaged(rng: Random, seeds: Sequence[bytes]) -> bytes:
    if rng.random() < 0.4:
        return bytes_damaged(rng, seeds)
    content = rng.choice(seeds)
    end = 8 + int.from_bytes(content[:8], "little")
    text = fuzz_bytes.json_text(rng, lured(rng, json.loads(content[8:end])))
    return len(text).to_bytes(8, "little") + text + content[end:]


def script_seeds() -> list[bytes]:
    return [file.read_bytes() for file in sorted((TESTS / "migrate/script/examples").rglob("*.py.txt"))]


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
    module = {"path": "fc", "kind": "Linear", "buffers": ["n"]}
    module["tensors"] = {"weight": {"shape": [2, 3], "trains": True, "dtype": "float32"}}
    call = {"path": "fc", "call": 0, "entered": 0, "left": 1, "inputs": [0], "output": 1, "shape": [2, 2]}
    whole = {"format": structure.FORMAT, "framework": "torch", "modules": [{**module, "path": ""}, module]}
    whole |= {"calls": [call], "outputs": [[2, 2]]}
    return [json.dumps({**whole, "own": ["step"], "tokens": False}).encode()]


def run_seeds() -> list[bytes]:
    run = run_file.RunFile("torch", "tiny.yaml", 3, 8, {"torch": "a:b", "mindspore": "c:d"}, False, {"a": "b"}, [])
    return [json.dumps({"format": run_file.FORMAT, **asdict(run)}).encode()]


def causes_seeds() -> list[bytes]:
    causes = [asdict(cause) for cause in made_up_reports.report().causes]
    return [json.dumps(causes).encode(), json.dumps(causes * 5).encode()]


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
    writer = calls.Writer(folder)
    stored = writer.store(np.ones((2, 3), dtype=np.float32))
    module = calls.Module("", "Net", (), (), ())
    call = calls.Call(number=0, path="", caller=None, args=(stored,), kwargs={"a": [1.5, None]}, output=stored)
    writer.close([module], [call], {})


@cache
def files_of(make: Callable[[Path], Any]) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """The files of a folder, and their names."""
    with scratch() as folder:
        make(folder)
        files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return files, tuple(sorted(files))


def one_damaged(make: Callable[[Path], Any], rng: Random, seeds: Sequence[bytes]) -> bytes:
    """The number of the folder's file in the first byte, then what stands in it."""
    files, names = files_of(make)
    at = rng.randrange(len(names))
    content = files[names[at]]
    made = json_damaged if names[at].endswith(".json") else bytes_damaged
    return bytes([at]) + made(rng, [content])


def with_files(make: Callable[[Path], Any], read: Callable[[Path], Any], path: Path) -> None:
    """Read the folder, with the damaged file in the place of the sound one."""
    content = path.read_bytes()
    path.unlink()
    files, names = files_of(make)
    folder = path.parent / "folder"
    for name, held in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content[1:] if name == names[content[0] % len(names)] else held)
    try:
        read(folder)
    finally:
        shutil.rmtree(folder)


def read_trace(folder: Path) -> None:
    shown_in_all_forms(report_of(RECIPE, Options(recipes.load(RECIPE), folder)))


def read_recording(folder: Path) -> None:
    found = calls.Recording.open(folder)
    for call in found.calls.values():
        for stored in (*calls.flat(call.args), *calls.flat(call.kwargs), *calls.flat(call.output)):
            found.array(stored)


def shown_in_all_forms(report: Any) -> None:
    printed = io.StringIO()
    parity_report.show(report, Console(file=printed, width=80))
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
    json_line(onnx_operators.report(str(path)))


def read_script(path: Path) -> None:
    analysis = analyze_script(path)
    draft_recipe(analysis)
    json_line(script_report.as_json(analysis))
    script_report.show(analysis, Console(file=io.StringIO(), width=100))


def read_request(path: Path) -> None:
    body = path.read_bytes()
    for instance in rest_instances.instances_of(body):
        try:
            (value,) = rest_instances.values_of(instance, ["x"])
            rest_instances.plain(rest_instances.array_of(value, (2, 2), "float32"))
        except MsmigrateError:
            pass
        try:
            (value,) = rest_instances.values_of(instance, ["x"])
            rest_instances.image_of(value).load()
        except (MsmigrateError, OSError, SyntaxError, ValueError):  # the worker catches what decoders raise
            pass


def read_classes(path: Path) -> None:
    names = class_file(path)
    printed = io.StringIO()
    Console(file=printed, width=80).print(*names[:50])
    assert all(line.isprintable() for line in printed.getvalue().split("\n"))


def read_cifar(path: Path) -> None:
    labels = cifar._labels(path, cifar.PIXELS + 1, cifar.CIFAR10)
    assert len(labels) < 1_000_000


def read_words(path: Path) -> None:
    """What the command line takes: a shape, and a key's file."""
    try:
        shape_of(path.read_bytes().decode("utf-8", "replace"))
    except MsmigrateError:
        pass
    read_key(path, "AES-GCM")


def folder_kind(make: Callable[[Path], Any], read: Callable[[Path], Any]) -> Kind:
    """A kind whose inputs are folders, of which one file is damaged."""
    first = lambda: [b"\0" + files_of(make)[0][files_of(make)[1][0]]]  # noqa: E731
    return Kind("damage", first, partial(one_damaged, make), partial(with_files, make, read))


KINDS: dict[str, Kind] = {
    "recipe": Kind("recipe.yaml", recipe_seeds, yaml_damaged, read_recipe),
    "map": Kind("map.yaml", map_seeds, yaml_damaged, read_map),
    "rows": Kind("rows.yaml", lambda: [(CHECKOUT / "docs/own_mappings.yaml").read_bytes()], yaml_damaged, read_rows),
    "trace": folder_kind(traces.Run().write, read_trace),
    "recording": folder_kind(record, read_recording),
    "structure": Kind("structure.json", structure_seeds, json_damaged, structure.read),
    "run": Kind("run.json", run_seeds, json_damaged, lambda path: run_file.read(path.parent)),
    "causes": Kind("causes.json", causes_seeds, json_damaged, read_causes),
    "report": Kind("report.json", report_seeds, json_damaged, lambda path: gate._read(path)),
    "ONNX": Kind("x.onnx", onnx_seeds, bytes_damaged, read_onnx),
    "batch.npz": Kind("batch.npz", npz_seeds, npz_damaged, lambda path: read_batches(path, 2)),
    "batch.safetensors": Kind("x.safetensors", batch_seeds, safetensors_damaged, lambda path: read_batches(path, 2)),
    "image": Kind("x.png", image_seeds, bytes_damaged, lambda path: decode(Sample(path.read_bytes(), 0, "x.png"))),
    "script": Kind("train.py", script_seeds, script_damaged, read_script),
    "request": Kind("request", rest_seeds, rest_damaged, read_request),
    "classes": Kind("classes.txt", lambda: ["\n".join(LURES).encode("utf-8", "replace")], bytes_damaged, read_classes),
    "CIFAR": Kind("data.bin", lambda: [bytes(2 * (cifar.PIXELS + 1))], bytes_damaged, read_cifar),
    "words": Kind("key", lambda: [b"1x3x224x224:int64", b"0" * 16, b"16"], bytes_damaged, read_words),
    "trained": Kind("x.ckpt", trained_seeds, trained, lambda path: subject(path, NetOptions(), path.parent)),
}
FORMATS = tuple(fuzz_inputs.FORMATS)
ALL = (*KINDS, *FORMATS)


# One input ---------------------------------------------------------------------------------------------------------


def case(kind: str, seed: int, number: int) -> bytes:
    """The content of the input of this number; the same for the same three. Of KINDS only."""
    rng = Random(f"{kind}:{seed}:{number}")
    return KINDS[kind].damage(rng, KINDS[kind].seeds())


def check(kind: str, seed: int, number: int, folder: Path) -> Outcome:
    """Read one input in an empty folder, which is emptied again, and look at all that must hold."""
    if kind in FORMATS:
        with canaries(folder) as sung:
            outcome = fuzz_check.check(fuzz_inputs.case(kind, seed, number), folder)
        return outcome._replace(complaint=outcome.complaint or _song(sung, folder))
    made = KINDS[kind]
    content = case(kind, seed, number)
    path = folder / made.name
    path.write_bytes(content)
    (folder / "canary.py").write_text(f"open({str(folder / 'imported')!r}, 'w')\n")
    resident = fuzz_check._forget_peak()
    outcome = "read", None, ""
    started = time.process_time()
    with canaries(folder) as sung:
        outcome = _tried(made, path)
    seconds, memory = time.process_time() - started, max(0, fuzz_check._peak() - resident)
    kind_of, complaint, text = outcome
    if memory > MEMORY:
        complaint = complaint or f"it takes {memory >> 20} MB"
    complaint = complaint or _song(sung, folder, {made.name, "canary.py"})
    for entry in folder.iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    return Outcome(kind_of, seconds, memory, complaint, text)


def _tried(made: Kind, path: Path) -> tuple[str, str | None, str]:
    """The kind of outcome, what is wrong about it, and the message."""
    try:
        with limits(MEMORY), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made.read(path)
        return "read", None, ""
    except MsmigrateError as error:
        text = printable(str(error))
        wrong = None if text.isprintable() and 0 < len(text) < fuzz_check.LONGEST else f"its message: {text[:300]!a}"
        return type(error).__name__, wrong, text
    except fuzz_check.Hang:
        return "hang", f"it takes longer than {fuzz_check.SECONDS} s", ""
    except BaseException:
        return "crash", traceback.format_exc(limit=-6), ""


def _song(sung: list[str], folder: Path, known: set[str] = frozenset()) -> str | None:  # type: ignore[assignment]
    """What came to life, in words."""
    left = sorted(entry.name for entry in folder.iterdir() if entry.name not in known)
    elsewhere = [place for place in ("/tmp/canary", "canary") if Path(place).exists()]
    if not sung and not left and not elsewhere:
        return None
    return f"it did {', '.join(sung[:3]) or 'nothing by itself'}; left behind: {left + elsewhere}"


_HEARD: list[list[str]] = []  # the innermost list of what is told while canaries listen
_FOLDERS: list[str] = []
_INSTALLED = False


@contextmanager
def canaries(folder: Path) -> Iterator[list[str]]:
    """Listen while the block runs: to processes, sockets, imports from the folder, and files written elsewhere."""
    global _INSTALLED
    if not _INSTALLED:
        sys.addaudithook(_listen)
        _INSTALLED = True
    heard: list[str] = []
    _HEARD.append(heard)
    _FOLDERS.append(str(folder))
    before = list(sys.path)
    sys.path.insert(0, str(folder))
    here = Path.cwd()
    os.chdir(folder)
    try:
        yield heard
    finally:
        os.chdir(here)
        sys.path[:] = before
        _FOLDERS.pop()
        _HEARD.pop()
        sys.modules.pop(CANARY, None)


STARTS = ("os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty", "pty.spawn", "ctypes.dlopen")


def _listen(event: str, args: tuple[Any, ...]) -> None:
    if not _HEARD:
        return
    told = ""
    if event == "subprocess.Popen":
        told = "" if any("pattern_worker.py" in str(word) for word in args[1] or ()) else f"start {args[1]!r:.100}"
    elif event in STARTS or event.startswith("socket."):
        told = f"{event} {args!r:.100}"
    elif event == "import" and args[0] == CANARY:
        told = "import canary"
    elif event == "open" and isinstance(args[0], (str, bytes)) and _writes(args):
        name = os.path.abspath(os.fsdecode(args[0]))
        told = "" if name.startswith((*_FOLDERS, "/dev/null", "/proc/self")) else f"write {name[:100]}"
    if told:
        _HEARD[-1].append(told)


def _writes(args: tuple[Any, ...]) -> bool:
    mode, flags = args[1], args[2] if len(args) > 2 else 0
    return (isinstance(mode, str) and any(letter in mode for letter in "wax+")) or bool(
        isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    )


@contextmanager
def scratch() -> Iterator[Path]:
    """An empty folder, in memory where that can be."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="fuzz-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:
        yield Path(name)
