"""What strangers' models have around their layers: objects of settings, a zoo's model inside, old constructors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from written import Written

Users = dict[str, Written]


def test_settings_are_those_that_were_handed_on(users: Users) -> None:
    found = users["handed_on"]
    found.agrees()
    found.holds("settings.kind = 'small'", "width.hidden = 7", "tree['head']['classes'] * tree.get('factor', 1)")
    found.holds("Namespace(inner=SimpleNamespace(scale=0.5))")
    found.lacks("settings.hidden = ")  # which the class sets itself


def test_a_zoos_model_is_made_by_a_function_of_the_file(users: Users) -> None:
    found = users["zoo"]
    found.agrees(apart=1e-4)
    found.holds("self.body = squeezenet1_1(num_classes=classes)")
    found.holds("def squeezenet1_1(dropout=0.0, **kwargs: Any) -> SqueezeNet:")
    found.lacks("weights", "register_model", "handle_legacy")


@pytest.mark.full
def test_constructors_of_long_ago(users: Users) -> None:
    found = users["old"]
    found.agrees()
    found.holds("ops.zeros((width, 4), mindspore.float32)", "setattr(self, 'layer_%d' % i, ", "net.classes = 4")


@pytest.mark.full
def test_a_tensor_may_have_no_axes(users: Users) -> None:
    found = users["without_axes"]
    found.agrees()
    found.holds("ops.full(tuple(shape), 1.0, dtype=mindspore.float32) * sqrt(2.0)")
    found.holds("ops.full((), 1.0, dtype=mindspore.float32) * 2.5", "ops.full((), 0.0, dtype=mindspore.float32)")


def test_what_did_not_run_calls_attributes_and_fills_lists(users: Users) -> None:
    found = users["taken_apart"]
    found.agrees()
    found.holds("self.attention(x, x, x, key_padding_mask=hidden)", "self.attention(y, y, y, key_padding_mask=hidden)")
    found.holds("x + self.act(self.linear(self.norm(x)))", "found.append(x)", "found[-1:] = []")
    found.holds("if isinstance(m, Attending):", "return [output * 2 for output in outputs]")
    found.holds("self.order = Order('before') if before else Order.AFTER", "np.concatenate([np.zeros(")
    found.holds("gate = ops.sigmoid(self.gate(x)) if self.gate is not None else None")
    found.lacks("NotImplementedError")


def test_weights_begin_in_another_shape_and_under_another_name(users: Users) -> None:
    found = users["begun"]
    found.agrees()
    found.holds("w = self.conv.weight\n", "ops.assign(w, initializer(", ".init_data().reshape(w.shape))")
    found.holds("bias = self.rest.bias\n", "ops.assign(bias, (", "shift.set_data(initializer(")


@pytest.mark.full
def test_a_dtype_may_be_a_class_of_pythons(users: Users) -> None:
    found = users["python_types"]
    found.agrees()
    found.holds("dtype=mindspore.bool_", ".astype(mindspore.bool_)", ".astype(mindspore.float64)")
    found.holds("self.embedding_table.requires_grad = False", "self.act = Cubed()", "if act not in ('cubed',):")
    found.holds("if kind is not None:\n            if kind not in ('cubed',):")  # and not where it is None
    found.holds("self.picked('cubed')", "self.norm = partial(nn.LayerNorm, epsilon=1e-05)((4,))")
    found.holds("ops.squeeze(self.mix.weight, 2)", "tuple(map(float, (times, times)))")
    found.holds("rows, _ = nonzero(self.mask, True)", "if row == 7:\n                continue")


@pytest.mark.full
def test_settings_that_are_computed_from_others_are_so_again(users: Users) -> None:
    found = users["computed_settings"]
    found.agrees()
    found.holds("head_width: Any = None", "self.head_width = self.width // self.heads")
    found.holds("return self.heads * self.head_width")
    found.holds("if self.heads != 2:", "heads was 2, which kinds is computed from")  # by a function: it is not written
    found.holds(
        "LibrarySettings(width=6, head=HeadSettings(classes=5))", "getattr(settings, 'depth', settings.heads * 2)"
    )
    found.lacks("depth: int", "tall: ", "height: ")


@pytest.mark.full
def test_what_old_versions_of_torch_left_in_models(users: Users) -> None:
    found = users["habits"]
    found.agrees()
    found.holds("self.held = nn.Cell()", "tuple(kernel) if isinstance(kernel, (tuple, list)) else (kernel,) * 2")
    found.holds(
        "ops.bitwise_right_shift(lengths, 1)",
        "isinstance(lengths, Tensor)",
        "self.backends = ['MATH']",
        "device: Any='cpu'",
    )
    found.lacks("Variable(", "torch.device")


@pytest.mark.full
def test_a_list_of_layers_may_hold_none(users: Users) -> None:
    found = users["gaps"]
    found.agrees()
    found.holds("return OptionalCells(found)", "float(self.rate) * self.shifted(x)")
    found.holds("None if mask is None else Parameter(mask, name='mask', requires_grad=False)")


@pytest.mark.full
def test_a_convolution_may_continue_its_input(users: Users) -> None:
    found = users["continued"]
    found.agrees()
    found.holds("PaddedConv1d(3, 4, 3, ", "padding_mode='reflect'", "padding_mode='replicate'")


def test_a_function_whose_backward_is_the_derivative_is_its_forward(users: Users) -> None:
    found = users["by_hand"]
    found.agrees()
    found.holds("class SwishFunction:", "def apply(x, beta=1.0):", "return SwishFunction.scaled(x, beta)")
    found.lacks("ctx", "backward")


@pytest.mark.full
def test_a_class_from_one_with_another_argument_has_another_base(users: Users) -> None:
    found = users["padded"]
    found.agrees()
    found.holds("class Segments(PaddedEmbedding):")


@pytest.mark.full
def test_a_class_from_one_that_a_package_offers(users: Users) -> None:
    found = users["derived"]
    found.agrees("eval", "train")
    found.holds("class Features(SqueezeNet):", "super().__init__(**kwargs)")


def test_what_a_model_keeps_and_does_not_compute_with_is_left_out(users: Users) -> None:
    """An optimizer of torch's has no counterpart inside of a Cell; without it the rest is whole, and it is listed."""
    found = users["learner"]
    found.agrees()
    found.holds(
        "# self.optimizer is left out: nothing here computes with it (Adam of torch)", "self.known = Compose([])"
    )
    found.lacks("ToTensor", "self.prepare =", "not_converted")
    said = [problem.text for problem in found.source.left_out]
    assert "self.prepare is left out: nothing here computes with it (Compose of torchvision)" in said
    assert [problem.text for problem in found.source.not_run] == ["what self.optimizer.zero_grad calls is not known"]


def test_the_version_of_torch_and_classes_of_tensors_as_texts(users: Users) -> None:
    found = users["versioned"]
    found.agrees()
    found.holds("padding = 1\n", "self.places(x, x.dtype)", "self.steps.astype(dtype)")
    found.holds("VERSION = [int(part) for part in '", ".split('.')[:2]]", "2 if VERSION >= [1, 10] else 3")
    found.lacks("empty_cache")
    found.holds("return x.dtype == mindspore.float16")
    assert not found.source.not_run


def test_norms_of_volumes_have_no_norm_inside_for_a_model_that_fills_them(users: Users, tmp_path: Path) -> None:
    """MindSpore's BatchNorm3d has a BatchNorm2d inside, which a loop over all cells met as well."""
    found = users["volumes"]
    found.agrees()
    found.holds(
        "for _, m in named_modules(self):", "for name, m in named_modules(self):", "nn.BatchNorm3d, nn.SyncBatchNorm"
    )
    file = tmp_path / "written.py"
    code = "print(net.last.bn2d.gamma.asnumpy()[0], net.norm.bn2d.gamma.asnumpy()[0], net.last.bn2d.beta.asnumpy()[0])"
    file.write_text(f"{found.source.text}\n\nnet = build()\n{code}\n")
    said = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=True, timeout=120).stdout
    assert said.split() == ["0.5", "1.5", "0.25"]


def test_embeddings_that_begin_with_vectors(users: Users) -> None:
    """A model with `nn.Embedding.from_pretrained` was not whole."""
    for name, trained in (("worded", False), ("worded_and_trained", True)):
        found = users[name]
        found.agrees()
        found.holds(
            "embedding_from_pretrained(vectors, freeze=False)", "self.words = embedding_from_pretrained(vectors)"
        )
        found.holds("embedding_from_pretrained(vectors * 2, freeze=False, padding_idx=-1)")
        assert not found.source.not_run
        assert ("gradient/words.weight" in found.torch) == trained
        assert not found.torch["gradient/more.weight"][5].any() and found.torch["gradient/more.weight"][3].any()


def test_lists_of_calls_that_do_nothing_here_and_tensors_of_sizes(users: Users) -> None:
    found = users["flattened_in_a_list"]
    found.agrees()
    found.lacks("flatten_parameters", "is_contiguous")
    assert {one.line for one in found.source.left_out if "is_contiguous() is taken to be True" in one.text}


def test_settings_in_texts_are_the_entries_of_a_dictionary(users: Users) -> None:
    """They stayed attributes there, and the new file failed; of a class that raises a KeyError for `__deepcopy__` none
    was written at all."""
    for name in ("shown_settings", "shown_settings_by_item"):
        users[name].agrees()
        users[name].lacks("config.width", "config.inner")


def test_arguments_in_a_dictionary_that_a_function_gives(users: Users) -> None:
    found = users["alike"]
    found.agrees()
    found.holds("dtype=like(x)['dtype']", "dtype=like(t=x)['dtype']")


def test_variables_around_a_function_that_it_gives_other_values(users: Users) -> None:
    """`nonlocal` was left out, so that the variable stayed as it was, in silence where the function only sets it."""
    found = users["counted_around"]
    found.agrees()
    found.holds("nonlocal depth, last", "nonlocal found", "nonlocal means, largest")
