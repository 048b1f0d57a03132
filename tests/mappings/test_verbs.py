"""Every verb's inverse: going to MindSpore, back and there again ends where going there once did."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mapping_cases import bind, made_of
from msmigrate import errors
from msmigrate.mappings import table
from msmigrate.mappings.rows import Case, Row
from msmigrate.mappings.verb_registry import SHAPES
from msmigrate.mappings.verbs import VERBS, complement

SIZES = st.integers(1, 7)
PAIRS = SIZES | st.tuples(SIZES, SIZES)
MARGINS = st.integers(0, 5) | st.tuples(st.integers(0, 5), st.integers(0, 5)) | st.sampled_from(["valid", "same"])
RATES = st.floats(0, 1, allow_subnormal=False)


def there_and_back(verb: str, value: object, args: dict[str, object]) -> None:
    forward, inverse = VERBS[verb].forward, VERBS[verb].inverse
    crossed = forward(value, args)
    assert forward(inverse(crossed), args) == crossed


@given(st.decimals(0, 1, places=6))
def test_complement_is_its_own_inverse_for_what_people_write(momentum: object) -> None:
    assert complement(complement(float(momentum))) == float(momentum)


@given(RATES)
def test_complement_loses_nothing_but_the_last_bit(momentum: float) -> None:
    assert abs(complement(complement(momentum)) - momentum) <= 2**-53
    assert complement(momentum) == pytest.approx(1 - momentum, abs=2**-53)


@given(padding=MARGINS, kernel_size=PAIRS, dilation=PAIRS)
def test_conv2d_padding(padding: object, kernel_size: object, dilation: object) -> None:
    there_and_back("conv2d_padding", padding, {"kernel_size": kernel_size, "dilation": dilation})


@given(padding=st.integers(0, 5) | st.tuples(st.integers(0, 5)), kernel_size=SIZES)
def test_conv1d_padding(padding: object, kernel_size: int) -> None:
    there_and_back("conv1d_padding", padding, {"kernel_size": kernel_size, "dilation": 1})
    there_and_back("conv1d_sides", padding, {"kernel_size": kernel_size, "dilation": 1})
    there_and_back("conv1d_sides", "same", {"kernel_size": kernel_size, "dilation": 1})


@given(padding=st.integers(0, 5) | st.tuples(*[st.integers(0, 5)] * 3))
def test_conv3d_padding(padding: object) -> None:
    there_and_back("conv3d_padding", padding, {"kernel_size": 3, "dilation": 1})


def test_conv_padding_writes_every_side() -> None:
    args = {"kernel_size": (4, 3), "dilation": (1, 2)}
    assert VERBS["conv2d_padding"].forward((1, 2), args) == ("pad", (1, 1, 2, 2))
    assert VERBS["conv2d_padding"].forward("same", args) == ("pad", (1, 2, 2, 2))
    assert VERBS["conv2d_padding"].forward(0, args) == ("valid", 0)


@given(padding=st.integers(0, 5) | st.tuples(*[st.integers(0, 5)] * 2), more=st.integers(0, 1))
def test_transposed_padding(padding: object, more: int) -> None:
    args = {"padding": padding, "output_padding": more}
    for verb in ("transposed2d_padding", "transposed3d_padding"):
        if isinstance(padding, int) or verb == "transposed2d_padding":
            there_and_back(verb, padding, args)
    if isinstance(padding, int):
        there_and_back("transposed1d_padding", padding, args)


@given(padding=st.tuples(*[st.integers(1, 5)] * 2), more=st.tuples(*[st.integers(0, 1)] * 2))
def test_output_padding_is_padding_left_out(padding: tuple[int, int], more: tuple[int, int]) -> None:
    call = table.translate(
        "ConvTranspose2d", {"stride": 2, "padding": padding, "output_padding": more, "groups": 1}, (3, 4, 3)
    )
    (p, q), (a, b) = padding, more
    assert call.kwargs["padding"] == (p, p - a, q, q - b)
    assert call.kwargs["output_padding"] == 0
    back = table.inverse("ConvTranspose2d", call.kwargs)
    assert (back["padding"], back["output_padding"]) == (padding, more)


def test_more_output_padding_than_padding_is_for_the_other_class() -> None:
    call = table.translate("ConvTranspose2d", {"stride": 3, "padding": 1, "output_padding": (0, 2)}, (3, 4, 3))
    assert call.target == "msmigrate.nn.ConvTranspose2d"
    assert (call.kwargs["padding"], call.kwargs["output_padding"]) == ((1, 1, 1, 1), (0, 2))
    with pytest.raises(errors.Unsupported, match=r"output_padding=\(0, 2\).*with zeros"):
        table.translate("ConvTranspose2d", {"padding": 1, "output_padding": (0, 2)}, partial=True)


@given(dilation=SIZES | st.tuples(SIZES, SIZES, SIZES))
def test_flat_dilation(dilation: int | tuple[int, ...]) -> None:
    if (dilation if isinstance(dilation, int) else dilation[0]) == 1:
        there_and_back("flat_dilation", dilation, {})
    else:
        with pytest.raises(ValueError, match="depth"):
            VERBS["flat_dilation"].forward(dilation, {})


@given(factor=st.none() | st.integers(1, 9) | st.floats(0.1, 9) | st.tuples(SIZES, SIZES))
def test_whole_factor(factor: int | float | tuple[int, ...] | None) -> None:
    if isinstance(factor, float) and factor != int(factor):
        with pytest.raises(ValueError, match="ratio"):
            VERBS["whole_factor"].forward(factor, {})
    else:
        there_and_back("whole_factor", factor, {})
    assert VERBS["recompute"].forward(None, {"scale_factor": factor}) is (None if factor is None else True)


@given(padding=st.integers(0, 3), ceil_mode=st.booleans(), dilation=PAIRS, divisor=st.none() | SIZES)
def test_pool_padding(padding: int, ceil_mode: bool, dilation: object, divisor: object) -> None:
    args = {"ceil_mode": ceil_mode, "dilation": dilation, "divisor_override": divisor}
    there_and_back("pool_padding", padding, args)


@given(padding=st.integers(0, 3) | st.tuples(st.integers(0, 3), st.integers(0, 3)))
def test_pool_sides(padding: object) -> None:
    found = VERBS["pool2d_sides"].forward(padding, {})
    back = VERBS["pool2d_sides"].inverse(found)
    assert back == (padding[0] if isinstance(padding, tuple) and padding[0] == padding[1] else padding)
    assert isinstance(found, int) or (len(found) == 4 and found[::2] == found[1::2])


@given(kernel_size=PAIRS, stride=st.none() | PAIRS)
def test_stride_or_kernel(kernel_size: object, stride: object) -> None:
    there_and_back("stride_or_kernel", stride, {"kernel_size": kernel_size})


@given(kernel_size=st.integers(1, 3), stride=st.none() | st.integers(1, 3), wrapped=st.booleans())
def test_single_or_kernel(kernel_size: int, stride: int | None, wrapped: bool) -> None:
    """One number, also of a tuple of one, and the kernel's where there is none."""
    kernel, given_stride = ((kernel_size,), stride and (stride,)) if wrapped else (kernel_size, stride)
    verb = VERBS["single_or_kernel"]
    assert verb.forward(given_stride, {"kernel_size": kernel}) == (stride or kernel_size)
    assert verb.forward(verb.inverse(kernel_size), {"kernel_size": kernel}) == kernel_size


@given(value=st.none() | st.lists(st.floats(0, 9), min_size=1))
def test_tensor(value: object) -> None:
    there_and_back("tensor", value, {})
    assert VERBS["tensor"].inverse(VERBS["tensor"].forward(value, {})) == value


@given(dims=st.lists(st.integers(-1, 9), min_size=1).map(tuple))
def test_dims_one_by_one_or_together(dims: tuple[int, ...]) -> None:
    there_and_back("dims", dims, {})
    assert VERBS["dims"].forward((dims,), {}) == VERBS["dims"].forward(dims, {}) == dims


@given(value=SIZES, verb=st.sampled_from(["single", "last_axis", "divisor", "negate", "twice", "decimal"]))
def test_small_verbs(value: int, verb: str) -> None:
    there_and_back(verb, value, {})


@given(bound=st.floats(1e-6, 10))
def test_half_width(bound: float) -> None:
    there_and_back("half_width", bound, {"a": -bound})
    with pytest.raises(errors.Unsupported, match="symmetric"):
        table.translate("torch.nn.init.uniform_", {"a": -bound, "b": bound * 2})


@given(steps=SIZES, horizon=st.integers(1, 99), milestone=SIZES)
def test_schedules(steps: int, horizon: int, milestone: int) -> None:
    value = [("LinearLR", {"total_iters": steps}), ("torch.optim.lr_scheduler.CosineAnnealingLR", {"T_max": horizon})]
    there_and_back("schedules", value, {"milestones": [milestone]})


def test_a_layer_as_an_argument_crosses_by_its_own_row() -> None:
    value = ["torch.nn.TransformerEncoderLayer", {"d_model": 8, "nhead": 2, "dropout": 0.0}]
    assert VERBS["layer"].forward(value, {}).target == "mindspore.nn.TransformerEncoderLayer"
    there_and_back("layer", value, {})
    there_and_back("layer", ["torch.nn.LayerNorm", {"normalized_shape": 8}], {})
    there_and_back("layer", None, {})


@pytest.mark.parametrize("name", ["torch.optim.lr_scheduler.SequentialLR", "torch.nn.ReLU"])
def test_only_plain_schedules_can_be_nested(name: str) -> None:
    nested = {"schedulers": [[name, {}]], "milestones": []}
    with pytest.raises(errors.Unsupported, match="cannot be used inside another schedule"):
        table.translate("SequentialLR", nested)


@given(shape=st.lists(SIZES, min_size=1, max_size=4).map(tuple), verb=st.sampled_from(sorted(SHAPES)))
def test_shape_verbs(shape: tuple[int, ...], verb: str) -> None:
    assert SHAPES[verb].inverse(SHAPES[verb].forward(shape)) == shape


def test_expand_dims_refuses_what_it_did_not_make() -> None:
    with pytest.raises(ValueError, match="no dimension of 1"):
        SHAPES["expand_dims"].inverse((4, 3, 5))


def test_every_verb_is_used_by_a_row() -> None:
    rows = [*table.rows(), *(row.otherwise for row in table.rows() if row.otherwise is not None)]
    assert {argument.verb for row in rows for argument in row.arguments} - {None} == set(VERBS)
    assert {state.verb for row in rows for state in row.state} - {None} == set(SHAPES)


@pytest.mark.parametrize(
    ("row", "case"),
    [(row, case) for row in table.rows() for case in row.cases if not case.raises],
    ids=lambda item: getattr(item, "torch", ""),
)
def test_a_row_goes_back_and_forth(row: Row, case: Case) -> None:
    made, tensors = made_of(case, [f"tensor {index}" for index, _ in enumerate(case.inputs)], lambda cls, _: cls)
    case = replace(case, args={**made, **case.args})
    given = bind(row, case, tensors) if row.kind == "function" else case.args
    call = table.translate(row.torch, given)
    if call.target != row.mindspore:
        return  # of the class that the row has otherwise
    lost = {item.torch: given[item.torch] for item in row.arguments if item.required and not item.to and given}
    assert table.translate(row.torch, table.inverse(row.torch, call.kwargs) | lost) == call
