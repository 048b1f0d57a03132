"""Written models for the tests: what torch and MindSpore made of them, every framework started once."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
import traceback
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from msmigrate.migrate.checkpoint.formats.registry import open_source
from msmigrate.migrate.checkpoint.tensor_names import entries
from msmigrate.migrate.source.emit.file_builder import Emitted, build_file
from msmigrate.migrate.source.observe.observations import Observations

STOPPED = 3  # as in mindspore_worker.py
HERE = Path(__file__).parent
LIBRARY = [HERE / "library" / name for name in ("transformers_torch.py", "collected_torch.py")]


class Written(NamedTuple):
    """One model: its source, and what both frameworks computed; failed: why one of them did not."""

    source: Emitted
    torch: dict[str, Any]
    mindspore: dict[str, Any]
    names: dict[str, str]
    failed: str | None

    def holds(self, *lines: str) -> None:
        """Fail unless the text has these lines."""
        for line in lines:
            assert line in self.source.text, f"{line}\nis not in\n{self.source.text}"

    def lacks(self, *words: str) -> None:
        """Fail where the text has one of these."""
        for word in words:
            assert word not in self.source.text, f"{word}\nis in\n{self.source.text}"

    def agrees(self, *modes: str, apart: float = 2e-5) -> None:
        """Fail unless MindSpore's values are torch's to the noise of float32: by default in both modes, and gradients.

        apart: the largest difference, as a share of the largest value.
        """
        assert not self.source.problems, self.source.problems
        assert self.failed is None, f"{self.failed}\n{self.source.text}"
        gradients = [float(np.abs(value).max()) for key, value in self.torch.items() if key.startswith("gradient/")]
        for key, ours in self.torch.items():
            kind, _, name = key.partition("/")
            if kind not in (modes or ("eval", "train", "gradient")):
                continue
            theirs = f"{kind}/{self.names[name]}" if kind == "gradient" else key
            assert theirs in self.mindspore, f"{theirs} is not among {list(self.mindspore)}"
            found = self.mindspore[theirs].reshape(ours.shape) if kind == "gradient" else self.mindspore[theirs]
            assert found.shape == ours.shape, f"{key}: {found.shape}, not {ours.shape}\n{self.source.text}"
            least = max(gradients) / 20 if kind == "gradient" else 1e-3  # a bias before a norm has none but rounding
            scale = max(float(np.abs(ours).max(initial=0)), least) if ours.dtype != bool else 1.0
            off = float(np.abs(found.astype(np.float64) - ours.astype(np.float64)).max(initial=0)) / scale
            assert off <= apart, f"{key}: {off}\n{self.source.text}"


def models() -> list[Path]:
    """The files of small models, and the package of the last ones."""
    return [*sorted(HERE.glob("*_torch.py")), *(HERE / "package_torch" / name for name in ("net.py", "decoder.py"))]


def builders(file: Path) -> list[str]:
    """The functions of a file that make a model: those without arguments, and without a hint."""
    functions = (node for node in ast.parse(file.read_text()).body if isinstance(node, ast.FunctionDef))
    return [node.name for node in functions if node.returns is None and not node.args.args]


def copied(folder: Path, names: Collection[str]) -> list[str]:
    """Copy the models out of this checkout, whose own files are no user's; returns `FILE.py:NAME`…"""
    shutil.copytree(HERE, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("test_*", "__pycache__"))
    found = [(name, folder / file.relative_to(HERE)) for file in models() for name in builders(file) if name in names]
    twice = [name for name, times in Counter(name for name, _ in found).items() if times > 1]
    assert not twice, f"two files have a model of the name {', '.join(twice)}: a test would get the other one"
    return [f"{file}:{name}" for name, file in found]


def write(specs: Sequence[str], folder: Path, mode: str = "pynative") -> dict[str, Written]:
    """Translate and run `FILE.py:NAME`… in a folder; by NAME."""
    _run("torch_worker.py", folder, *specs)
    sources: dict[str, Emitted] = {}
    maps: dict[str, dict[str, str]] = {}
    failed: dict[str, str] = {}
    for name in (spec.rpartition(":")[2] for spec in specs):
        told = json.loads((folder / f"{name}.json").read_text())
        if "failed" in told:
            failed[name] = told["failed"]
            sources[name], maps[name] = Emitted("", []), {}
            continue
        try:
            sources[name] = build_file(Observations(told), "build", "A net.")
        except Exception:  # the test of that model says so, and no other
            failed[name], sources[name], maps[name] = traceback.format_exc(), Emitted("", []), {}
            continue
        (folder / f"{name}.py").write_text(sources[name].text)
        maps[name] = _names(folder / f"{name}.pth", told["classes"])
        (folder / f"{name}.names.json").write_text(json.dumps(maps[name]))
    waiting = [name for name in sources if name not in failed]
    while waiting and _run("mindspore_worker.py", folder, mode, *waiting) == STOPPED:
        ended = [n for n, name in enumerate(waiting) if (folder / f"{name}.{mode}.failed").exists()]
        waiting = waiting[ended[-1] + 1 :]  # it ended at the last one that failed
    found = {}
    for name, source in sources.items():
        why = folder / f"{name}.{mode}.failed"
        ours, theirs = (_arrays(folder / f"{name}{end}.npz") for end in ("", f".{mode}"))
        error = failed.get(name) or (why.read_text() if why.exists() else None)
        found[name] = Written(source, ours, theirs, maps[name], error)
    return found


def _names(state: Path, classes: dict[str, list[str]]) -> dict[str, str]:
    """How the tensors of a state dict are called in MindSpore, as convert-ckpt has it."""
    with open_source(str(state)) as opened:
        checkpoint = opened.checkpoint(None)
    owners = {path: tuple(bases) for path, bases in classes.items()}
    found = {entry.name: entry for entry in entries(checkpoint, owners, None, parts=True)}
    return {name: entry.target for name, entry in found.items() if entry.target is not None}


def _arrays(path: Path) -> dict[str, Any]:
    return dict(np.load(path)) if path.exists() else {}


def _run(script: str, folder: Path, *arguments: object) -> int:
    """Run a worker to its end; returns its exit code, 0 or STOPPED."""
    command = [sys.executable, str(HERE / script), str(folder), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode in (0, STOPPED), (done.stdout + done.stderr)[-3000:]
    return done.returncode
