"""A map is read with file and line for everything that is wrong with it, and never runs anything."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msmigrate.errors import BadInput
from msmigrate.migrate.checkpoint import user_map
from msmigrate.migrate.checkpoint.user_map import Names, Rule, apply, read_rules, targets, write_rules

OURS = {"layer1": True, "layer1.0": True, "layer1.0.conv": True, "layer1.0.conv.weight": False, "fc": True}
THEIRS = {"stage1", "stage1.0", "stage1.0.conv", "stage1.0.conv.weight", "end_point", "end_point.weight"}


def mapped(folder: Path, text: str) -> dict[str, str]:
    (folder / "map.yaml").write_text(text, encoding="utf-8")
    return apply(read_rules(folder / "map.yaml"), OURS, THEIRS)


def test_without_a_map_there_are_no_rules() -> None:
    assert read_rules(None) == []


def test_groups_of_the_pattern_are_filled_in(tmp_path: Path) -> None:
    found = mapped(tmp_path, r"- {torch: 'layer(\d)\.(\d)', mindspore: 'stage\1.\2'}")
    # what lies below goes along under its own name
    assert found == {f"layer1.0{end}": f"stage1.0{end}" for end in ("", ".conv", ".conv.weight")}


def test_the_first_pair_that_matches_counts(tmp_path: Path) -> None:
    found = mapped(tmp_path, "- {torch: fc, mindspore: end_point}\n- {torch: 'fc|layer1', mindspore: stage1}")
    assert found["fc"] == "end_point" and found["layer1"] == "stage1"


BAD = {
    "torch: fc": r"map\.yaml: expected a list",
    "- fc": r"map\.yaml:1: expected",
    "- {torch: fc}": r"map\.yaml:1: expected",
    "- {torch: fc, mindspore: a, why: b}": r"map\.yaml:1: expected",
    "- {torch: fc, torch: fc}": r"map\.yaml:1: .* the key 'torch' is here twice",
    "- {torch: [fc], mindspore: a}": r"map\.yaml:1: expected",
    "\n- {torch: '(', mindspore: a}": r"map\.yaml:2: '\(' is no regular expression",
    "- {torch: fc, mindspore: 'endpoint'}": r":1: fc would be 'endpoint', .*the nearest: end_point",
    "- {torch: fc, mindspore: '\\1'}": r":1: .* does not fit its pattern",
    "- {torch: 'fd', mindspore: end_point}": r":1: 'fd' matches no name of the torch model; the nearest: fc",
    "- {torch: 'fc|layer1', mindspore: end_point}": r"layer1 and fc would both be end_point",
    "- {torch: !!python/object/apply:os.system ['true'], mindspore: a}": r"map\.yaml:1: .* tags",
    "a: &a [*a]": r"map\.yaml:1: .* aliases are not read",
    "- {torch: 'x": r"map\.yaml:1: not YAML that a map of names may hold: .* unexpected end of stream",
    "\0": r"map\.yaml: not YAML that a map of names may hold: .* control characters are not allowed",
    "[" * 30_000: r"map\.yaml:1: .* nested more than 20 deep",
}


@pytest.mark.parametrize("text", BAD)
def test_a_bad_map_is_one_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadInput, match=BAD[text]) as refused:
        mapped(tmp_path, text)
    assert "\n" not in str(refused.value)


ENDLESS = {  # patterns, and why they are refused
    r"(a+)+": "takes longer than",
    r"(a|a)*": "takes longer than",
    r"(\w+\.?)+\d": "takes longer than",
    r"(.*)*\1\1\1\1x": "takes longer than",
    r"((?:){65000}){65000}": "takes (longer than|too much memory)",
}


@pytest.mark.parametrize("pattern", ENDLESS)
def test_a_pattern_without_end_is_named_and_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    monkeypatch.setattr(user_map, "SECONDS", 1.0)
    (tmp_path / "map.yaml").write_text(f"- {{torch: fc, mindspore: a}}\n- {{torch: '{pattern}b', mindspore: b}}\n")
    rules = read_rules(tmp_path / "map.yaml")
    long = "a" * 60 + "!"
    for match in (lambda: apply(rules, {"fc": False, long: True}, {"a"}), lambda: Names(rules).match([long])):
        with pytest.raises(BadInput, match=rf"map\.yaml:2: {re.escape(repr(pattern + 'b'))} {ENDLESS[pattern]}"):
            match()


MISTAKES = {
    "- {torch: a, mindspor: b}": r":1: expected \{torch: REGEX, mindspore: NAME\}, and no 'mindspor'",
    "- {torch: a, mindspore: b, tensors: all}": ":1: expected .* tensors only: none",
    "- {torch: a, mindspore: x}\n- {torch: b, mindspore: x}": ":2: 'x' is already the target of line 1",
    "torch: mindspore": "expected a list of",
    "- {torch: a, mindspore: [": ":2: not YAML",
    "- {torch: 'a(', mindspore: b}": ":1: .* is no regular expression",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_in_a_maps_form_is_told_with_its_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "map.yaml").write_text(text)
    with pytest.raises(BadInput, match=r"map\.yaml" + MISTAKES[text] if text[0] == "-" else MISTAKES[text]):
        read_rules(tmp_path / "map.yaml")


def test_patterns_with_groups_may_lead_to_one_name_each(tmp_path: Path) -> None:
    (tmp_path / "map.yaml").write_text("- {torch: '(a)', mindspore: 'x\\1'}\n- {torch: '(b)', mindspore: 'x\\1'}\n")
    assert len(read_rules(tmp_path / "map.yaml")) == 2


def test_patterns_that_take_long_to_read_are_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_map, "SECONDS", 0.5)
    pattern = "(?i)" + r"[\x00-\U0010ffff]" * 50
    lines = [f"- {{torch: '{pattern}{i}', mindspore: a}}\n" for i in range(1000)]  # each another one: re keeps them
    (tmp_path / "map.yaml").write_text("".join(lines))
    with pytest.raises(BadInput, match=r"map\.yaml:\d+: up to here the patterns take longer"):
        read_rules(tmp_path / "map.yaml")


def test_a_name_that_was_not_matched_with_the_others_is_matched_when_it_comes(tmp_path: Path) -> None:
    (tmp_path / "map.yaml").write_text(r"- {torch: 'a(\d)', mindspore: 'b\1'}")
    names = Names(read_rules(tmp_path / "map.yaml"))
    names.match(["a1.x.weight"])
    assert (names.path("a1.x"), names.path("a2.x"), names.path("c")) == ("b1.x", "b2.x", "c")


def test_a_map_that_is_not_there_or_no_text(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00" * 9)
    for path in (tmp_path / "nowhere", tmp_path, tmp_path / "binary"):
        with pytest.raises(BadInput):
            read_rules(path)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.one_of(st.binary(max_size=80), st.text(alphabet="-{}[]&*!'\"\\:, torchmindspore()\n1.", max_size=80)))
def test_anything_at_all_is_a_map_or_bad_input(tmp_path: Path, content: bytes | str) -> None:
    path = tmp_path / "map.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    try:
        apply(read_rules(path), OURS, THEIRS)
    except BadInput as error:
        assert "\n" not in str(error)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=st.lists(st.text(alphabet="ab.\\'+*1 $", min_size=1, max_size=8), min_size=1, max_size=5, unique=True))
def test_what_is_written_means_what_was_aligned(tmp_path: Path, names: list[str]) -> None:
    path = tmp_path / "map.yaml"
    write_rules(path, [(name, name[::-1], "order, likely") for name in names])
    found = targets(read_rules(path), names)
    assert {name: target for name, (_, target) in found.items()} == {name: name[::-1] for name in names}


def test_a_map_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be written"):
        write_rules(tmp_path, [])


def test_layers_without_tensors_are_passed_over_where_a_checkpoint_is_converted(tmp_path: Path) -> None:
    """parity-step writes them, for they are aligned too; only what has tensors can be missing in a checkpoint."""
    path = tmp_path / "map.yaml"
    write_rules(path, [("maxpool", "pool", "name"), ("fc", "head", "order")], {"maxpool"})
    assert path.read_text().count("tensors: none") == 1
    rules = read_rules(path)
    assert [rule.bare for rule in rules] == [True, False]
    names = Names(rules)
    assert names.path("fc") == "head" and names.path("maxpool") == "maxpool"
    names.check(["fc.weight"])
    assert {name: target for name, (_, target) in targets(rules, ["maxpool", "fc"]).items()} == {
        "maxpool": "pool",
        "fc": "head",
    }


def test_tensors_says_none_or_nothing(tmp_path: Path) -> None:
    (tmp_path / "map.yaml").write_text("- {torch: 'a', mindspore: 'b', tensors: some}\n")
    with pytest.raises(BadInput, match=r"expected \{torch: REGEX, mindspore: NAME\}"):
        read_rules(tmp_path / "map.yaml")


def test_a_module_around_mapped_ones_is_no_rule_that_matches_nothing(tmp_path: Path) -> None:
    write_rules(tmp_path / "map.yaml", [("layer1", "stage1", "name"), ("layer1.0", "stage1.b", "order")])
    names = Names(read_rules(tmp_path / "map.yaml"))
    names.match(["layer1.0.weight"])
    assert names.path("layer1.0") == "stage1.b"
    names.check(["layer1.0.weight"])
    with pytest.raises(BadInput, match="matches no name of the checkpoint"):
        names = Names([*read_rules(tmp_path / "map.yaml"), Rule("layer9", "x", 9, tmp_path)])
        names.match(["layer1.0.weight"])
        names.check(["layer1.0.weight"])
