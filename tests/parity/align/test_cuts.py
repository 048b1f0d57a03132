"""What one net has whole and the other in parts: found, compared as torch has it, and wrong only where it is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from msmigrate.errors import BadInput
from msmigrate.migrate.checkpoint.user_map import Names, read_rules
from msmigrate.parity.align.alignment import Alignment, Cut, check, map_lines
from msmigrate.parity.align.match_layers import align
from msmigrate.parity.align.model_structure import cut_otherwise, same_but_cut
from msmigrate.parity.job import Pair, ParityJob
from msmigrate.parity.result import Outcome, Report
from msmigrate.parity.run import parity_step
from msmigrate.parity.tensor_verdict import Verdict
from msmigrate.training.recipe import reader as recipes
from structures import Layer, structure

HERE = Path(__file__).parent
MORE: dict[str, Any] = {
    "optimizer": {
        "name": "AdamW",
        "args": {"lr": 0.01, "weight_decay": 0.1},
        "no_weight_decay": ["bias"],
        "groups": [{"params": ["blocks.0.attn.qkv.*", "left.*", "right.*"], "args": {"lr": 0.003}}],
    },
    "clip": {"max_norm": 0.5},
    "accumulate": 2,
    "loss_scale": 64.0,
    "ema": {"decay": 0.9},
}
ADAM = {**MORE, "optimizer": {"name": "Adam", "args": {"lr": 0.01}}}


def run(folder: Path, torch: str, mindspore: str, recipe: dict[str, Any] | None = None, **options: Any) -> Report:
    """The report on a pair of cut_torch.py and cut_mindspore.py."""
    file = folder / "recipe.yaml"
    file.write_text(yaml.safe_dump({**yaml.safe_load((HERE / "pair.yaml").read_text()), **(recipe or {})}))
    pair = Pair(f"{HERE}/cut_torch.py:{torch}", f"{HERE}/cut_mindspore.py:{mindspore}", options.pop("map_file", None))
    options = {"steps": 2, "init_seeds": 1, **options}
    return parity_step(file, ParityJob(recipes.load(file), folder / "traces", pair=pair, **options))


def failed(report: Report) -> list[str]:
    return [finding.place for finding in report.findings if finding.verdict is Verdict.FAIL]


def test_what_is_cut_otherwise_is_compared_as_torch_has_it(tmp_path: Path) -> None:
    """A packed projection, half a one, a gate, a convolution, two layers for one; with all that a recipe does to
    gradients and weights."""
    report = run(tmp_path, "cut()", "cut()", MORE)
    assert report.outcome is Outcome.PARITY, failed(report)
    judged = {(f.stage, f.part, f.name) for f in report.findings if f.verdict is Verdict.PASS}
    names = {"blocks.0.attn.qkv.weight", "blocks.1.attn.to_kv.weight", "left.weight", "right.weight", "stem.weight"}
    for name in sorted(names):
        for stage, part in (
            ("init", "values"),
            ("init", "distribution"),
            ("gradients", "parameters"),
            ("gradients", "given micro-batches"),
            ("update", "given norms"),
            ("update", "given gradients"),
            ("update", "step2"),
            ("update", "step2 exp_avg_sq"),
            ("update", "step2 ema"),
            ("update", "learning rate and weight decay"),
        ):
            assert (stage, part, name) in judged, (stage, part, name, sorted({p for s, p, _ in judged if s == stage}))
    assert ("gradients", "alone", "(model) left.weight.grad") in judged
    assert any("cut otherwise" in note and "(and 10 more such)" in note for note in report.notes)
    assert not report.unproven


@pytest.mark.parametrize(
    ("torch", "mindspore", "options"),
    [
        pytest.param("stacked()", "apart()", {"no_replay": True}, marks=pytest.mark.full),
        pytest.param("apart()", "stacked()", {}, marks=pytest.mark.full),
        pytest.param("torchs()", "three()", {"recipe": ADAM}, marks=pytest.mark.full),
        pytest.param("cut()", "cut()", {"mode": "graph", "no_replay": True}, marks=pytest.mark.full),
        pytest.param("step()", "step()", {}, marks=pytest.mark.full),
    ],
)
def test_such_nets_agree(torch: str, mindspore: str, options: dict[str, Any], tmp_path: Path) -> None:
    found = [place for place in failed(run(tmp_path, torch, mindspore, **options)) if "distribution" not in place]
    assert not found, found


WRONG = "blocks.0.attn.qkv.weight made of wq.weight, wv.weight, wk.weight, in this order"
TURNED = "layers.0.mixer.mix.weight made of key.weight, value.weight, query.weight, in this order"


@pytest.mark.parametrize(
    ("torch", "mindspore", "cause"),
    [
        ("packed()", "swapped()", WRONG),
        pytest.param("packed()", "scaled()", "", marks=pytest.mark.full),
        pytest.param("three()", "turned()", TURNED, marks=pytest.mark.full),
    ],
)
def test_what_is_wrong_with_it_has_its_place_and_cause(torch: str, mindspore: str, cause: str, tmp_path: Path) -> None:
    report = run(tmp_path, torch, mindspore, steps=1)
    assert {found.place for found in report.causes} == {"blocks.0.attn"}
    assert not [place for place in failed(report) if place.startswith("init (values)")]
    assert not cause or cause in report.causes[0].text, report.causes


@pytest.mark.full
@pytest.mark.parametrize(("torch", "mindspore"), [("packed()", "untold()"), ("three()", "turned()")])
def test_the_map_that_the_report_prints_settles_it(torch: str, mindspore: str, tmp_path: Path) -> None:
    """Where no name says what the parts are, the order in which they run is a guess."""
    folders = [tmp_path / name for name in ("guessed", "mapped")]
    for folder in folders:
        folder.mkdir()
    (cause,) = run(folders[0], torch, mindspore, steps=1).causes
    lines = re.findall(r"\{torch: '[^']*', mindspore: '[^']*'\}", cause.fix)
    file = folders[1] / "map.yaml"
    file.write_text("".join(f"- {line}\n- {line.replace('weight', 'bias')}\n" for line in lines))
    report = run(folders[1], torch, mindspore, steps=1, map_file=file)
    assert report.outcome is Outcome.PARITY, failed(report)


def net(attention: Sequence[Layer], name: str, behind: str) -> list[Layer]:
    return [
        Layer(f"{name}.norm", "LayerNorm", "x", "a"),
        *attention,
        Layer(f"{name}.{behind}", "Linear", "m", "c"),
        Layer("head", "Linear", "d", "y", 5, (2, 5)),
    ]


def three(*names: str) -> list[Layer]:
    return net([Layer(f"own.{name}", "Linear", "a", name) for name in names], "own", "out")


PACKED = net([Layer("at.mix", "Linear", "a", "b", 24)], "at", "end")


@pytest.mark.parametrize(
    "names", [("to_q", "to_k", "to_v"), ("value_proj", "query_proj", "key_proj"), ("l1", "l2", "l3")]
)
def test_parts_stand_in_the_order_that_their_names_say(names: tuple[str, ...]) -> None:
    """The layer behind them, of one shape with each, is told from them by what it gets."""
    found = align(structure("torch", PACKED), structure("mindspore", three(*names)), [])
    by_role = sorted(names, key=lambda name: "qkv".find(re.sub("to_", "", name)[0])) if names[0] != "l1" else names
    assert not found.unlike and not found.ask
    assert [(cut.torch, cut.mindspore) for cut in found.cuts] == [
        ((f"at.mix.{leaf}",), tuple(f"own.{name}.{leaf}" for name in by_role)) for leaf in ("weight", "bias")
    ]
    back = align(structure("torch", three(*names)), structure("mindspore", PACKED), [])
    assert [cut.torch for cut in back.cuts] == [cut.mindspore for cut in found.cuts]


def test_nets_that_have_nothing_else_in_common_are_compared() -> None:
    parts = [Layer(name, "Linear", "a", name) for name in "qkv"]
    more = Layer("more", "Linear", "b", "c", 5, (2, 5))  # and one that torch's has not
    found = align(
        structure("torch", [Layer("mix", "Linear", "a", "b", 24)]), structure("mindspore", [*parts, more]), []
    )
    assert found.cuts and found.unlike and not found.parameters
    check(found)


def test_a_map_says_another_order_and_has_to_fill_the_whole(tmp_path: Path) -> None:
    torch, mindspore = structure("torch", PACKED), structure("mindspore", three("a", "b", "c"))
    file = tmp_path / "map.yaml"

    def mapped(text: str) -> Alignment:
        file.write_text(text)
        return align(torch, mindspore, read_rules(file))

    found = mapped(r"- {torch: 'at\.mix\.(\w+)', mindspore: 'own.c.\1 + own.a.\1 + own.b.\1'}")
    assert {cut.mindspore for cut in found.cuts} == {
        tuple(f"own.{name}.{leaf}" for name in "cab") for leaf in ("weight", "bias")
    }
    again = mapped("".join(f"- {line}\n" for cut in found.cuts for line in map_lines(cut)))
    assert again.cuts == found.cuts
    for torchs, its, said in (
        (r"at\.mix\.weight", "own.a.weight + own.b.weight", "do not fill each other"),
        (r"at\.mix\.weight", "own.a.weight + own.x.weight", "'own.x.weight', which the MindSpore net does not have"),
        (r"at\.mix", "own.a + own.b + own.c", "at.mix is a module"),
        (r"at\.end\.weight", "own.a.weight [2 of 2]", "of own.a.weight the map has only 2 of 2"),
    ):
        with pytest.raises(BadInput, match=re.escape(said)):
            mapped(f"- {{torch: '{torchs}', mindspore: '{its}'}}")
    names = Names(read_rules(file))
    with pytest.raises(BadInput, match="for parity-step"):
        names.tensor("at.end.weight")


def test_parts_are_none_where_every_tensor_has_its_like() -> None:
    eight, four = (8, 8), (4, 8)
    assert not [*cut_otherwise([("a", eight), ("b", four), ("c", four)], [("x", four), ("y", four), ("z", eight)])]
    assert [*cut_otherwise([("a", eight), ("b", four)], [("x", four), ("y", four), ("z", four)])] == [
        (("a",), ("x", "y"), (eight, 0, (4, 4)))
    ]
    assert same_but_cut([(24, 8), (24,), (8, 8), (8,)], [(8, 8), (8,)] * 4)
    assert not same_but_cut([(24, 8), (24,), (8, 8), (8,)], [(8, 8), (8,)] * 3 + [(16, 4), (8,)])


@given(st.data())
def test_values_come_back_as_they_went(data: st.DataObject) -> None:
    sizes = tuple(data.draw(st.lists(st.integers(1, 4), min_size=2, max_size=4)))
    rest, axis = data.draw(st.lists(st.integers(1, 3), max_size=2)), 0
    axis = data.draw(st.integers(0, len(rest)))
    shape = (*rest[:axis], sum(sizes), *rest[axis:])
    parts, whole = tuple(f"p{i}" for i in range(len(sizes))), ("w",)
    cut = Cut(*data.draw(st.sampled_from([(parts, whole), (whole, parts)])), "Linear", shape, axis, sizes)
    found = Alignment(cuts=(cut,))
    values = dict(
        zip(
            cut.torch,
            (np.random.default_rng(0).normal(size=s) for s in (cut.part_shapes if len(cut.torch) > 1 else (shape,))),
            strict=True,
        )
    )
    there = found.as_mindspore({"other": np.ones(1), **values})
    assert [*there] == ["other", *cut.names] and [there[name].shape for name in cut.names] == [*cut.shapes]
    back = found.as_torch(there)
    assert all(np.array_equal(back[name], values[name]) for name in values) and [*back] == ["other", *values]
    assert [*found.as_torch({cut.names[0]: there[cut.names[0]]})] == ([*cut.torch] if len(cut.names) == 1 else [])
