"""Tensors and layers that are moved, numbers in texts, and some of a model's layers, taken or looked up."""

from __future__ import annotations

from written import Written

Users = dict[str, Written]


def test_what_is_put_on_a_gpu_runs_on_the_cpu_and_is_not_moved(users: Users) -> None:
    """torch raised without a GPU, and with one the tensors were in two places."""
    found = users["made_for_a_gpu"]
    found.agrees()
    found.lacks("cuda(", 'cuda"', ".to(")


def test_layers_that_are_put_somewhere_are_the_layers(users: Users) -> None:
    unrun, ran = users["put_somewhere"], users["put_somewhere_deep"]
    for found in (unrun, ran):
        found.agrees()
        found.lacks(".to(", ".cpu(", ".float(")
        found.holds("self.extra = nn.Dense(4, 4)", "self.rest = nn.SequentialCell(nn.Dense(4, 4), nn.ReLU())")
    assert not unrun.source.not_run


def test_a_layer_of_another_dtype_is_refused(users: Users) -> None:
    (problem,) = users["of_another_dtype"].source.problems
    assert "may be of another dtype" in problem.text


def test_numbers_of_tensors_in_texts(users: Users) -> None:
    """MindSpore's tensors take no format."""
    found = users["says_numbers"]
    found.agrees()
    found.holds(
        "'mean {:.4f} of {}'.format(mean.item(), size)", "f'or {mean.item():.2e}'", "format(mean.item(), '.1f')"
    )
    found.holds("f'at least {least.item():.2f}, at most {y.max().item():.2f}'")
    found.holds("'{:.3f}'.format(mean.item()) + '{:>8.3f}'.format(mean.item()) + '{:02d}'.format(size)")


def test_some_of_the_layers_of_a_list(users: Users) -> None:
    unrun, ran = users["all_of_its_layers"], users["some_of_its_layers"]
    for found in (unrun, ran):
        found.agrees()
        found.holds("for block in list(self.blocks)[:-1]:", "for layer in list(self.tail)[1:]:")
    assert not unrun.source.not_run


def test_layers_in_parts_that_are_checkpointed(users: Users) -> None:
    found = users["in_checkpointed_parts"]
    found.agrees()
    found.holds("x = in_turn(list(self.layers), x)", "return in_turn([self.tail[0], ops.tanh], x)")


def test_dictionaries_that_look_up_by_themselves_are_their_classes(users: Users) -> None:
    """They were plain dictionaries."""
    found = users["looks_up_by_itself"]
    found.agrees()
    found.holds(
        "class Widths(dict):\n\n    def __missing__(self, key):\n        return 2 * len(key)",
        "WIDTHS = Widths(narrow=4)",
    )
    found.holds("when this was written, kind was 'times'")


def test_computed_paddings_of_convolutions_back_to_a_volume(users: Users) -> None:
    users["back_to_a_volume"].agrees(apart=1e-4)


def test_layers_that_a_registry_makes_have_its_arguments_or_are_refused(users: Users) -> None:
    """They had their classes' defaults: a Dropout of 0.3 was one of 0.5."""
    users["builds_by_classes"].agrees()
    users["builds_by_classes"].holds("nn.LeakyReLU(alpha=0.3)", "Times(by=4.0)")
    every = [one.text for one in users["builds_with_arguments"].source.problems]
    problems = [text for text in every if "which may have been given arguments" in text]
    assert len(problems) == 2, every
    assert "torch.nn.LeakyReLU" in problems[0] and "Times" in problems[1]


def test_parts_that_are_shared_among_devices(users: Users) -> None:
    unrun, ran = users["shared_among_devices"], users["shared_among_more"]
    for found in (unrun, ran):
        found.agrees()
        found.holds("self.second = DataParallel(nn.Dense(4, 4))", "isinstance(layer, DataParallel)")
    assert not unrun.source.not_run


def test_methods_whose_first_argument_has_another_name(users: Users) -> None:
    found = users["whose_self_has_other_names"]
    found.agrees()
    found.lacks("update_parameters_name")


def test_constructors_of_bases_that_are_called_by_name(users: Users) -> None:
    found = users["made_by_its_bases"]
    found.agrees()
    found.holds("nn.Cell.__init__(self)\n        self.fc", "Middle.__init__(self, width, **words)")


def test_tensors_of_ranges(users: Users) -> None:
    found = users["tensors_of_ranges"]
    found.agrees()
    found.holds("places = Tensor(list(range(y.shape[0])), mindspore.int64)", "mindspore.tensor(list(range(5)))")


def test_a_precision_of_parts_is_listed(users: Users) -> None:
    """Its line was lost. The values near 1 are such as MindSpore's own erfinv is off at."""
    found = users["partly_in_half"]
    found.agrees(apart=1e-4)
    said = [one.text for one in found.source.left_out if "precision is chosen for the whole net" in one.text]
    assert {text.partition(":")[0] for text in said} == {
        "torch.autocast('cpu', enabled=self.mixed, dtype=torch.bfloat16)",
        "torch.autocast('cpu')",
    }
