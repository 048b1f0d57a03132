"""One layer, one answer: whatever form of a name is asked for, and whichever command asks, the row is the same."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from msmigrate.errors import UnknownRow
from msmigrate.mappings import table
from msmigrate.mappings.aliases import IMPORTED_AS, KINDS, OFFERED_BY, find, lookup, row_of
from msmigrate.mappings.rows import Own, Row
from msmigrate.mappings.state_names import layer_states
from msmigrate.parity.align.layers import row_of as layer_of
from packaging.version import Version

# two libraries have a thing of this name, and the first that scripts mean is another row's
ELSEWHERE = {"models.create_model", "parallel.DistributedDataParallel"}


def names() -> Iterator[tuple[str, Row]]:
    for row in table.rows():
        for name in (row.torch, *row.aliases):
            yield name, row


def written_forms(name: str) -> set[str]:
    """How people write a qualified name: whole, without its package, its last two parts, by a usual import."""
    parts = name.split(".")
    forms = {name, *(".".join(parts[cut:]) for cut in range(1, len(parts) - 1))}
    forms |= {short + name[len(whole) :] for short, whole in IMPORTED_AS.items() if name.startswith(f"{whole}.")}
    return forms - ELSEWHERE


def test_every_form_of_every_torch_name_is_its_row() -> None:
    wrong = {
        form: row.torch
        for name, row in names()
        for form in written_forms(name)
        if [r.torch for r in _found(form)] != [row.torch]
    }
    assert not wrong


def _found(name: str) -> list[Row]:
    try:
        return lookup(name)
    except UnknownRow:
        return []


def test_every_counterpart_leads_back_to_its_rows() -> None:
    for row in table.rows():
        for name in filter(None, (row.mindspore, *row.instead_of)):
            assert row in lookup(name), name
            if name.startswith("mindspore."):
                assert row in lookup(f"ms.{name.removeprefix('mindspore.')}"), name


def test_what_reads_scripts_models_and_checkpoints_finds_the_same_row() -> None:
    """analyze and drafts go by row_of, convert-model and analyses of models by find, convert-ckpt by layer_states."""
    for name, row in names():
        assert row_of(name) is row, name
        if row.kind in KINDS:
            assert find(name).row is row, name
        if row.kind in ("layer", "module") and row.mindspore:
            expected = [state.torch for state in row.state if state.torch is not None]
            assert list(layer_states()[name]) == expected, name


def test_every_row_with_tensors_of_a_module_is_of_a_kind_that_models_are_made_of() -> None:
    """Else a command that asks only for layers and modules knows nothing of it, as once of SyncBatchNorm."""
    assert {row.kind for row in table.rows() if row.state} == {"layer", "loss", "module", "optimizer"}


def test_a_synchronized_batch_norm_is_paired_as_the_batch_norm_that_it_is_in_one_process() -> None:
    assert layer_of("SyncBatchNorm") is layer_of("BatchNorm2d")


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("nn.AdaptiveAvgPool2d", ["torch.nn.AdaptiveAvgPool2d"]),
        ("nn.Dropout", ["torch.nn.Dropout"]),
        ("nn.Dense", ["torch.nn.Linear"]),
        ("mindspore.nn.Dropout", ["torch.nn.Dropout"]),
        ("mint.nn.functional.relu", ["torch.nn.functional.relu"]),
        ("mint.cat", ["torch.cat"]),
        ("ops.max", ["torch.max"]),
        ("nn.cosine_decay_lr", ["torch.optim.lr_scheduler.CosineAnnealingLR"]),
        ("nn.WithLossCell", ["torch.Tensor.backward"]),
        ("nn.Module", ["torch.nn.Module"]),
        ("nn.Cell", ["torch.nn.Module", "torch.autograd.Function"]),
        ("Cell.construct", ["torch.nn.Module"]),
        ("nn.WithEvalCell", ["torch.nn.Module.eval"]),
        ("Model.eval", ["torch.nn.Module.eval"]),
        ("Model.train", ["torch.Tensor.backward"]),
        ("ms.train.Model", ["torch.Tensor.backward"]),
        ("ops.GradOperation", ["torch.Tensor.backward"]),
        ("ops.composite.GradOperation", ["torch.Tensor.backward"]),
        ("nn.wrap.cell_wrapper.TrainOneStepCell", ["torch.Tensor.backward"]),
        ("TrainOneStepWithLossScaleCell", ["torch.amp.GradScaler"]),
        ("ops.value_and_grad", ["torch.Tensor.backward"]),
        ("ops.grad", ["torch.autograd.grad"]),
        ("ops.scalar_to_array", ["torch.tensor"]),
        ("ops.scalar_to_tensor", ["torch.tensor"]),
        ("context.set_context", ["torch.device"]),
        ("ms.set_context", ["torch.device"]),
        ("load_checkpoint", ["torch.load"]),
        ("load_param_into_net", ["torch.nn.Module.load_state_dict"]),
        ("DynamicLossScaler", ["torch.amp.GradScaler", "apex.amp.scale_loss", "timm.utils.NativeScaler"]),
        ("amp.FixedLossScaleManager", ["torch.amp.GradScaler"]),
        ("train.callback.ModelCheckpoint", ["torch.save"]),
        ("ms_function", ["torch.compile"]),
        ("set_train", ["torch.nn.Module.train", "torch.nn.Module.eval"]),
        ("vision.ToTensor", ["torchvision.transforms.ToTensor", "torchvision.transforms.v2.ToDtype"]),
        ("models.wide_resnet50_2", ["torchvision.models.get_model"]),
        ("Tensor.view", ["torch.reshape"]),
    ],
)
def test_a_name_as_people_write_it(name: str, rows: list[str]) -> None:
    assert [row.torch for row in lookup(name)] == rows


@pytest.mark.parametrize(
    "name",
    ["nn.NoSuchLayer", "ops.no_such_operator", "nonsense.relu6x", "mindspore.nn", "nn.", "NoSuchCell"],
)
def test_what_nobody_has_is_refused(name: str) -> None:
    with pytest.raises(UnknownRow):
        lookup(name)


READ = """
import importlib, inspect, json, sys
import mindspore
from msmigrate.errors import BadInput
from msmigrate.mappings.rows import resolve
found = {}
for name in json.loads(sys.argv[1]):
    try:
        found[name] = " ".join((inspect.getdoc(resolve(name)) or "").split())
    except BadInput:
        found[name] = None
modules = [importlib.import_module(f"mindspore.{name}") for name in json.loads(sys.argv[2])]
offered = {module.__name__.removeprefix("mindspore."): dir(module) for module in modules}
print(json.dumps([mindspore.__version__, found, offered]))
"""
ENDS = re.compile(r"(interface|api|`[\w.]+`) (is|will be) deprecated", re.IGNORECASE)


@pytest.fixture(scope="module")
def installed() -> Any:
    """MindSpore's version, the page of each of its own names (None: it has no such name), and what modules offer."""
    listed = sorted({name for row in table.rows() for name in row.instead_of})
    arguments = [json.dumps(listed), json.dumps(sorted(OFFERED_BY))]
    done = subprocess.run([sys.executable, "-c", READ, *arguments], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def wrong_about(own: Own, page: str | None, version: str) -> bool:
    """Whether what a table says of a name of MindSpore's own is not as its page says."""
    ended = own.deprecated is not None and Version(own.deprecated) <= Version(version)
    return (page is None) != own.gone or (page is not None and (ENDS.search(page) is not None) != ended)


def test_mindspores_own_names_are_there_or_gone_or_deprecated_as_the_rows_say(installed: Any) -> None:
    version, pages, _ = installed
    own = {name: own for row in table.rows() for name, own in row.instead_of.items()}
    assert [name for name in own if wrong_about(own[name], pages[name], version)] == []
    for name in ("mindspore.set_context", "mindspore.ms_function", "mindspore.Model"):
        slips = {"deprecated": None if own[name].deprecated else "2.7.2", "gone": not own[name].gone}
        slips = {key: value for key, value in slips.items() if key == "gone" or not own[name].gone}
        assert all(wrong_about(replace(own[name], **{key: slip}), pages[name], version) for key, slip in slips.items())


def test_what_a_module_of_mindspore_offers_again_is_offered_there(installed: Any) -> None:
    """Each stands for a name that some row has."""
    _, _, offered = installed
    known = {name for row in table.rows() for name in filter(None, (row.mindspore, *row.instead_of))}
    for module, other in OFFERED_BY.items():
        assert any(f"{other}.{name}" in known for name in offered[module]), module


def test_a_slip_in_a_name_of_mindspores_own_names_it() -> None:
    with pytest.raises(UnknownRow, match=r"did you mean nn\.TrainOneStepCell"):
        lookup("nn.TrainOneStepCel")
