"""Parts of tensors, lists of modules, and a library that a written file imports as it is."""

from __future__ import annotations

from written import Written

Users = dict[str, Written]


def test_every_second_place_is_read_and_written(users: Users) -> None:
    """MindSpore's own gradient of these crashed from three axes on, and `x[:, ::2].mul_(3)` changed nothing."""
    found = users["stepped"]
    found.agrees()
    found.holds("y[:, step - 1::step] = getitem(y, (slice(None), slice(step - 1, None, step))) - 0.5")
    found.holds("rows[:, ::2] = ops.mul(", "deep[:, :, 1::2, 0] = 0.25", "rows[:, 1::2] = ")
    found.holds("y[..., ::2] *= 2", "rows[::2]")  # of the first and the last axis it does not crash


def test_a_slice_that_had_nothing_in_it(users: Users) -> None:
    found = users["inserted"]
    found.agrees()
    found.holds("getitem(y, (slice(None), slice(None, int(place), None)))", "total[count:] * 1.5")


def test_lists_of_modules_of_whatever_gives_them(users: Users) -> None:
    """MindSpore's takes nothing but a list."""
    found = users["listed"]
    found.agrees()
    found.holds("self.pair = nn.CellList([nn.Dense(4, 4), nn.ReLU()])", "nn.CellList(list(made))")
    found.holds("self.named = nn.CellList(list(layers(2)))", "nn.CellList(list(last))", "extend([nn.Dense(4, 4)])")


def test_graphs_of_nodes_are_built_by_their_library(users: Users) -> None:
    found = users["over_nodes"]
    found.agrees()
    found.holds("import networkx as nx\nimport mindspore\n", "graph = nx.convert_node_labels_to_integers(graph)")
    found.lacks("class Graph", "def convert_node_labels_to_integers")


def test_what_is_written_into_a_view_is_in_the_tensor(users: Users) -> None:
    """`y.view(-1).mul_(2)` was a call that changed nothing, and `turned` a tensor of its own."""
    found = users["viewed"]
    found.agrees()
    found.holds("part = y.reshape(-1)\n        part = ops.mul(part, 2.0)\n        y = part.reshape(y.shape)\n")
    found.holds("y[0] = part1.reshape(y[0].shape)", "turned[0] = 0.5\n        y = ops.swapaxes(turned, 0, 1)\n")
    found.holds("y = y + 0.25\n        ", "flat = y.reshape(12)")
    found.lacks("own = y.reshape(3, 4)\n        y = ")  # its shape alone is read afterwards
    assert not found.source.not_run
    users["rarely_viewed"].agrees()


def test_a_branch_that_did_not_run_writes_into_views_too(users: Users) -> None:
    source = users["viewed"].source.text
    assert "wide = ops.div(wide, 3.0)\n            y = wide.reshape(y.shape)\n" in source
    assert "part = ops.mul(part, 2.0)\n        y = ops.t(part)\n        return y" in source


def test_what_may_be_another_tensor_is_not_written_into_in_silence(users: Users) -> None:
    source = users["unclear"].source
    refused = [problem.text.partition(" may share")[0].partition(" writes")[0] for problem in source.problems]
    assert refused == ["torch.diagonal(y)", "self.named(y).mul_(2.0)", "self.same(y)", "y.float()"]
    assert [one.text.partition(",")[0] for one in source.not_run] == ["first += 1.0 may change `y` too"]


def test_functions_that_are_mapped_are_lists(users: Users) -> None:
    """MindSpore compiles no map of a function that reads a name from around it."""
    found = users["mapped"]
    found.agrees()
    found.holds("q, k, v = [ops.swapaxes(", " for part in parts]", " for one, other in zip((q, k), (k, v))]")
    found.holds("sums = [ops.sum(one) / heads for one in [first, second]]")
    found.lacks("map(")


def test_rows_that_a_method_changes_are_in_the_tensor(users: Users) -> None:
    found = users["hands_on_rows"]
    found.agrees()
    found.holds(
        "for index, row in enumerate(shift):", "row = self.change(row)", "shift[index] = ops.stop_gradient(row)"
    )
    (refused,) = users["hands_on_parts"].source.problems
    assert refused.text.startswith("shift.split(1) may share its values with `shift`"), refused


def test_weights_of_layers_of_one_row_have_torchs_shape(users: Users) -> None:
    """MindSpore's Conv1d is a Conv2d of one row: `weight[:, :, 0]` was all of its taps, and `weight.shape[2]` was 1."""
    for name in ("one_row", "one_row_of_taps"):
        found = users[name]
        found.agrees()
        found.holds("ops.assign(self.mix.weight, ops.unsqueeze(steps, 2))", "w = ops.squeeze(self.mix.weight, 2)")
        found.holds("self.shifted.weight.data[:, :, 0, 2:] = 0", "self.shifted.weight.data[0, 1] = 0.25")
        found.holds("self.made.weight = Parameter(ops.unsqueeze(steps - 0.5, 2)", "w[:, :, 0] @ x")
        found.holds("2 * ops.squeeze(self.made.weight, 2)", "ops.squeeze(self.made.weight, 2)[:, :, 1:]")


def test_a_transposed_convolution_takes_any_padding_behind(users: Users) -> None:
    """It raised for all but the one that was seen."""
    for name in ("enlarged", "enlarged_by_odd_kernels"):
        found = users[name]
        found.agrees()
        found.holds("ConvTranspose2d(3, 3, kernel,", "output_padding=behind", "padding=padding")
        found.holds("new_zeros(ops.stop_gradient(x), (y.shape[0], 1, 1, 1))")
        found.lacks("raise NotImplementedError")


def test_tables_keep_the_keys_that_were_not_asked_for(users: Users) -> None:
    """What is at such a key is written, or raises where it is called; without the key another answer was given."""
    found, others = users["chosen_of_tables"], users["chosen_of_tables_others"]
    for one in (found, others):
        one.agrees()
        one.holds("'swish': doubled_swish", "'mish': lambda x: ops.mish(x)", "'whole': mindspore.float32")
        one.holds("hard=lambda: nn.HSwish()", "bag=lambda *args, **kwargs: not_converted(")
        assert [problem.text for problem in one.source.not_run] == [
            "nn.EmbeddingBag, an entry of a table that did not run"
        ]
    found.holds("'leaky': lambda x: partial(ops.leaky_relu, alpha=0.01)(x)", "elu=lambda: nn.ELU()")
    others.holds("'gelu': lambda x: ops.gelu(x)", "relu=lambda: nn.ReLU()")


def test_errors_of_pythons_are_caught_in_torch_alone(users: Users) -> None:
    """torch's own errors decide what is computed, and MindSpore's need not be the same."""
    found = users["caught"]
    found.agrees()
    found.holds("factor = {1: 2.0}[self.way]\n            x = x + 1\n            x = x * factor")
    assert any("except KeyError: MindSpore compiles no try" in problem.text for problem in found.source.left_out)
    assert [problem.text for problem in found.source.not_run] == ["a statement of this kind (Try) is not read"]


def test_files_are_read_by_the_same_code(users: Users) -> None:
    found = users["measured_by_files"]
    found.agrees()
    found.holds("import yaml", "width = json.load(file)['width']", "return int(yaml.safe_load(file)['more'])")
    found.holds("with open(os.path.join(folder, name), encoding='utf-8') as file, open(")
