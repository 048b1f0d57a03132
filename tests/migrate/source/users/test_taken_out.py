"""What is done to a net's parts is done in MindSpore, too: layers taken out, and bodies that functions make."""

from __future__ import annotations

from test_handed_on import classes
from written import Written

Users = dict[str, Written]


def test_layers_taken_out_after_the_net_was_made(users: Users) -> None:
    """torch numbers those that are left, also where they had names."""
    for name in ("without_last", "without_middle", "without_slice", "without_last_of_branches", "without_what_trains"):
        users[name].agrees()
    users["without_last"].holds("body = Body()\n    take_cell(body.features, 4)")
    users["without_middle"].holds("take_cell(body.features, 3)")  # whose stages are alike
    users["without_slice"].holds("take_cell(body.features, 3)\n    take_cell(body.features, 2)")
    users["without_what_trains"].holds("del net.extra", "for parameter in net.features[1].get_parameters():")


def test_several_layers_taken_out_and_one_put_in(users: Users) -> None:
    found = users["without_several"]
    found.agrees()
    found.holds("del body.output\n    take_cell(body.features, 3)\n    take_cell(body.extra, 0)", ".append(nn.Conv2d(")


def test_what_was_changed_besides_is_asked_for(users: Users) -> None:
    texts = [problem.text for problem in users["changed_inside"].source.problems]
    assert "features.init was removed after the model was made" in texts


def test_layers_taken_out_in_a_constructor(users: Users) -> None:
    last, middle = users["takes_last"], users["takes_middle"]
    last.agrees()
    middle.agrees()
    assert classes(last)["Taking"] == classes(middle)["Taking"]
    last.holds("self.separate = take_cell(net.features, which)", "take_cell(net.features, slice(0, 2, None))")


def test_functions_made_in_others_keep_their_variables(users: Users) -> None:
    """They are handed on as arguments, and become functions of the new file."""
    wide, narrow = users["made_by_functions"], users["made_by_functions_narrow"]
    wide.agrees()
    narrow.agrees()
    assert classes(wide)["body"] == classes(narrow)["body"]
    wide.holds("def body(*, width, groups):", "def norm(count, *, groups):")
    wide.holds("Merged(partial(body, groups=2, width=8), partial(norm, groups=2)")
    narrow.holds("Merged(partial(body, groups=4, width=4), partial(norm, groups=4)")


def test_layers_are_wrapped_in_their_places(users: Users) -> None:
    found = users["wrapped_by_number"]
    found.agrees()
    found.holds("self.update_parameters_name()")  # two layers have one name without
    found = users["wrapped_by_name"]
    found.agrees()
    found.holds(
        "replace_cell(module, name, nn.LeakyReLU(alpha=0.2))",
        "replace_cell(self.b, name, HalfRolled(m))",
        "replace_cell(self.c, name, nn.SequentialCell(",
        "replace_cell(self.c[3], 'conv', HalfRolled(self.c[3].conv))",
        "replace_cell(self.parts, 'one', HalfRolled(self.parts['one']))",
    )
