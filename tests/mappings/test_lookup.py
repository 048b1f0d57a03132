"""One layer, one answer: whatever form of a name is asked for, and whichever command asks, the row is the same."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest
from msmigrate.errors import UnknownRow
from msmigrate.mappings import table
from msmigrate.mappings.aliases import IMPORTED_AS, KINDS, find, lookup, row_of
from msmigrate.mappings.rows import Row
from msmigrate.mappings.state_names import layer_states
from msmigrate.parity.align.layers import row_of as layer_of

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
    assert {row.kind for row in table.rows() if row.state} == {"layer", "module", "optimizer"}


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
        ("vision.ToTensor", ["torchvision.transforms.ToTensor", "torchvision.transforms.v2.ToDtype"]),
        ("models.wide_resnet50_2", ["torchvision.models.get_model"]),
        ("Tensor.view", ["torch.reshape"]),
    ],
)
def test_a_name_as_people_write_it(name: str, rows: list[str]) -> None:
    assert [row.torch for row in lookup(name)] == rows


@pytest.mark.parametrize("name", ["nn.NoSuchLayer", "ops.no_such_operator", "nonsense.relu6x", "mindspore.nn", "nn."])
def test_what_nobody_has_is_refused(name: str) -> None:
    with pytest.raises(UnknownRow):
        lookup(name)


def test_what_a_row_replaces_is_in_mindspore() -> None:
    listed = sorted({name for row in table.rows() for name in row.instead_of})
    code = (
        "import json, sys\n"
        "from msmigrate.errors import BadInput\n"
        "from msmigrate.mappings.rows import resolve\n"
        "def there(name):\n"
        "    try:\n"
        "        return resolve(name) is not None\n"
        "    except BadInput:\n"
        "        return False\n"
        "print(json.dumps([name for name in json.loads(sys.argv[1]) if not there(name)]))"
    )
    done = subprocess.run([sys.executable, "-c", code, json.dumps(listed)], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.splitlines()[-1]) == []
