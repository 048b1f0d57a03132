"""Code that did not run is read, and what it does is what it would do in torch."""

from __future__ import annotations

from written import Written

Users = dict[str, Written]


def test_methods_that_count_and_freeze_are_read(users: Users) -> None:
    found = users["asked"]
    found.agrees()
    found.holds(
        "sum((p.size for p in parameters(self) if p.requires_grad))", "for name, p in named_parameters(self.mix)"
    )
    found.holds("device = 'cpu'", "where = 'cpu'")  # MindSpore has no device of torch's
    assert not found.source.not_run


def test_layers_of_other_settings_are_those_that_would_have_run(users: Users) -> None:
    users["asked_normed"].agrees()
    unrun, ran = (users[name] for name in ("asked", "asked_normed"))
    for found in (unrun, ran):
        found.holds("layer = weight_norm(layer)", "layer.weight", "self.layers.append(layer)")
        found.holds("ops.masked_fill(x, x > 0.5, -largest(x.dtype))")  # of whichever dtype it is


def test_what_a_method_gives_is_known_where_it_ran(users: Users) -> None:
    for name in ("predicts", "predicts_centred"):
        users[name].agrees()
        users[name].holds(
            "y = y - ops.mean(self.encoder.encode(x), axis=0, keep_dims=True)", "ops.argmax(found, dim=-1)"
        )
        users[name].holds("MARGIN = 0.5", "def moved(self, x, by=MARGIN, *, times=2 * MARGIN):")
        assert not users[name].source.not_run


def test_what_stands_above_the_imports_is_kept(users: Users) -> None:
    """Who wrote a file, and under which licence."""
    assert "# Somebody wrote this, and anybody may use it.\n\nfrom __future__" in users["asked"].source.text
    assert 'Code that did not run, and is read.\n"""\n' in users["asked"].source.text


def test_classes_that_never_ran_have_their_defaults(users: Users) -> None:
    """Classes and functions among them, and what they make and call: the text is that of a run."""
    unrun, once = users["remembers_not"], users["remembers_twice"]
    for found in (unrun, once, users["remembers_otherwise"]):
        found.agrees(apart=1e-4)
        assert not found.source.not_run
    unrun.holds("act=partial(nn.GELU, approximate=False)", "inner=partial(nn.LayerNorm, epsilon=1e-05)")
    unrun.holds("weigh=Weighs", "gate=nn.Sigmoid", "self.last(self.longer(y) + ops.unsqueeze(h[-1], 2), axis=1)")
    for line in ("act()", "norm(width)", "inner((width,))", "weigh(width)", "gate()"):
        unrun.holds(line)
        once.holds(line)
    unrun.holds("self.weights = Parameter(ops.zeros((width, times), mindspore.float32))")
    unrun.holds("self.shift = Parameter(ops.zeros((places,)))")  # assigned in the run, read elsewhere alone


def test_tables_masks_and_chosen_classes_that_never_ran(users: Users) -> None:
    """New tensors that are written into, classes in variables, and objects that are no modules."""
    unrun = users["timed"]
    for found in (unrun, users["timed_by_waves"], users["timed_by_tables"]):
        found.agrees()
        assert not found.source.not_run
    unrun.holds("w[:, 0::2] = ops.sin(place)", "self.table.embedding_table = Parameter(w + rows, requires_grad=False)")
    unrun.holds("self.minute = Table(60, width)", "self.hour = Table(24, width)", "self.minute(x[:, 1])")
    unrun.holds(
        "@property\n    def mask(self):\n        # not run\n        return self._mask", "later = Later(y.shape[1])"
    )


def test_lambdas_and_the_device_of_the_first_parameter(users: Users) -> None:
    for name in ("draws", "draws_doubled"):
        users[name].agrees()
        assert not users[name].source.not_run
    users["draws"].holds("given_or_made(more, lambda: ops.zeros_like(x))", "[t * 2 for t in (x, more)]")
    users["draws"].holds(
        "def drawn(self, count):\n        # not run\n        return self.construct(ops.randn(count, 3, 8))"
    )
    users["draws"].lacks("next(", "device")
    users["draws"].holds("count, width, length = flow.shape", "ops.sum(mask * ops.unsqueeze(flow, 2), 2)")
    users["draws"].holds("found[number] = self.construct(x) * number")  # a new dictionary


def test_texts_in_a_body_are_comments(users: Users) -> None:
    """Behind `super().__init__()` it was one line with `\\n` in it."""
    users["draws"].holds("# What it is made of.\n", "#     layer: of 3 channels\n        self.mix")


def test_what_torchs_layers_call_and_mindspores_do_not(users: Users) -> None:
    """A method that only casts is left out and said; one that computes is asked for."""
    assert any("_conv_forward of Casts" in one.text for one in users["draws"].source.left_out)
    (problem,) = users["draws_centred"].source.problems
    assert problem.text == (
        "_conv_forward of Centres, which torch's layer calls, and MindSpore's does not: write a forward"
    )


def test_classes_that_were_only_asked_for_raise_when_they_are_made(users: Users) -> None:
    """They had no methods: one of them computed as its base does, and one derived from typing.Any."""
    found = users["filled_by_class"]
    found.agrees()
    found.holds("class Leaky(nn.Cell):", "class Leaky2d(Leaky):\n    pass", "class Doubled(nn.Dense):")
    made = "def __init__(self, *args, **kwargs):\n        raise NotImplementedError('unrun_torch.py:"
    assert found.source.text.count(made) == 2, found.source.text
    found.holds("no Doubled was made, and its methods are not written')")
    found.holds("weight = getattr(m, first_name(m, 'weight', 'gamma'))", "weight.set_data(initializer(")
    found.lacks("(Any)")


def test_a_class_that_is_asked_for_first_is_read_where_a_branch_makes_it(users: Users) -> None:
    users["filled_by_class_and_bent"].agrees()
    for name in ("filled_by_class", "filled_by_class_and_bent"):
        users[name].holds("ops.tanh(self.fc(x))", "self.last = Bent(4) if bent else nn.Tanh()")


def test_a_base_that_mindspore_does_not_have_is_a_problem_where_it_ran(users: Users) -> None:
    said = [problem.text for problem in users["of_theirs"].source.problems]
    assert said == ["torch.nn.modules.batchnorm._NormBase has no row in the mapping table"]


def test_shapes_are_put_together_and_values_and_indices_are_told_apart(users: Users) -> None:
    """As timm's DropPath is copied everywhere, and as layers are made once."""
    for name in ("sparing", "sparing_tied", "sparing_most", "sparing_drops"):
        if name != "sparing_drops":  # which draws
            users[name].agrees()
        assert not users[name].source.not_run, name
        users[name].holds(
            "shape = (x.shape[0],) + (1,) * (x.ndim - 1)",
            "ops.floor(ops.add(kept, 1 - share))",
            "        nonlocal found\n",
            "[layer(again=not tied) for _ in range(3)]",
            "linspace(0.0, 1.0, x.shape[-1], dtype=x.dtype)",
        )
        users[name].lacks("wraps")
        users[name].holds("places = ")


def test_layers_that_a_class_makes_by_its_own_methods(users: Users) -> None:
    for name in ("either", "either_deep"):
        users[name].agrees()
        assert not users[name].source.not_run, name
        users[name].holds("self.first = self._stage(norm, 2)", "x = self.last(self.first(x))")


def test_items_of_items_are_written_into_and_parts_of_other_tensors_are_not(users: Users) -> None:
    for name in ("tables", "tables_more"):
        users[name].agrees()
        users[name].holds("start[0][2] = 0.5", "rows[1][0][3] = 7.0", "rows[-1][1] = x[1]")
        refused = [one.text for one in users[name].source.not_run]
        assert refused[:2] == [
            f"{write} may change `{of}` too, which is read afterwards"
            for write, of in (("first[1] = 3.0", "rows"), ("each[number] = 3.0", "kept"))
        ]
        assert len(refused) == 3 and "may share its values" in refused[2]


def test_texts_of_assertions_that_held_are_kept(users: Users) -> None:
    """Where they can be written; the assertion alone, where not."""
    found = users["checked"]
    found.agrees()
    found.holds("assert times > 0, 'times is {}, {}'.format(times, self.training)")
    found.holds("assert width % 2 == 0, '%d is odd' % max(width, times)", "assert width == 4\n")
    found.holds("assert x.ndim == 2, f'{x.shape} has {x.ndim} axes'")
    found.holds("'3 columns, not {} of {}'.format(x.shape[-1], 'x'.join((str(n) for n in x.shape)))")


def test_layers_of_a_sequential_are_read_by_their_names(users: Users) -> None:
    """And what asks for their numbers, fills arrays, and puts one layer in the place of others."""
    for name in ("fused", "fused_now"):
        found = users[name]
        found.agrees()
        assert not found.source.not_run
        found.holds("branch.conv.weight", "norm.gamma / ops.sqrt(norm.moving_variance + norm.eps)")
        found.holds("values[place, place % values.shape[1], 1, 1] = 1", "self.__delattr__('pair')")
        found.holds("for side in padding_of(conv.padding, 2) for _ in (0, 1)")


def test_classes_of_tensors_by_their_names(users: Users) -> None:
    """As on a CPU: nothing is of CUDA's classes."""
    for name in ("typed", "typed_more"):
        users[name].agrees()
        assert not users[name].source.not_run
        users[name].holds("y * 3 if y.dtype == mindspore.float32 else y")
        users[name].lacks("float16", "'torch.")


def test_what_a_property_makes_and_modules_in_reverse(users: Users) -> None:
    for name in ("density_values", "density_likely", "density_back"):
        found = users[name]
        found.agrees()
        found.holds("normal_log_prob(self.prior, self.values(x))", "x = one.inverse(x)", "self.parts.inverse(x)")
        assert not found.source.not_run


def test_the_base_class_of_norms_where_no_norm_is(users: Users) -> None:
    found = users["begun_by_base"]
    found.agrees()
    found.holds(
        "elif isinstance(m, (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)):", "m.gamma.set"
    )
    found.holds("initializer(Uniform(scale=0.5), rand((width,)).shape, rand((width,)).dtype).init_data()")
    assert not found.source.not_run


def test_an_empty_branch_is_the_opposite_of_the_other_one(users: Users) -> None:
    found = users["branches_of_nothing"]
    found.agrees()
    found.holds("if x.ndim != 2:\n            # not run\n")


def test_layers_of_libraries_and_arguments_as_torch_takes_them(users: Users) -> None:
    """A library's layer with a row was refused where nothing of it ran; the calls failed, also where they ran."""
    for name in ("picks", "picks_widely"):
        found = users[name]
        found.agrees()
        found.holds(
            "y, shift = broadcast_tensors(y, y[:, :1])",
            "ops.avg_pool1d(y - 0.5 * shift, kernel_size=2, stride=2)",
            "index_fill(y, 2, places, 0.25).astype(mindspore.float32).astype(x.dtype)",
        )
        assert not found.source.not_run
    # of labels that were not seen it is not known whether they are shares of classes
    users["picks"].holds("self.turn = Permute((0, 2, 1))", "self.fits(y, class_labels(classes))")
    users["picks_widely"].holds("self.fits(y, classes.astype(mindspore.int32))")


def test_properties_what_is_done_at_the_end_and_bits_of_integers(users: Users) -> None:
    """A setter replaced its property, what a `finally` does was left out behind a `return`, and `~x` was a bool."""
    for name in ("rescales", "rescales_swiftly"):
        users[name].agrees("eval", "train")
        users[name].holds("@strength.setter", "returned = y * (self.calls + 2)", "bitwise_not(ops.arange(4))")
        assert not users[name].source.not_run


def test_functions_and_classes_in_variables_have_torchs_defaults(users: Users) -> None:
    """Where they ran, and where another one did; what takes its arguments otherwise raises where it is chosen."""
    ran, unrun = users["by_value_bent"], users["by_value"]
    for found in (ran, unrun):
        found.agrees()
        found.holds("partial(ops.leaky_relu, alpha=0.01) if bent else ops.relu", "self.pool = max_pool1d")
        (pool,) = found.source.not_run
        assert pool.text.startswith(
            "torch.nn.functional.avg_pool1d as a value: MindSpore's takes stride in another way"
        )
    ran.holds("'far': partial(ops.smooth_l1_loss, reduction='mean')")
    unrun.holds("if layer is not nn.Identity:", "when this was written, layer was torch.nn.Identity')")


def test_layers_of_classes_that_are_handed_on_with_arguments(users: Users) -> None:
    unrun, ran = users["handed"], users["handed_deep"]
    for found in (unrun, ran):
        found.agrees()
        found.holds("self.before = norm((width,))", "self.second = conv(3, 3, 3, stride=1)")
        found.holds("self.bent = act()", "self.bound(self.bent(self.second(self.before(x))), max=2.0)")
    assert not unrun.source.not_run


def test_what_a_class_keeps_is_made_by_its_constructor(users: Users) -> None:
    """The object was there before the run, and the class was written without the constructor, or was never done."""
    found = users["metered"]
    found.agrees()
    found.holds(
        "cls.kept[name] = cls(name, by=3.0)", "Meter.one = Meter(by=0.5)", "def __init__(self, name='', by=2.0):"
    )


def test_a_function_that_is_only_named_raises_where_it_is_named(users: Users) -> None:
    """The whole model was not written for it, or its name stood there; and a question to torch was none."""
    found = users["metered"]
    assert not found.source.problems
    assert {"what spectral does was not seen", "what nn.utils.weight_norm does was not seen"} <= {
        one.text for one in found.source.not_run
    }
    found.lacks("= spectral", "= nn.utils")


def test_variables_are_not_called_as_the_new_files_functions(users: Users) -> None:
    """`norm = norm(x)` raised, where the code that has such a variable did not run."""
    for name in ("shadowed", "shadowed_scaled"):
        users[name].agrees()
        users[name].holds("norm = tensor_norm(x, dim=-1, keepdim=True)", "(x / tensor_clamp(norm, min=1e-06)")
