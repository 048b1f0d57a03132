"""Where two frameworks draw otherwise is a finding at its place; what could not be fixed leaves no verdict."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msmigrate.errors import BadTrace
from msmigrate.parity.compared_draws import FAULT, KEY, Compared, about, causes
from msmigrate.parity.record.randomness import OUTSIDE, ROOT, Draws, Place
from msmigrate.parity.result import Finding, unproven
from msmigrate.parity.tensor_verdict import Unjudged, Verdict

ENCODER = Place("encoder", line="model.py, line 7")


def head(*passes: Draws) -> dict[str, Any]:
    """As it comes out of a trace."""
    found: dict[str, Any] = json.loads(json.dumps(about(passes)))
    return found


def drawn(step: int = 1, *draws: tuple[Place, str, tuple[int, ...]]) -> Draws:
    found = Draws(step)
    for who, kind, shape in draws:
        found.normal(who, shape) if kind == "normal" else found.uniform(who, shape)
    return found


def compared(torch: Draws, mindspore: Draws) -> Compared:
    return Compared.of([head(torch)], head(mindspore), "x")


def finding(name: str, verdict: Verdict = Verdict.PASS, stage: str = "forward", part: str = "train") -> Finding:
    return Finding(stage, part, name, 0, verdict, "" if verdict is Verdict.PASS else "off")


def test_nothing_random_is_nothing_to_say() -> None:
    assert about([Draws(0), Draws(1)]) == {}
    found = Compared.of([{}], {}, "x")
    assert not found.notes and not found.otherwise and not found.unfixed
    assert found.judged([finding("a")]) == [finding("a")]


def test_the_same_draws_are_a_note() -> None:
    same = drawn(1, (ENCODER, "normal", (4, 20)), (Place(ROOT), "uniform", (4,)))
    axes = drawn(1, (ENCODER, "normal", (4, 20, 1, 1)), (Place(ROOT), "uniform", (4,)))
    found = compared(same, axes)
    assert found.notes == ["at 2 places (such as encoder) both frameworks took the same random numbers"]
    assert not found.otherwise


@pytest.mark.parametrize(
    ("torch", "mindspore", "said"),
    [
        (
            [("normal", (4, 20))],
            [("uniform", (4, 20))],
            "draws normal [4, 20] in encoder (model.py, line 7), MindSpore uni",
        ),
        ([("normal", (4, 20))], [], "MindSpore nothing"),
        ([], [("normal", (4, 20))], "torch draws nothing in encoder, MindSpore normal [4, 20] (model.py, line 7)"),
        ([("uniform", (4, 3))], [("uniform", (4, 1))], "MindSpore uniform [4, 1]"),
        ([("uniform", (4,))] * 2, [("uniform", (4,))] * 3, "2 times uniform [4]"),
        (
            [("normal", (2,)), ("normal", (3,))],
            [("normal", (3,)), ("normal", (2,))],
            "MindSpore normal [3], normal [2]",
        ),
    ],
)
def test_other_draws_are_a_finding_at_the_module_that_draws(torch: Any, mindspore: Any, said: str) -> None:
    found = compared(*(drawn(1, *((ENCODER, *draw) for draw in side)) for side in (torch, mindspore)))
    findings = [finding("stem"), finding("encoder.fc"), finding("head", Verdict.FAIL)]
    judged = found.judged(findings)
    assert [f.order for f in judged] == [0, 1, 2, 3]
    (own,) = [f for f in judged if f not in [*findings] and f.name.endswith(" draws")]
    assert own.place == "forward (train) encoder draws" and own.verdict is Verdict.FAIL and said in own.why
    assert own.order == 2  # before the first tensor that it puts wrong
    (cause,) = causes(judged, {})
    assert cause.fault == FAULT and cause.place == "encoder" and cause.text == own.why


def test_a_layer_whose_own_output_fails_is_judged_by_it_first() -> None:
    torch, mindspore = (drawn(1, (Place("drop"), "uniform", shape)) for shape in ((4, 8), (4, 1)))
    first, second, _ = compared(torch, mindspore).judged([finding("drop", Verdict.FAIL), finding("fc", Verdict.FAIL)])
    assert (first.name, second.name) == ("drop", "drop draws")


@pytest.mark.parametrize(
    ("who", "step", "place"),
    [
        (ROOT, 0, "forward (eval) (model) draws"),
        (ROOT, 1, "forward (train) (model) draws"),
        (OUTSIDE, 1, "loss (step1) (step) draws"),
        (ROOT, 3, "update (step3 loss) (model) draws"),
    ],
)
def test_each_pass_has_its_place(who: str, step: int, place: str) -> None:
    found = compared(drawn(step, (Place(who), "normal", (3,))), drawn(step))
    assert [f.place for f in found.judged([])] == [place]


def test_every_step_is_looked_at() -> None:
    torch = [drawn(step, *[(ENCODER, "normal", (3,))] * step) for step in (1, 2, 3)]
    mindspore = [drawn(step, (ENCODER, "normal", (3,))) for step in (1, 2, 3)]
    found = Compared.of([head(*torch)], head(*mindspore), "x")
    assert [(each.name, each.step) for each in found.otherwise] == [("encoder", 2)]


def test_the_later_of_torchs_heads_counts() -> None:
    """The forward pass alone takes no draws of the loss; the step does."""
    forward, step = (
        drawn(1, (ENCODER, "normal", (3,))),
        drawn(1, (ENCODER, "normal", (3,)), (Place(OUTSIDE), "uniform", (2,))),
    )
    assert not Compared.of([head(drawn(0), forward), head(step)], head(step), "x").otherwise


def test_other_numbers_from_numpy_are_a_finding() -> None:
    torch, mindspore = Draws(1), Draws(1)
    torch.states, mindspore.states = {"numpy.random": "a"}, {"numpy.random": "b"}
    (one,) = compared(torch, mindspore).judged([])
    assert one.verdict is Verdict.FAIL and "torch takes other numbers from numpy.random" in one.why


def test_what_may_depend_on_what_was_not_fixed_has_no_verdict() -> None:
    draws = Draws(1)
    draws.not_fixed("torch.binomial", ENCODER)
    failed = [
        finding("stem", Verdict.FAIL, part="eval"),
        finding("head", Verdict.FAIL),
        finding("head.weight", Verdict.FAIL, "gradients", "parameters"),
        finding("head.weight", Verdict.FAIL, "update", "given gradients"),
        finding("head.weight", Verdict.FAIL, "init", "values"),
        finding("encoder output", Verdict.FAIL, part="alone"),
        finding("head output", Verdict.FAIL, part="alone"),
    ]
    noisy = Finding("forward", "train", "body", 0, Verdict.NONE, "noise", unjudged=Unjudged.NOISE)
    judged = compared(draws, Draws(1)).judged([*failed, noisy, finding("stem")])
    undecided = {(f.stage, f.part, f.name) for f in judged if f.verdict is Verdict.NONE}
    assert undecided == {
        ("forward", "train", "encoder draws"),
        ("forward", "train", "head"),
        ("forward", "train", "body"),
        ("gradients", "parameters", "head.weight"),
        ("forward", "alone", "encoder output"),
    }
    assert all(f.unjudged is Unjudged.DRAWS for f in judged if f.verdict is Verdict.NONE)
    assert undecided <= {(f.stage, f.part, f.name) for f in unproven(judged)}
    (own,) = [f for f in judged if f.name == "encoder draws"]
    assert "torch.binomial draws numbers in encoder (model.py, line 7)" in own.why and "--batch-file" in own.why


def test_every_module_that_draws_by_a_function_that_was_not_fixed_is_known() -> None:
    """As two attentions do in a GPU's kernel, of which float64, on the CPU, knows nothing."""
    exact, device = drawn(1, (ENCODER, "uniform", (3,)), (Place("head"), "uniform", (3,))), Draws(1)
    for who in (ENCODER, Place("head"), ENCODER):
        device.not_fixed("torch.attention", who)
    beside = Compared.of([head(exact)], head(exact), "x", [head(device)])
    for found in (compared(exact, device), beside):
        assert [(each.name, each.step) for each in found.unfixed] == [("encoder", 1), ("head", 1)]
        assert not found.otherwise


def test_a_draw_that_was_not_fixed_is_unproven_even_where_all_passes() -> None:
    draws = Draws(1)
    draws.not_fixed("torch.binomial", Place(ROOT))
    assert [f.unjudged for f in unproven(compared(draws, Draws(1)).judged([finding("a")]))] == [Unjudged.DRAWS]
    assert not compared(draws, drawn(1, (Place(ROOT), "normal", (3,)))).otherwise  # it says enough


@pytest.mark.parametrize(
    "said",
    [
        1,
        {},
        [1],
        [{}],
        [{"step": 1, "taken": [], "outside": [], "states": {}}],
        [{"step": True, "taken": [], "outside": {}, "states": {}}],
        [{"step": 1, "taken": [[["a", False, ""], "normal", [1.5], None]], "outside": {}, "states": {}}],
        [{"step": 1, "taken": [[["a", False, ""], "cauchy", [1], None]], "outside": {}, "states": {}}],
        [{"step": 1, "taken": [["a", "normal", [1], None]], "outside": {}, "states": {}}],
        None,
    ],
)
def test_a_damaged_head_is_refused(said: object) -> None:
    with pytest.raises(BadTrace, match=r"trace\.json: what it says of draws is damaged"):
        Compared.of([{KEY: said}], {}, "trace.json")
