"""What MindSpore's own layers do not take, and einops' patterns for any number of axes: written and run in both."""

from __future__ import annotations

import pytest
from written import Written

Users = dict[str, Written]


def test_layers_that_are_called_with_the_size_of_their_output(users: Users) -> None:
    found = users["sized"]
    found.agrees()
    found.holds("class Up(ConvTranspose2d):", "class Back(ConvTranspose1d):", "self.down(x)", "output_size=deep.shape")


@pytest.mark.full
def test_arguments_that_the_layers_do_not_have(users: Users) -> None:
    found = users["beyond"]
    found.agrees()
    found.holds("partial(PaddedConv2d", "padding_mode='circular'", "padding_mode=border", "output_padding=1")


@pytest.mark.full
def test_norms_of_images_that_keep_statistics(users: Users) -> None:
    found = users["tracked"]
    found.agrees()
    found.holds("norm=partial(InstanceNorm2d, affine=True, track_running_stats=True)", "momentum=None")


def test_classes_of_layers_are_compared(users: Users) -> None:
    """MindSpore's GELU and LayerNorm begin otherwise, so that they are handed on as partials, which equal nothing."""
    found = users["asking"]
    found.agrees()
    found.holds("bias = norm.func == InstanceNorm2d", "bias = norm == InstanceNorm2d", "norm(4), act(), last((4,))")
    found.holds("not is_class(last, partial(nn.LayerNorm, epsilon=1e-05), nn.GroupNorm)")
    found.holds("return Asking(partial(InstanceNorm2d, affine=True), **kwargs)", "isinstance(one, InstanceNorm2d)")


@pytest.mark.full
def test_classes_of_other_layers_are_compared(users: Users) -> None:
    found = users["asking_others"]
    found.agrees()
    found.holds("Asking(partial(nn.BatchNorm2d), nn.ReLU, partial(nn.LayerNorm, epsilon=1e-06))")


def test_norms_without_weights_have_none(users: Users) -> None:
    """MindSpore's hold ones and zeros, which loops over norms filled, and no checkpoint of torch's has."""
    found = users["weightless"]
    found.agrees()
    names = [name for name in found.mindspore if name.startswith("fresh/") and name.endswith(("gamma", "beta"))]
    assert {*names} == {"fresh/second.gamma", "fresh/second.beta", "fresh/scaled.gamma"}
    found.holds("self.first, self.second = (norm(4, affine=affine), partial(PartialBatchNorm2d, eps=0.001)(4))")
    found.holds(
        "has_bias=norm == PartialBatchNorm2d",
        "class Doubled(PartialBatchNorm2d):",
        "PartialLayerNorm((4,), bias=False)",
    )


@pytest.mark.full
def test_norms_that_a_setting_takes_their_weights(users: Users) -> None:
    found = users["weightless_by_a_setting"]
    found.agrees()
    found.holds("PartialGroupNorm(2, 4, affine=affine)", "PartialLayerNorm((4,), elementwise_affine=affine)")


def test_einops_patterns_of_any_number_of_axes(users: Users) -> None:
    found = users["streams"]
    found.agrees()
    found.holds("x.reshape((b, s, *rest))", "def repeat_v_fh_d_to_d_v_f_h_2(x, h):")


@pytest.mark.full
def test_what_is_looked_up_among_all_arguments_stays(users: Users) -> None:
    found = users["prefixed"]
    found.agrees()
    found.holds("given = dict(locals())", "out_wide=5, out_bias=False")


def test_the_axis_of_a_softmax_is_guessed_as_torch_does(users: Users) -> None:
    """It was `axis=None`, which MindSpore refuses; of a softmax that was handed on it was the last."""
    found = users["guessing"]
    found.agrees()
    found.holds("softmax(x, axis=None)", "log_softmax(x, axis=self.dim)", "partial(softmax, axis=None)", "nn.Softmax()")


def test_a_softmax_over_a_single_value_spoils_no_other(users: Users) -> None:
    """The gradients of the others were off by most of their size, in MindSpore's PyNative mode."""
    found = users["to_one_place"]
    found.agrees()
    found.holds(
        "self.attend = Softmax()", "softmax(x @ ops.swapaxes(x, 1, 2))", "softmax(x, axis=1, dtype=mindspore.float32)"
    )
    found = users["to_many_places"]
    found.agrees()
    found.holds("nn.Softmax()")


def test_layers_by_a_list_of_texts(users: Users) -> None:
    """Classes of the file and of torch in one variable, names of variables, and texts that name nothing."""
    for name in ("described", "described_twice"):
        found = users[name]
        found.agrees()
        assert not found.source.not_run, found.source.not_run
        found.holds("{'Mixed': Mixed, 'nn.Upsample': Upsample, 'nn.Tanh': nn.Tanh, 'Fine': Fine}[kind]")
        found.holds("evaluated(one, {'wide': wide, 'True': True, 'None': None, '1 / 4': 1 / 4, '2 * wide': 2 * wide,")
        found.holds("'start': start}, 'nearest')", "except NameError:", "kind(*args) for _ in range(times)")


def test_layers_that_a_text_names_and_sizes_that_layers_are_asked_for(users: Users) -> None:
    """`eval` gave MindSpore's layer of that name, with other defaults; no class was one that MindSpore needs arguments
    for; `padding[1]` of a convolution was that of its first side, and of a Conv1d 0."""
    found = users["by_text"]
    found.agrees()
    found.holds("self.act = {'nn.LeakyReLU()': partial(nn.LeakyReLU, alpha=0.01)}['nn.{}()'.format(act)]()")
    found.holds("{'Fine': Fine, 'nn.GELU': partial(nn.GELU, approximate=False)}[name]() for name in names")
    found.holds("{'Fine(by=3.0)': lambda: Fine(by=3.0)}[f'{names[0]}(by=3.0)']()", "nn.LeakyReLU(alpha=0.3)")
    found.holds("type(module) == nn.Conv2d", "module.__class__ in (nn.Conv1d, nn.Dense)", "if eval(deep) else None")
    found.holds("is_class(kind, partial(nn.LeakyReLU, alpha=0.01))", "padding_of(self.conv.padding, 2)[1]")
    found.holds("layer_size(layer, 'kernel_size')", "padding_of(self.rows[0].padding, 1)[0]")


def test_slices_of_lists_of_modules_keep_the_names_of_parameters(users: Users) -> None:
    """MindSpore's slice is a container that names them anew, each time it is taken: `0.weight` in both parts."""
    found = users["parts"]
    found.agrees()
    found.holds("for layer in list(self.layers)[:-1]:", "rest = list(self.layers)[1:3]", "self.tail, self.count = (")
    found.holds(
        "self.body[2:]", "in_turn(list(self.body)[:self.count], x)", "zip(list(self.layers)[1:], list(self.body)[::2])"
    )


def test_writes_sizes_and_static_methods_in_code_that_did_not_run(users: Users) -> None:
    """Also what a tensor's value decides; a transposed convolution takes a padding out of a dictionary."""
    found = users["unrun"]
    found.agrees()
    found.lacks("NotImplementedError", "not_converted")
    found.holds("if isinstance(m, nn.Conv2d) and m.group == 2:", "self.table = Unrun.grid(y.shape[1], 4)")
    found.holds("parts[:, :, s:s + 1] = y[:, :, s:s + 1] * s", "z[:, j, :] += found[:, :, 0] * j")
    found.holds("# not run\n            self.act = act", "z = self.act(z)")
    found.holds(
        "bias = getattr(m, first_name(m, 'bias', 'beta'))", "bias.set_data(initializer(Constant(value=0.25), bias."
    )
    found.holds("nn.Conv2dTranspose(inside, outside, kernel_size, stride=stride, pad_mode='pad', padding=padding)")
    users["unrun_otherwise"].agrees()


def test_kernels_of_torchvision_are_written_by_their_rows(users: Users) -> None:
    """Their source calls torch.ops, which has no row: a detector was refused for it."""
    found = users["proposes"]
    found.agrees("eval", "train")
    found.holds("kept = nms(boxes, scores, 0.5)", "return roi_align(self.mix(x), rois, 2, sampling_ratio=2)")
    assert not found.source.not_run


def test_axes_that_einops_packs_come_back(users: Users) -> None:
    found = users["packing"]
    found.agrees()
    found.holds("return pack([t], pattern)", "first, second = unpack(both, whole, '* d')")
    found.holds("self.levels = mindspore.tensor([8, 5, 5], mindspore.int32)")
    found.holds(  # MindSpore's initializer is a statement
        "self.turned = initializer(Orthogonal(gain=1), self.turned.shape, self.turned.dtype).init_data()\n"
        "        self.turned = Parameter(self.turned * 2.0, requires_grad=False)"
    )


def test_sparse_matrices_are_asked_for_dense(users: Users) -> None:
    made, multiplied = (problem.text for problem in users["sparse_product"].source.problems)
    assert made == (
        "torch.sparse_coo_tensor has no row in the mapping table: write the dense matrix, zeros with its values put at "
        "their places, and multiply by torch.mm"
    )
    assert multiplied.endswith("leave the matrix dense, and multiply by torch.mm")


def test_patterns_of_einops_that_are_no_literals(users: Users) -> None:
    """What they were is written, and any other raises: each was taken for the one of the run."""
    found = users["given_patterns"]
    found.agrees()
    found.holds("if self.last not in ('b c n -> b n c',):", "if chosen not in ('b n c -> b c n',):")
    found.holds("if f'b c {self.axes} -> b c ({self.axes})' not in ('b c h w -> b c (h w)',):")
    found.holds(
        "'b c h -> b (c h)': rearrange_b_c_h_to_b_ch}[way](y)", "{'b': x.shape[0], 'h': x.shape[2], 'w': x.shape[3]}"
    )


def test_products_of_einops(users: Users) -> None:
    found = users["einops_products"]
    found.agrees()
    found.holds("ops.matmul(", "class tensor_Rearranged(nn.Cell):", "class Rearranged(nn.Cell):")
    found = users["einops_product_by_an_argument"]
    found.agrees()
    found.holds("if pattern not in ('b c -> b d',):")


def test_sizes_of_one_number_are_for_every_side(users: Users) -> None:
    users["sizes_of_one_number"].agrees()


def test_numbers_before_tensors_are_what_torch_takes_them_for(users: Users) -> None:
    found = users["numbers_before_tensors"]
    found.agrees()
    found.holds("ops.addcmul(d, d, d, value=0.5)")
    users["numbers_before_tensors_in_a_branch"].agrees()
