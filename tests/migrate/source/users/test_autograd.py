"""An autograd.Function with a gradient of its own becomes a Cell with bprop."""

from __future__ import annotations

from written import Written

Users = dict[str, Written]


def test_what_bprop_has_anyway_is_not_kept(users: Users) -> None:
    """The inputs and the output; a default is given, since bprop has to take as many arguments as construct."""
    found = users["of_its_own"]
    found.agrees()
    assert not found.source.problems
    found.holds(
        "def bprop(self, x, alpha, out, grad_output):\n        output = ops.neg(grad_output) * alpha",
        "result, = (out,)",
        "binarize = Binarized()",
        "self.rounded = Rounded()",
        "Reversed()(y, 0.5)",
        "Softer()(ops.mean(self.a.weight) + x * 0.3, self.w, 3)",
    )
    found.holds("def computed(self, x, w, k=3):\n        sharp = None\n")
    found.lacks("ctx", "def backward")


def test_what_forward_computes_for_the_backward_is_computed_again(users: Users) -> None:
    found = users["spiking"]
    found.agrees()
    assert not found.source.problems
    found.holds("_, (saved_tensors,) = self.computed(inputs, table)", "of_table = index_add(of_table, 0, places,")
    # seen with gradients of one sign, or small ones, these two would be taken for derivatives
    found.holds("class LowerBound(nn.Cell):", "class Clipped(nn.Cell):", "class Mish:")


def test_what_cannot_be_computed_again_is_refused(users: Users) -> None:
    found = sorted(users["refused_functions"].source.problems, key=lambda one: one.line)
    assert [problem.text.removesuffix("; write it with mindspore.nn.Cell and bprop") for problem in found] == [
        "Noisy: its forward draws, and would have to run again for its backward",
        "HandedOn: its forward hands its context on",
        "Renamed: its backward calls a gradient input, as an input",
        "Inner: its backward has a function of its own",
    ]


def test_numbers_of_the_class_and_arguments_that_are_tensors_now_and_then(users: Users) -> None:
    found = users["of_numbers"]
    found.agrees()
    assert not found.source.problems
    found.holds("scale = 10.0\n    width: float = 0.5", "def bprop(self, x, output, grad):", "Steep.scale * ops.abs(x)")
