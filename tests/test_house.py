"""The house keeps its shape: imports run one way, no file knows both frameworks, and what stands here is installed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import house_rules as rules
import msmigrate
import pytest

CHECKOUT = Path(__file__).parent.parent

PYPROJECT = """
[project]
dependencies = ["click>=8.1", "numpy", "torch", "mindspore"]
[tool.setuptools]
packages = ["msmigrate", "msmigrate.mappings", "msmigrate.migrate", "msmigrate.training", "msmigrate.recipes"]
[tool.setuptools.package-data]
msmigrate = ["py.typed"]
"msmigrate.recipes" = ["*.yaml"]
"""

# A small house that keeps every rule.
SOUND = {
    "pyproject.toml": PYPROJECT,
    "py.typed": "",
    "recipes/resnet50.yaml": "",
    "__init__.py": "",
    "errors.py": "",
    "cli.py": "import click\nfrom . import errors\ndef main():\n    from .migrate import convert",
    "mappings/__init__.py": "",
    "mappings/table.py": "from ..errors import BadInput",
    "migrate/__init__.py": "",
    "migrate/convert.py": "import numpy\nfrom ..mappings import table\nfrom . import plan",
    "migrate/plan.py": "def classes():\n    from . import torch_classes",
    "migrate/torch_classes.py": "import torch.nn",
    "training/__init__.py": "",
    "training/mindspore_step.py": "from mindspore import nn\nfrom ..mappings.table import row",
    **{f"tests/{room}/test_{room}.py": "" for room in rules.ROOMS},
}

# What breaks it: the rule, the files that differ (None: gone), and what the complaint says.
BROKEN = [
    (rules.imports_run_one_way, {"mappings/table.py": "from ..migrate import plan"}, "mappings/table.py:1: mappings"),
    (
        rules.imports_run_one_way,
        {"mappings/table.py": "x = 1\nfrom .. import training"},
        "table.py:2: mappings imports",
    ),
    (
        rules.imports_run_one_way,
        {"migrate/plan.py": "def f():\n    from ..training.step import run"},
        "migrate/plan.py:2",
    ),
    (rules.imports_run_one_way, {"migrate/plan.py": "import msmigrate.parity.trace"}, "msmigrate.parity.trace, which"),
    (rules.imports_run_one_way, {"migrate/plan.py": "from msmigrate.cli import main"}, "imports msmigrate.cli.main"),
    (rules.imports_run_one_way, {"migrate/plan.py": "W = 'msmigrate.parity.torch_worker'"}, "migrate/plan.py:1"),
    (rules.imports_run_one_way, {"errors.py": "from .mappings import table"}, "errors.py:1: errors imports"),
    (
        rules.no_imports_run_in_a_circle,
        {"migrate/plan.py": "if TYPE_CHECKING:\n    from .convert import Result"},
        "msmigrate.migrate.convert → msmigrate.migrate.plan → msmigrate.migrate.convert",
    ),
    (
        rules.no_imports_run_in_a_circle,
        {"mappings/table.py": "def f():\n    from . import rows", "mappings/rows.py": "from .table import row"},
        "msmigrate.mappings.rows → msmigrate.mappings.table → msmigrate.mappings.rows",
    ),
    (
        rules.no_file_knows_both_frameworks,
        {"migrate/plan.py": "import torch, mindspore"},
        "mindspore (line 1) and torch",
    ),
    (
        rules.no_file_knows_both_frameworks,
        {"tests/training/test_training.py": "import torchvision\ndef f():\n    from mindspore import nn"},
        "tests/training/test_training.py imports mindspore (line 3) and torch (line 1)",
    ),
    (rules.no_file_knows_both_frameworks, {"benchmarks/b.py": "import mindspore\nimport torch"}, "benchmarks/b.py"),
    (
        rules.no_file_knows_both_frameworks,
        {"training/both.py": "from ..migrate import torch_classes\nfrom .mindspore_step import step"},
        "msmigrate.training.both → msmigrate.training.mindspore_step → mindspore",
    ),
    (
        rules.only_the_named_load_a_framework,
        {"migrate/plan.py": "from . import torch_classes"},
        "msmigrate.migrate.convert → msmigrate.migrate.plan → msmigrate.migrate.torch_classes → torch",
    ),
    (
        rules.only_the_named_load_a_framework,
        {"cli.py": "try:\n    import mindspore\nfinally: pass"},
        "cli loads mindspore",
    ),
    (rules.only_the_named_load_a_framework, {"migrate/__init__.py": "import torch"}, "msmigrate.migrate.convert loads"),
    (rules.imports_inside_are_relative, {"cli.py": "def f():\n    from msmigrate.migrate import plan"}, "cli.py:2"),
    (rules.imports_inside_are_relative, {"migrate/plan.py": "import msmigrate.errors"}, "migrate/plan.py:1"),
    (rules.everything_is_packaged, {"parity/__init__.py": ""}, "parity/ is not in"),
    (rules.everything_is_packaged, {"training/deep/__init__.py": ""}, "training/deep/ is not in"),
    (rules.everything_is_packaged, {"mappings/layers.yaml": ""}, "mappings/layers.yaml is not in"),
    (rules.everything_is_packaged, {"pyproject.toml": PYPROJECT.replace("py.typed", "x")}, "py.typed is not in"),
    (
        rules.everything_is_packaged,
        {"pyproject.toml": PYPROJECT.replace("*.yaml", "r.yaml")},
        "recipes/resnet50.yaml is",
    ),
    (rules.dependencies_are_those_imported, {"cli.py": "import yaml"}, "cli.py:1 imports pyyaml"),
    (rules.dependencies_are_those_imported, {"migrate/convert.py": ""}, "lists numpy, which nothing imports"),
    (
        rules.what_has_to_be_ended_begins_in_one_place,
        {"migrate/plan.py": "import subprocess\ndef f():\n    subprocess.run(['x'])"},
        "migrate/plan.py:3: subprocess.run is for processes.py alone",
    ),
    (
        rules.what_has_to_be_ended_begins_in_one_place,
        {"migrate/plan.py": "from tempfile import mkdtemp\nx = mkdtemp()"},
        "migrate/plan.py:2: mkdtemp is for temporary.py alone",
    ),
    (rules.no_file_is_long, {"migrate/plan.py": "x = 1\n" * 601}, "migrate/plan.py has 601 lines"),
    (rules.the_rooms_are_mirrored_by_tests, {"tests/parity/test_parity.py": None}, "tests/parity holds no test"),
    (rules.the_rooms_are_mirrored_by_tests, {"tests/attic/test_old.py": ""}, "tests/attic mirrors no room"),
    (
        rules.what_contributing_names_is_there,
        {"CONTRIBUTING.md": "| a row | `mappings/rows.yaml` and `mappings/` |"},
        "CONTRIBUTING.md:1: there is no mappings/rows.yaml",
    ),
]


def build(folder: Path, changes: dict[str, str | None]) -> Path:
    """Write the sound house with some files changed."""
    for name, text in {**SOUND, **changes}.items():
        if text is not None:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize("rule", rules.RULES, ids=lambda rule: rule.__name__)
def test_this_house_keeps_the_rule(rule: rules.Rule) -> None:
    complaints = rule(CHECKOUT)
    assert not complaints, "\n" + "\n".join(complaints)


@pytest.mark.parametrize("rule", rules.RULES, ids=lambda rule: rule.__name__)
def test_a_sound_house_draws_no_complaint(rule: rules.Rule, tmp_path: Path) -> None:
    assert rule(build(tmp_path, {})) == []


@pytest.mark.parametrize(("rule", "changes", "said"), BROKEN)
def test_a_broken_house_is_named(rule: rules.Rule, changes: dict[str, str | None], said: str, tmp_path: Path) -> None:
    complaints = rule(build(tmp_path, changes))
    assert any(said in complaint for complaint in complaints), complaints


def test_every_rule_is_shown_to_complain() -> None:
    assert {rule for rule, _, _ in BROKEN} == set(rules.RULES)


# The sources can be read, but what a library imports in its turn shows only when it is run.

IMPORT_THEM = """
import importlib, json, sys
loaded = {}
for name in sys.argv[1:]:
    importlib.import_module(name)
    loaded[name] = [module for module in ("torch", "torchvision", "mindspore") if module in sys.modules]
    for module in loaded[name]:
        del sys.modules[module]
print(json.dumps(loaded))
"""


def loaded_frameworks(names: list[str], cwd: Path) -> dict[str, list[str]]:
    """Import modules in a process of their own: name -> the frameworks that came along."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_THEM, *names], capture_output=True, text=True, check=False, cwd=cwd
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, list[str]] = json.loads(done.stdout)
    return {name: frameworks for name, frameworks in found.items() if frameworks}


def test_what_names_no_framework_loads_none(tmp_path: Path) -> None:
    light = [
        name
        for name in rules.modules(CHECKOUT)
        if not rules.loads(name, CHECKOUT) and name != "msmigrate.__main__"  # importing that runs the command
    ]
    assert {
        "msmigrate.cli",
        "msmigrate.mappings.table",
        "msmigrate.migrate.checkpoint.convert",
        "msmigrate.parity.tensor_verdict",
    } < {*light}
    assert loaded_frameworks(light, tmp_path) == {}


def test_a_framework_that_a_library_brings_along_is_seen(tmp_path: Path) -> None:
    (tmp_path / "torch.py").touch()  # the folder of -c's process comes first
    (tmp_path / "library.py").write_text("import torch")
    assert loaded_frameworks(["json", "library"], tmp_path) == {"library": ["torch"]}


# What is tested is what stands here


def differences(checkout: Path, installed: Path) -> list[str]:
    """Files of the package that the installed copy lacks, holds in another version, or has left over."""
    data = [file for pattern in rules.DATA for file in checkout.glob(pattern)]
    for room in (*rules.ROOMS, "recipes"):
        data += [file for pattern in rules.DATA for file in (checkout / room).glob(pattern)]
    names = {file.relative_to(checkout) for file in [*rules.package_files(checkout), *data]}
    there = {file.relative_to(installed) for file in rules.package_files(installed)}
    found = [f"{name} is not installed" for name in names if not (installed / name).exists()]
    found += [f"{name} is installed and gone from the checkout" for name in there - names]
    both = (name for name in names if (installed / name).exists())
    found += [f"{name} differs" for name in both if (installed / name).read_bytes() != (checkout / name).read_bytes()]
    return sorted(found)


def test_the_tests_see_this_checkout() -> None:
    installed = Path(msmigrate.__file__).parent
    found = differences(CHECKOUT, installed)
    assert not found, f"{installed} is another version; pip install it again:\n" + "\n".join(found)


def test_another_version_is_seen(tmp_path: Path) -> None:
    checkout = build(tmp_path / "checkout", {})
    changes: dict[str, str | None] = {"errors.py": "x = 1", "recipes/resnet50.yaml": None, "migrate/old.py": ""}
    assert differences(checkout, build(tmp_path / "installed", changes)) == [
        "errors.py differs",
        "migrate/old.py is installed and gone from the checkout",
        "recipes/resnet50.yaml is not installed",
    ]
