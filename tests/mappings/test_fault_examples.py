"""Every line of the fault pages runs: the wrong one goes wrong, and the right one is right.

What the lines need, and which of them are exempt from what, stands in example_names.yaml.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from msmigrate.mappings import table
from selected import named

HERE = Path(__file__).parent
LABELS = ("torch", "wrong", "right")
KEYS = {"given", "torch", "mindspore", "show", "tolerance", "both", "check", "skip", "raises", "runs", "alike", "other"}
TOLERANCE = 4e-6  # of the largest value: what float32 rounds in a few operations


def read() -> dict[str, dict[str, Any]]:
    """What each fault's lines need, the names of its group and those of all included."""
    data = yaml.safe_load((HERE / "example_names.yaml").read_text(encoding="utf-8"))
    found: dict[str, dict[str, Any]] = {name: {} for name in table.faults()}
    groups: dict[str, dict[str, Any]] = {name: {} for name in found}
    for group in data["groups"]:
        for name, entry in group["faults"].items():
            assert name in found and not found[name], name
            assert set(entry) <= KEYS, name
            found[name], groups[name] = entry, group
    for name, entry in found.items():
        levels = (data, groups[name], entry)
        names = {
            framework: {
                key: source
                for level in levels
                for part in ("given", framework)
                for key, source in level.get(part, {}).items()
            }
            for framework in ("torch", "mindspore")
        }
        found[name] = {
            "show": groups[name].get("show", {}),
            "tolerance": groups[name].get("tolerance"),
            **entry,
            **names,
        }
    return found


NEEDS = read()
QUICK = [*table.faults()][::3]  # a quick run has every third


def asked(framework: str, name: str) -> dict[str, Any]:
    """What a worker is asked of one fault."""
    needs, show = NEEDS[name], NEEDS[name]["show"]
    lines = {
        label: source
        for label, source in zip(LABELS, table.examples()[name], strict=True)
        if source != "-" and label not in needs.get("skip", {}) and (label == "torch") == (framework == "torch")
    }
    if framework == "torch" and "both" in needs:
        lines["both"] = needs["both"]
    shown = show if isinstance(show, dict) else {"torch": show, "mindspore": show}
    return {
        "given": needs[framework],
        "lines": lines,
        "show": {label: shown.get(label, shown.get(framework)) for label in lines},
    }


def answers(folder: Path, framework: str, names: set[str]) -> dict[str, dict[str, Any]]:
    """What the lines of these faults in one framework yield; those of a check once more, on what it is to pass on."""
    questions = {name: asked(framework, name) for name in NEEDS if name in names}
    if framework == "mindspore":
        for name, needs in NEEDS.items():
            if "check" in needs and name in names:
                source = {"right": table.examples()[name][2]}
                given = {**needs["mindspore"], **needs["check"]}
                questions[f"{name}: passes"] = {"given": given, "lines": source, "show": {"right": "None"}}
    file = folder / f"{framework}.json"
    file.write_text(json.dumps(questions), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, HERE / f"{framework}_examples.py", file],
        cwd=folder,
        env={"ONEDNN_MAX_CPU_ISA": "AVX2", **os.environ},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def yields(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    folder, names = tmp_path_factory.mktemp("examples"), named(request)
    torch, mindspore = (answers(folder, framework, names) for framework in ("torch", "mindspore"))
    return {name: {**torch.get(name, {}), **found} for name, found in mindspore.items()}


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.full] * (n not in QUICK)) for n in NEEDS])
def test_lines_run_as_the_fault_says(yields: dict[str, dict[str, Any]], name: str) -> None:
    found, wrongs = yields[name], complaints(name, yields)
    assert not wrongs, f"{wrongs}\n{table.examples()[name]}\n{json.dumps(found)[:2000]}"


def complaints(name: str, yields: dict[str, dict[str, Any]]) -> list[str]:
    """What is not as the fault says."""
    needs, found, fault = NEEDS[name], yields[name], table.faults()[name]
    stops: dict[str, list[str]] = {label: [words] for label, words in needs.get("raises", {}).items()}
    if "crash" in fault.shows_in and "runs" not in needs:
        stops["wrong"] = re.findall(r"\b[A-Z]\w*Error\b", fault.symptom)
    if "check" in needs:
        stops["right"] = ["AssertionError"]
    said = [f"{label} stops" for label, one in found.items() if "error" in one and label not in stops]
    for label, words in ((label, words) for label, words in stops.items() if label in found):
        error = found[label].get("error", "")
        if not error or (words and not any(word in error for word in words)):
            said.append(f"{label} does not stop with {' or '.join(words) or 'an error'}: {error}")
    if "check" in needs:
        said += ["the check stops where it should pass"] * ("error" in yields[f"{name}: passes"]["right"])
    tolerance = needs["tolerance"] or TOLERANCE
    values = {label: one["value"] for label, one in found.items() if "value" in one}
    for other in {"right", "torch"} & set(values) if "wrong" in values else ():
        if same(values["wrong"], values[other], tolerance) != ("alike" in needs):
            said.append(f"wrong yields {'another value than' if 'alike' in needs else 'what'} {other}")
    goal = "both" if "both" in needs else "torch"
    if {goal, "right"} <= set(values) and same(values[goal], values["right"], tolerance) == ("other" in needs):
        said.append(f"right yields {'what' if 'other' in needs else 'another value than'} torch")
    return said


def same(one: Any, other: Any, tolerance: float) -> bool:
    """Whether two values of lines have one structure, and numbers that are alike."""
    if isinstance(one, list) and isinstance(other, list):
        try:
            a, b = np.array(one, float), np.array(other, float)
        except (TypeError, ValueError):  # a list of arrays, or of words
            return len(one) == len(other) and all(same(x, y, tolerance) for x, y in zip(one, other, strict=True))
        if a.shape != b.shape:
            return False
        largest = np.max(np.abs(b), initial=0, where=np.isfinite(b))
        return np.allclose(a, b, rtol=0, atol=tolerance * largest, equal_nan=True)
    if isinstance(one, int | float) and isinstance(other, int | float):
        return same([one], [other], tolerance)
    return bool(one == other)
