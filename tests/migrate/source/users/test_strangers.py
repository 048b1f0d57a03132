"""What strangers' models have around their layers: objects of settings, a zoo's model inside, old constructors."""

from __future__ import annotations

from written import Written

Users = dict[str, Written]


def test_settings_are_those_that_were_handed_on(users: Users) -> None:
    found = users["handed_on"]
    found.agrees()
    found.holds("settings.kind = 'small'", "width.hidden = 7", "tree['head']['classes'] * tree.get('factor', 1)")
    found.lacks("settings.hidden = ")  # which the class sets itself


def test_a_zoos_model_is_made_by_a_function_of_the_file(users: Users) -> None:
    found = users["zoo"]
    found.agrees(apart=1e-4)
    found.holds("self.body = squeezenet1_1(num_classes=classes)", "def squeezenet1_1(**kwargs: Any) -> SqueezeNet:")
    found.lacks("weights", "register_model", "handle_legacy")


def test_constructors_of_long_ago(users: Users) -> None:
    found = users["old"]
    found.agrees()
    found.holds("ops.zeros((width, 4), mindspore.float32)", "setattr(self, 'layer_%d' % i, ", "net.classes = 4")


def test_a_tensor_may_have_no_axes(users: Users) -> None:
    found = users["without_axes"]
    found.agrees()
    found.holds("ops.full(tuple(shape), 1.0, dtype=mindspore.float32) * sqrt(2.0)")
    found.holds("ops.full((), 1.0, dtype=mindspore.float32) * 2.5", "ops.full((), 0.0, dtype=mindspore.float32)")


def test_a_dtype_may_be_a_class_of_pythons(users: Users) -> None:
    found = users["python_types"]
    found.agrees()
    found.holds("dtype=mindspore.bool_", ".astype(mindspore.bool_)", ".astype(mindspore.float64)")
    found.holds("self.embedding_table.requires_grad = False", "self.act = Cubed()", "if act not in ('cubed',):")
    found.holds("if kind is not None:\n            if kind not in ('cubed',):")  # and not where it is None
    found.holds("self.picked('cubed')", "self.norm = partial(nn.LayerNorm, epsilon=1e-05)((4,))")
    found.holds("ops.squeeze(self.mix.weight, 2)", "tuple(map(float, (times, times)))")
    found.holds("rows, _ = nonzero(self.mask, True)", "if row == 7:\n                continue")


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
