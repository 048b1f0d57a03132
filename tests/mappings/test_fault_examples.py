"""The examples of the faults are Python, and what they call in MindSpore is there."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

from msmigrate.mappings import table


def test_examples_are_python():
    for name, sources in table.examples().items():
        for source in sources:
            assert source == "-" or ast.parse(source), name


def test_what_they_call_in_mindspore_is_there():
    worker = Path(__file__).parent / "mindspore_examples.py"
    done = subprocess.run([sys.executable, worker, table.HERE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-1000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {}
