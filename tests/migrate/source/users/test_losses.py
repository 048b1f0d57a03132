"""Losses with tensors of their own, which a torch file holds as buffers; and numbers of classes that are computed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from written import Written

Users = dict[str, Written]


def test_the_weights_of_a_loss_are_written_and_are_buffers(users: Users) -> None:
    found = users["weighed"]
    found.agrees()
    found.holds(
        "with_buffers(nn.CrossEntropyLoss(label_smoothing=0.1), weight=mindspore.tensor([0.2, 1.0, 2.5]))",
        "pos_weight=mindspore.tensor([rare, 1.0, 0.5]))",
        "self.unweighed = nn.BCEWithLogitsLoss()",
    )
    assert {name: new for name, new in found.names.items() if "weight" in name and "head" not in name} == {
        name: name for name in ("cross.weight", "likely.weight", "binary.pos_weight")
    }


def test_a_loss_that_has_a_buffer_of_the_model_is_tied_to_it(users: Users) -> None:
    found = users["tied"]
    found.agrees()
    found.holds("with_buffers(nn.BCEWithLogitsLoss(), weight=self.shares)")
    assert found.names["shares"] == "shares" and found.names["several.weight"] == "several.weight"


def test_a_class_of_torchs_loss_keeps_its_weight(users: Users) -> None:
    found = users["penalized"]
    found.agrees()
    assert found.names["loss.weight"] == "loss.weight"


def test_classes_that_come_from_torchs_loss_take_classes_of_int64(users: Users) -> None:
    found = users["derived_losses"]
    found.agrees()
    found.holds("class Focal(CrossEntropyLossOfInt64)", "class Renamed(CrossEntropyLossOfInt64)")


def test_a_loss_whose_class_is_in_a_variable_keeps_its_weight(users: Users) -> None:
    found = users["loss_from_variable"]
    found.agrees()
    found.holds("self.chosen = with_buffers(made(reduction=", "with_buffers(cls(), weight=")
    assert found.names["chosen.weight"] == "chosen.weight" and found.names["several.0.weight"] == "several.0.weight"


def test_a_loss_without_a_constructor_is_made_with_its_tensor(users: Users) -> None:
    found = users["positive_loss"]
    found.agrees()
    assert found.names == {"pos_weight": "pos_weight"}


def test_a_partial_of_a_loss_with_a_tensor_is_refused(users: Users) -> None:
    (problem,) = users["loss_in_partial"].source.problems
    assert problem.text == "torch.nn.CrossEntropyLoss in a partial with weight: give that where the loss is made"
    assert problem.file.endswith("losses_torch.py") and problem.line


def test_rows_of_a_computed_number_of_classes_take_every_number_but_the_one_that_is_refused(
    users: Users, tmp_path: Path
) -> None:
    found = users["rows"]
    found.agrees()
    found.holds("if self.classes in (-1,):", "depth=self.classes", "depth=out.shape[-1]", "if many in (-1,)")
    # with five classes, which the run never had; and with the value that torch takes from the numbers
    (tmp_path / "net.py").write_text(found.source.text)
    script = (
        "import mindspore as ms, net; x, y = ms.ops.ones((2, 5)), ms.Tensor([4, 0]); n = net.build(classes=5);"
        "y = ms.Tensor([2, 0]); print(n(x, y).shape); n.classes = -1; n(x, y)"
    )
    ran = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.stdout == "(2, 5)\n", ran.stderr
    assert "NotImplementedError" in ran.stderr and "self.classes was 3" in ran.stderr


def test_losses_from_torchs_own_base(users: Users) -> None:
    """_Loss and _WeightedLoss keep what their constructors are given."""
    for name in ("from_torchs_base", "from_torchs_base_without_constructor"):
        users[name].agrees()
    weighted, plain = users["from_torchs_weighted_base"], users["from_torchs_weighted_base_without_weight"]
    weighted.agrees()
    plain.agrees()
    users["from_torchs_base"].holds("super().__init__(reduction=reduction)", "reduce was None")


def test_torchs_old_words_for_a_reduction_are_written_as_one(users: Users) -> None:
    found = users["by_old_words"]
    found.agrees()
    found.holds(
        "self.squares = nn.MSELoss(reduction='sum')",
        "self.apart = nn.L1Loss(reduction='none')",
        "self.both = nn.SmoothL1Loss()",
        "self.binary = nn.BCEWithLogitsLoss()",
        "reduction='mean' if self.average else 'sum')",
    )
    (problem,) = users["by_old_words_unseen"].source.problems
    assert "size_average" in problem.text or "reduce" in problem.text
