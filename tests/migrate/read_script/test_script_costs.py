"""A small script is read in seconds and in little memory, whatever grows in it with every line."""

from __future__ import annotations

import time
from pathlib import Path

import fuzz_check
import pytest
from msmigrate import input_files
from msmigrate.errors import BadInput
from msmigrate.migrate.analyze.script_analysis import analyze_script
from msmigrate.migrate.recipe_draft.draft import draft_recipe
from msmigrate.reports import script_analysis

MEMORY = 500 << 20
SECONDS = 15  # of the processor; the slowest takes four, and one that grows with the square would take minutes
LAYER = "torch.nn.ReLU()"
BASES = "".join(f"class C{i}({', '.join([f'C{i - 1}'] * 10) if i else 'torch.nn.Module'}): pass\n" for i in range(11))
LOOPS = "".join(f"{' ' * depth}for i{depth} in range(16):\n" for depth in range(5))
COSTLY = {
    "a list of lists of lists": "[[[[1]*9999]*9999]*9999]\n",
    "a list that doubles in place": "a = [1]\n" + "a += a\n" * 60,
    "a list that doubles": f"a = [{LAYER}]\n" + "a = a + a\n" * 60 + "torch.nn.Sequential(*a)\n",
    "a list that is unpacked twice": "a = [1]\n" + "a = [*a, *a]\n" * 60,
    "a list extended by itself": "a = [1]\n" + "a.extend(a)\n" * 60,
    "a list that holds one list twice": "a = [1]\n" + "a = [a, a]\n" * 60 + "a == a\n",
    "a list that holds one list often": "a = [1]\n" + f"a = [{'a, ' * 20}]\n" * 14,
    "a dict that holds one dict twice": "a = {'x': 1}\n" + "a = {'x': a, 'y': a}\n" * 60 + "a == a\n",
    "a list in itself": "a = [1]\na.append(a)\na.append(a)\na == a\n",
    "a dict in itself": "a = {}\na['x'] = a\na == a\ntorch.nn.Linear(a, a)\n",
    "a text that doubles": "a = 'x' * 9000\n" + "a = f'{a}{a}'\n" * 60,
    "texts that are joined": "a = ['x' * 9999] * 9999\n" + "','.join(a)\n" * 300,
    "large lists compared": "a = [1] * 9999\n" + "a == a\n" * 20_000,
    "lists added up": "a = [[1] * 100] * 99\n" + "sum(a, [])\n" * 10_000,
    "a number rounded": "round(5, -10**18)\n",
    "bases of bases": BASES + "C10().foo()\nC10.foo\n",
    "loops in loops": LOOPS + " " * 5 + "pass\n" * 1,
    "loops in loops in loops": LOOPS + "".join(f"     for j{i} in range(16): pass\n" for i in range(40)),
    "names and conditions": "".join(f"a{i} = 1\n" for i in range(20_000)) + "if x: pass\n" * 20_000,
    "all names of many modules": "".join(f"from a{i} import *\n" for i in range(20_000)) + "b\n" * 20_000,
    "a large class of which many are made": "class A:\n"
    + "".join(f" a{i} = 1\n" for i in range(4000))
    + "A()\n" * 20_000,
    "one long line": "torch.ones(1);" * 20_000,
    "a long condition": f"if f({'b, ' * 60_000}):\n if c:\n" + "  torch.ones(1)\n" * 6000,
    "many files that are not there": "".join(f"import a{i}\n" for i in range(40_000)),
    "large defaults": "a = [1] * 9999\ndef f(" + "".join(f"x{i}=a, " for i in range(9000)) + "): pass\nf(1)\n",
    "calls in calls around much": "torch.ones(\n" * 50 + "b," * 40_000 + ")" * 50 + "\n",
    "functions": "".join(f"def f{i}(): pass\n" for i in range(20_000)),
}


SLOWEST = (
    *("a long condition", "names and conditions", "large lists compared", "many files that are not there"),
    *("one long line", "all names of many modules", "calls in calls around much"),
)


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.full if n in SLOWEST else ()) for n in COSTLY])
def test_a_script_whose_values_grow_is_read_all_the_same(name: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\n" + COSTLY[name])
    (tmp_path / "sound.py").write_text("import torch\ntorch.ones(1)\n")
    analyze_script(tmp_path / "sound.py")  # what is read once for all is not the script's
    resident = fuzz_check.forget_peak()
    with fuzz_check.limits(MEMORY, SECONDS):
        analysis = analyze_script(tmp_path / "train.py")
        draft_recipe(analysis)
        script_analysis.as_json(analysis)
    assert fuzz_check.peak() - resident < MEMORY


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("a;" * 1_000_000, "more than 400,000 words and signs"),
        (f"a = ({'1,' * 500_000})", "more than 400,000 words and signs"),
        (f"a = f'{'{x}' * 30_000}'", "more than 20,000 braces"),  # Python itself takes quadratic time
    ],
)
def test_more_python_than_any_file_has_is_not_made_a_tree_of(content: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(f"import torch\n{content}\n")
    started = time.process_time()
    with pytest.raises(BadInput, match=says):
        analyze_script(tmp_path / "train.py")
    assert time.process_time() - started < 2


def test_what_is_not_read_to_its_end_is_said(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\n" + "torch.ones(1)\n" * 13_000)
    assert "too much to follow to its end" in "".join(analyze_script(tmp_path / "train.py").unreadable)
    (tmp_path / "train.py").write_text("import torch\n" + "torch.ones(1)\n" * 3000)
    assert analyze_script(tmp_path / "train.py").unreadable == ()


def test_pythons_own_files_are_no_more_than_a_file_may_have() -> None:
    content = Path(pytest.__file__).with_name("__init__.py").read_bytes()
    assert input_files.python_tree(content).body
