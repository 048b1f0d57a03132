"""What users do with tensors between the layers."""

from __future__ import annotations

from pathlib import Path

import pytest
from written import Written

Users = dict[str, Written]
MODELS = Path(__file__).with_name("tensors_torch.py")


def test_shapes(users: Users) -> None:
    found = users["shapes"]
    found.agrees()
    found.holds("b, c, h, w = x.shape", "n = x.shape[0]", "_, _, height, width = x.shape")
    found.holds("z.reshape(*z.shape[:2], -1)")
    found.lacks(".contiguous", ".size()", ".dim()", ".numel()", "x = x\n")


def test_operations_that_write_into_their_tensor(users: Users) -> None:
    found = users["in_place"]
    found.agrees()
    found.holds("y = y + x", "y = y * 0.5", "y = ops.relu(y)", "w = ops.add(w, 0.5 * z)")


@pytest.mark.full
def test_writing_into_slices(users: Users) -> None:
    found = users["assigned"]
    found.agrees()
    found.holds("z[:, 0] = y[:, 1]", "z[mask] = 0.25", "out[:, :2] = ops.add(out[:, :2], 1.0)", "out[:, 0] = 3.0")
    found.holds("if 0 not in z[:, begin:end].shape:")  # MindSpore's CPU fails where nothing is in the slice


@pytest.mark.full
def test_einsum_where_masks_padding_and_interpolation(users: Users) -> None:
    found = users["mathematics"]
    found.agrees()
    found.holds(
        "ops.matmul(q, ops.transpose(k, (0, 2, 1)))",
        "x = ops.matmul(attn, v)",
        "float('-inf')",
        "x = ops.where(x > 0, ",
    )


@pytest.mark.full
def test_equations_as_products(users: Users) -> None:
    """Only what is more than one product of matrices needs the function that reads equations."""
    found = users["products"]
    found.agrees()
    found.holds("y = ops.matmul(x, self.joints)", "gate = ops.sum(y * ops.expand_dims(ops.mean(y, axis=1), 1), 2)")
    found.holds("ops.transpose(ops.matmul(y, self.bias), (0, 2, 1))", "ops.sum(y * y, (0, 1, 2))")
    found.holds("several = einsum('bnd,pdm->bnpm', (x, self.pairs))")


@pytest.mark.full
def test_one_size_made_another(users: Users) -> None:
    users["upsampled"].agrees()


def test_types_and_devices(users: Users) -> None:
    found = users["types"]
    found.agrees()
    found.holds(".astype(mindspore.float32)")
    found.lacks("torch.float", ".to(", ".cuda(", ".cpu(")


def test_casts_by_a_class_of_tensors(users: Users) -> None:
    found = users["casts"]
    found.agrees()
    found.holds("x.astype(mindspore.int64) * self.half", "x.astype(mindspore.int32)")
    found.holds("ops.cast(x, dtype=mindspore.float64).astype(mindspore.float32)")


def test_a_class_of_tensors_in_a_variable_is_refused(users: Users) -> None:
    (problem,) = users["cast_by_variable"].source.problems
    assert problem.text == "torch.Tensor.type: write the dtype, as in x.to(torch.int64)"


def test_numpys_numbers_as_bounds(users: Users) -> None:
    found = users["numpys_bounds"]
    found.agrees()
    found.holds("y[:, :int(self.count)]", "y[int(np.int64(0)), :int(self.sizes.max())]")


@pytest.mark.parametrize("name", ["weights_sometimes", "weights_never"])
def test_attention_weights_that_are_given_only_sometimes(users: Users, name: str) -> None:
    users[name].agrees()
    users[name].holds("(self.attention(x, x, x, need_weights=self.need) + (None,))[:2]")


@pytest.mark.full
def test_questions_of_a_device_are_answered_as_on_the_cpu(users: Users) -> None:
    found = users["places"]
    found.agrees()
    found.holds("y = self.fc(x) * 2", "y = y * 3", "return self.wide(y)", "'cuda:1' if device is None")
    found.lacks("'meta'", "y + 1", "y + self.pos", "y * 7", "x.device", "NotImplementedError")
    users["halved"].agrees()


@pytest.mark.full
def test_a_question_of_a_device_that_cannot_be_written_raises(users: Users) -> None:
    """It was answered on the device "meta", and would have been taken as that."""
    found = users["places_and_kernels"]
    assert "x.is_cpu and torch.backends.mkldnn.is_available() depends on a device" in (found.failed or "")


def test_contexts(users: Users) -> None:
    found = users["contexts"]
    found.agrees()
    found.holds("t = ops.stop_gradient(self.teacher(x))", "return ops.stop_gradient(self.teacher(x))")
    found.holds("y = self.block(y, 2.0)")
    found.lacks("torch.", "checkpoint(", "autocast(")


@pytest.mark.full
def test_lists_over_two_loops(users: Users) -> None:
    found = users["merged"]
    found.agrees()
    found.holds("parts = []", "for row in range(2):", "parts.append(", "ops.cat(parts, axis=-1)", "for _ in range(n):")


def test_writing_under_another_name_of_a_tensor(users: Users) -> None:
    found = users["views"]
    found.agrees()
    found.holds("for index, (row, page, here) in enumerate(zip(y, canvas, mask)):", "mask[index] = here")
    found.holds("canvas[index] = page", "parts[1] = second", "parts[0, :, 1:] = first", "canvas[i] = line")
    found.holds("out = same", "shortcut = out", "out = out + 0.25")
    found.lacks("parts[1] = lost")


@pytest.mark.full
def test_a_function_hands_back_the_tensors_that_it_writes_into(users: Users) -> None:
    found = users["given_tensors"]
    found.agrees()
    found.holds("x = ops.add(x, cut(self.places))\n        return x", "x = self.add_places(x, length=x.shape[1])")
    found.holds("y = self.through(y)", "same = self.halve(same)", "other = same", "z, parts = self.both(z, parts)")
    found.holds("parts[1] = self.halve(parts[1])", "return (x, y)", "fresh = one.scale(fresh)")
    found.lacks(".copy_(")


def test_a_function_hands_back_the_tensors_of_which_it_writes_into_a_part(users: Users) -> None:
    found = users["given_parts"]
    found.agrees()
    found.holds("y = self.hide(y, value=-3.0)", "table[0:1] = self.hide(table[0:1], -1.0)", "return table")
    found.holds("y, z = self.both(y, z)", "w = self.first(w)")


def test_a_function_that_gives_something_else_back_than_it_writes_into_is_refused(users: Users) -> None:
    problems = users["lost_tensors"].source.problems
    assert [(problem.line, problem.text) for problem in problems] == [
        (
            next(i for i, line in enumerate(MODELS.read_text().splitlines(), 1) if "z = self.scaled(y, x)" in line),
            "scaled writes into `y`, which is read afterwards, and does not return it: return the tensor, and use "
            "the result",
        )
    ]


@pytest.mark.full
def test_windows_by_how_far_values_lie_apart_and_a_choice_by_a_method(users: Users) -> None:
    found = users["windows"]
    found.agrees()
    found.holds(
        "step = list(stride(y))", "as_strided(y, (n, count - 1, 2, width)", "condition=lower, other=windows * 2"
    )


def test_places_by_ranges_everything_and_bounds_that_are_tensors(users: Users) -> None:
    """MindSpore's tensors take no range for an index, `weight.data[...] = x` changes a copy, and randint a number."""
    found = users["by_ranges"]
    found.agrees()
    found.holds(
        "flat[list(range(len(flat))), list(range(len(flat)))] = 0",
        "x[:, :, list(some)]",
        "self.box.weight.data[:] = 1 / 9",
        "zeros[:] = flat[0, 0]",
        "high=int(tensor_sum(",
    )
