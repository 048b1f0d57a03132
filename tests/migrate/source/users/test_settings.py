"""Objects of settings at the top of a file: `cfg = EasyDict()`, whose values other statements give."""

from __future__ import annotations

from written import Written

Users = dict[str, Written]
WHOLE = "{'wide': 4, 'layer': {'depth': 2}, 'rates': [0.5, 2.0], 'seen': 0}"


def test_settings_that_statements_fill_are_written_as_they_are_before_the_model_runs(users: Users) -> None:
    """Every model that reads such an object was refused: "Net uses cfg, which could not be written"."""
    found = users["by_entries"]
    found.agrees()
    found.holds(f"__C = {WHOLE}", "entries = __C", "entries['seen'] += 1", "Layers(entries['wide'], entries['layer']")
    found.holds("rate=entries['rates'][0], depth=named.layer.depth, more=[here['wide']] * 2")


def test_settings_of_other_kinds(users: Users) -> None:
    found = users["by_other_settings"]
    found.agrees()
    found.holds("merged = {'wide': 4, 'rates': [0.5, 2.0], 'layer': {'depth': 2}}")
    found.holds("named = SimpleNamespace(wide=4, rates=[0.5, 2.0], layer=SimpleNamespace(depth=2))")
    found.holds("parsed = Namespace(wide=4, rates=[0.5, 2.0], layer=Namespace(depth=2))")
    found.holds("plain = SimpleNamespace(rates=(0.5, 2.0), wide=4, layer=SimpleNamespace(depth=2))")
    found.holds("entries.get('other', 3)")


def test_branches_that_did_not_run_read_the_same_settings(users: Users) -> None:
    found = users["by_settings_here"]
    found.agrees()
    found.holds("here['wide'] = here['wide'] * factor", "here['part']['kind'] = 'tanh'", "ops.tanh(layer(x))")
    (listed,) = found.source.left_out
    assert listed.text == "not rough and here.lacking cannot be written, and is assumed to be as in the run"
