"""Sequences, and small editions of whole models, as people publish them."""

from __future__ import annotations

from pathlib import Path

import pytest
from written import Written

Users = dict[str, Written]


def test_recurrent_layers(users: Users) -> None:
    found = users["recurrent"]
    found.agrees()
    found.holds("PaddedEmbedding(vocab, embed, padding_idx=0")


def test_packed_sequences(users: Users) -> None:
    """MindSpore's layers take padded ones, and their lengths."""
    found = users["packed"]
    found.agrees()
    found.holds("out, (h, c) = run_packed(self.lstm, packed)", "pack_padded_sequence(out, sizes.tolist(), True, False)")
    users["packed_in_one_direction"].agrees()
    users["packed_to_a_length"].agrees()


@pytest.mark.full
def test_lists_that_shrink_and_dictionaries_of_others(users: Users) -> None:
    found = users["stacked"]
    found.agrees()
    found.holds("levels[n:n] = [x]", "skips[-1:] = []", "for level in levels[::-1]:", "every.update(named)")
    found.lacks(".insert(", ".pop(", ".extend(", ".reverse(", "reversed(", "dict(", "**every")


@pytest.mark.full
def test_a_list_of_the_function_around(users: Users) -> None:
    found = users["noted"]
    found.agrees()
    found.holds("noted.extend(items)")


@pytest.mark.full
def test_the_tutorials_transformer(users: Users) -> None:
    found = users["transformer"]
    found.holds("ops.arange(0, d_model, 2)")
    found.agrees()
    found.holds(
        "self.transformer_encoder(src, src_mask=self.src_mask)",
        "pe[:, 0::2] = ",
        "ops.arange(0, d_model, 2)",
        "self.pe = Parameter(",
    )


def test_masks_of_bools_and_of_numbers(users: Users) -> None:
    """MindSpore's attention adds the bools as 0 and 1, which hides nothing; two of one kind stay as they are."""
    found = users["masked_by_two"]
    found.agrees()
    found.holds(
        "self.attention(x, x, x, added_mask(padding), attn_mask=self.later(n))",
        "self.layer(y, self.later(n), added_mask(padding))",
        "tgt_mask=prefix, memory_mask=self.later(n), memory_key_padding_mask=added_mask(padding)",
        "self.decoder(y, y, tgt_mask=added_mask(prefix), tgt_key_padding_mask=added_mask(padding))",
        "src_mask=self.later(n) < 0, src_key_padding_mask=padding",
    )


@pytest.mark.full
def test_attention_in_three_ways(users: Users) -> None:
    users["attention"].agrees()


def test_a_block_of_a_large_language_model(users: Users) -> None:
    found = users["llama"]
    found.agrees()
    found.holds("def rotate_half(x):", "class RMSNorm(nn.Cell):")


def test_nanogpt(users: Users) -> None:
    found = users["gpt"]
    found.agrees()
    found.holds("pos = ops.arange(0, t, dtype=mindspore.int64)")
    found.holds("return GPT(GPTConfig())", "self.transformer.wte.embedding_table = self.lm_head.weight")
    found.lacks("hasattr", "import torch", "torch.nn")


@pytest.mark.full
def test_a_loss_that_is_computed_where_targets_are_given(users: Users) -> None:
    """That `targets` are tensors, their use says: they were None as it ran."""
    found = users["gpt_that_generates"]
    found.agrees()
    found.holds("logits.reshape(-1, logits.shape[-1]), targets.reshape(-1), ignore_index=-1)")
    found.lacks("NotImplementedError")


def test_arguments_that_were_never_given(users: Users) -> None:
    found = users["masked"]
    found.agrees()
    found.holds("assert ops.amax(lengths) <= x.shape[1], 'too long'", "x + ops.mean(h) * ops.sum(c)")
    found.holds("self.criterion(x.reshape(-1), goal.reshape(-1))", "def shown(self, figure, rows=2):")
    said = [one.text for one in (*found.source.not_run, *found.source.left_out)]
    assert "methods of Options that the model does not compute with, and are not written: __str__, wider" in said
    assert any("a statement of this kind (With) is not read" in text for text in said)


@pytest.mark.full
def test_keywords_that_are_passed_on_without_any(users: Users) -> None:
    found = users["handing"]
    found.agrees()
    found.holds("return self.part(x, **kwargs)", "self.part = ScaledPart(**options)")


@pytest.mark.full
def test_keywords_of_which_some_are_taken_out(users: Users) -> None:
    found = users["taking"]
    found.agrees()
    found.holds("def construct(self, x, *, output_attentions=None, shift=0.5, times=2, **kwargs):")
    found.holds("# as often as it is wanted\n        for _ in range(times):", "self.part(x, **kwargs)")
    found.lacks("pop", "shift = shift")


@pytest.mark.full
def test_changes_of_dictionaries_and_lists_that_graph_mode_does_not_make(users: Users) -> None:
    """Compiled, each of them changes nothing, without an error; what only builds the model stays as it is."""
    found = users["changing"]
    found.agrees()
    found.holds("if 'scale' not in kwargs:", "kwargs['scale'] = 0.5", "shift = kwargs['shift']")
    found.holds("kwargs = {key: value for key, value in kwargs.items() if key != name}")
    found.holds("kwargs = {key: value for key, value in [('scale', 1.5), *kwargs.items()]}", "'a{:02d}'.format(")
    found.holds("scales[:] = sorted(scales, reverse=True)", "at1 = scales.index(2.0)", "found.update(others)")
    found.holds("if not self.is_last:\n            # not run\n            at = scales.index(1.0)")
    found.holds("options = {'shift': 0.25, 'name': ", "options.update({'times': 2})")
    found.holds("options.setdefault('width', 4)", "widths.sort()", "widths.remove(6)", "'first': widths[0]")


@pytest.mark.full
def test_changes_under_another_name_of_a_list_or_a_dictionary(users: Users) -> None:
    """Compiled, they do not change what has the first name."""
    found = users["other_names"]
    found.agrees()
    found.holds("found = same", "table['inner'] = inner", "table['list'] = parts", "table = other")
    found.holds("return found", "found = self.gather(found, x * 0.1)\n        same = found", "table['list'] = last")
    found.lacks("found = copied")


@pytest.mark.full
def test_a_list_that_graph_mode_does_not_change_is_listed(users: Users) -> None:
    """The layer returns something else, so that it cannot return the list."""
    found = users["keeping"]
    found.agrees()
    (listed,) = found.source.left_out
    assert listed.text.startswith("forward changes `kept`, which is read afterwards; in graph mode")
    assert Path(listed.file).read_text().splitlines()[listed.line - 1].strip() == "x = self.first(x, kept) + sum(kept)"


@pytest.mark.full
def test_a_dataclass_of_settings_that_the_model_makes_where_it_is_given_none(users: Users) -> None:
    """That line did not run, and the class is in the file."""
    found = users["settled"]
    found.agrees()
    found.holds("settings = settings or Widths()", "@dataclass\nclass Widths:", "times: int = 2")
    found.lacks("not_converted")


@pytest.mark.full
def test_a_method_of_whichever_module_it_is(users: Users) -> None:
    found = users["noisy"]
    found.agrees()
    found.holds("if 'st' in name:\n                module.reset_noise()", "pad_mode='pad', padding=1, has_bias=True)")
    found.holds("# What is drawn is no parameter,\n# and stays until it is drawn anew.\nclass Noisy(nn.Cell):")
    found.holds("    # Called before each step.\n    def reset_noise(self):", "nn.LeakyReLU(alpha=0.2)")
    found.holds('"""A net.\n\nSmall editions of what people train')
    found.lacks("get_parameters()")  # `conv` is not frozen: one setting or the other runs it


@pytest.mark.full
def test_what_a_model_was_made_with_may_be_given_otherwise(users: Users) -> None:
    found = users["made_wide"]
    found.agrees()
    found.holds("def build(width=3, **kwargs: Any) -> WideNet:", "return WideNet(width=width, **kwargs)")


@pytest.mark.full
def test_a_vision_transformer(users: Users) -> None:
    found = users["vit"]
    found.agrees()
    found.holds("class DropPath(nn.Cell):")  # its rate is 0 everywhere: its class is read


@pytest.mark.full
@pytest.mark.parametrize("name", ["unet", "annotated", "resnet", "vae"])
def test_others(users: Users, name: str) -> None:
    found = users[name]
    found.agrees()
    found.lacks("import torch", "torch.nn")
