"""Every call of the mapping table in a model that convert-model writes, where it ran and where it did not.

    python benchmarks/written_rows.py [FOLDER] [--rows GLOB] [--mode graph]

Each case of a function, layer or loss becomes a model with a branch for it: `if self.flag: return torch.roll(x0, 1)`.
It is written twice: as it was seen without the branch, and as it was seen in it. Both are made with the flag in
MindSpore, and compared with torch on the case's own inputs, in evaluation and training mode. All weights are 0.1: that
they cross is another test's business. Prints markdown: how many calls are the same, which raise, which are not the
same. FOLDER: where the models and the written files stay. Takes an hour on two cores, both modes two.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests" / "mappings"))

from mapping_cases import bind, inputs, pairs, runnable  # noqa: E402
from msmigrate.mappings.rows import Case, Row  # noqa: E402
from msmigrate.migrate.source.emit.file_builder import build_file  # noqa: E402
from msmigrate.migrate.source.observe.observations import Observations  # noqa: E402

NEAR = 2e-3  # of the largest value: another formula is further off, and MindSpore's kernels of log2 and sigmoid less
# the deviation of equal weights is rounding
OF_EQUAL_WEIGHTS = ("timm.layers.StdConv2d", "timm.layers.ScaledStdConv2d")
MODEL = """import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
{imports}

class Net(nn.Module):
    def __init__(self, flag):
        super().__init__()
        self.flag = flag
        self.scale = nn.Parameter(torch.ones(()))
{made}
    def forward(self, {names}):
        if self.flag:
            return {call}
        return {first} * 1


def build():
    given = np.load({arrays!r})
    return Net({seen}), tuple(torch.from_numpy(given[name]) for name in given)
"""


class Word(str):
    """Source text among the values of a call."""

    __slots__ = ()


def text(value: Any) -> str:
    """A value of the table as the source of a torch call has it."""
    if isinstance(value, Word) or (isinstance(value, str) and value.startswith("torch.")):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return f"float('{value}')"
    if isinstance(value, list):
        return f"({', '.join(map(text, value))}{',' * (len(value) == 1)})"
    if isinstance(value, tuple):
        return f"[{', '.join(map(text, value))}]"
    return repr(value)


def words_of(row: Row, case: Case) -> dict[str, Any]:
    """The arguments that a case gives, with tensors as calls of torch.tensor."""
    tensors = {argument.torch for argument in row.arguments if argument.verb == "tensor"}
    of_tensors = {name for name, value in case.args.items() if name in tensors and value is not None}
    return {
        name: Word(f"torch.tensor({value!r})") if name in of_tensors else value for name, value in case.args.items()
    }


def call_of(row: Row, case: Case, names: list[str]) -> tuple[str, str]:
    """What makes a layer of the case, empty for a function, and the call."""
    given = words_of(row, case)
    if row.kind != "function":
        name = f"nn.{row.torch[9:]}" if row.torch.startswith("torch.nn.") else row.torch
        keywords = ", ".join(f"{key}={text(value)}" for key, value in given.items())
        return f"        if flag:\n            self.layer = {name}({keywords})\n", f"self.layer({', '.join(names)})"
    bound = bind(row, replace(case, args=given), [Word(name) for name in names])
    bound = {
        key: tuple(value) if isinstance(value, list) and key not in given else value for key, value in bound.items()
    }
    order = [argument for argument in row.arguments if argument.torch in bound]
    last = max((n for n, argument in enumerate(order) if argument.torch not in given), default=-1)
    if row.torch.startswith("operator."):  # which takes nothing by name
        last = len(order)
    written: list[str] = []
    for n, argument in enumerate(order):
        value = bound[argument.torch]
        if n > last or row.arguments[n] is not argument:  # behind a gap
            written.append(f"{argument.torch}={text(value)}")
        else:
            written += map(text, value) if argument.rest else [text(value)]
    if row.torch.startswith("torch.Tensor."):
        return "", f"{written[0]}.{row.torch.rpartition('.')[2]}({', '.join(written[1:])})"
    name = row.torch.replace("torch.nn.functional.", "F.")
    return "", f"{name}({', '.join(written)})"


def write_models(folder: Path, pattern: str) -> dict[str, str]:
    """A file for each call, seen and not seen; the calls by the files' names."""
    calls = {}
    for name, row, case in runnable():
        alone = row.kind in ("function", "layer", "module", "loss") and case.train and not (case.made or pairs(case))
        layers = any(a.verb == "layer" and case.args.get(a.torch) is not None for a in row.arguments)
        if not alone or layers or "*args" in case.args or not fnmatchcase(row.torch, pattern):
            continue
        wide = inputs(name, case) or [np.ones((2, 2), np.float32)]
        for n, spec in enumerate(case.inputs):  # torch's integers are int64 where a case does not say another dtype
            if wide[n].dtype.kind in "iu" and not (isinstance(spec, dict) and "dtype" in spec):
                wide[n] = wide[n].astype(np.int64)
        file = "_" + "".join(letter if letter.isalnum() else "_" for letter in name)
        np.savez(folder / f"{file}.npz", **{f"x{n}": array for n, array in enumerate(wide)})
        names = [f"x{n}" for n in range(len(wide))]
        made, call = call_of(row, case, names if case.inputs else [])
        module = row.torch.rpartition(".")[0]
        imports = "" if module.startswith("torch") and not module.startswith("torchvision") else f"import {module}\n"
        for seen in (False, True):
            source = MODEL.format(
                imports=imports, made=made, names=", ".join(names), call=call, first=names[0], seen=seen,
                arrays=str(folder / f"{file}.npz"),
            )  # fmt: skip
            (folder / f"{'seen' if seen else 'not'}{file}.py").write_text(source)
        calls[file] = f"{made.strip().partition('= ')[2]} {call}".strip() if made else call
    (folder / "calls.json").write_text(json.dumps(calls))
    return calls


def build_all(folder: Path, names: list[str]) -> None:
    """Write the files of what was seen, or note why that fails."""
    for name in names:
        report = folder / f"{name}.json"
        if not report.exists():
            continue
        said = json.loads(report.read_text())
        try:
            built = build_file(Observations(said), "build", "A net.") if "failed" not in said else None
        except Exception as error:
            built, said = None, {"failed": f"{type(error).__name__}: {error}"}
        if built is None:
            (folder / f"{name}.failed").write_text(str(said["failed"]))
        else:
            (folder / f"{name}_written.py").write_text(built.text)


def judged(folder: Path, name: str) -> tuple[str, str]:
    """Whether MindSpore's values are torch's: the same, raises, or what else; and what it says."""
    if (folder / f"{name}.failed").exists():
        return "not written", (folder / f"{name}.failed").read_text().strip().splitlines()[-1]
    if not (folder / f"{name}_found.npz").exists():
        said = (folder / f"{name}_raised.txt").read_text() if (folder / f"{name}_raised.txt").exists() else "it ended"
        return "raises" if said.startswith("NotImplementedError") else "another error", said.splitlines()[0]
    (ours, exact) = (dict(np.load(folder / f"{name}_{end}.npz")) for end in ("found", "torch"))
    if ours.keys() != exact.keys():
        return "not the same", f"{len(ours)} values, not {len(exact)}"
    for key, value in exact.items():
        found, wanted = ours[key].astype(np.complex128), value.astype(np.complex128)
        if found.shape != wanted.shape:
            return "not the same", f"{key}: {found.shape}, not {wanted.shape}"
        known = np.isfinite(wanted)
        off = np.abs(found - wanted)[known].max(initial=0) / max(np.abs(wanted)[known].max(initial=0), 1e-3)
        if not np.array_equal(known, np.isfinite(found)) or off > NEAR:
            return "not the same", f"{key}: {off:.1e} of the largest value off"
    return "the same", ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--rows", default="*", metavar="GLOB", help="rows whose torch name matches")
    parser.add_argument("--mode", choices=("pynative", "graph"), default="pynative")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (arguments.folder or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        calls = write_models(folder, arguments.rows)
        names = [f"{seen}{file}" for seen in ("not", "seen") for file in calls]
        subprocess.run([sys.executable, str(HERE / "written_rows_torch.py"), str(folder), *names], check=True)
        build_all(folder, names)
        # a kernel that fails may end the process: it goes on behind that model
        while subprocess.run(
            [sys.executable, str(HERE / "written_rows_mindspore.py"), str(folder), arguments.mode, *names], check=False
        ).returncode:
            continue
        found = {name: judged(folder, name) for name in names if (folder / f"{name}_torch.npz").exists()}
    kinds = ["the same", "raises", "not written", "another error", "not the same"]
    print(f"| {arguments.mode} | {' | '.join(kinds)} |\n|{'---|' * 6}")
    for seen, label in (("not", "in a branch that did not run"), ("seen", "in one that ran")):
        counts = Counter(kind for name, (kind, _) in found.items() if name.startswith(f"{seen}_"))
        print(f"| {label} | {' | '.join(str(counts[kind]) for kind in kinds)} |")
    equal = [file for file, call in calls.items() if call.startswith(OF_EQUAL_WEIGHTS)]
    print(f"\nOf {len(equal)} layers that divide by the deviation of their weights, equal here, nothing follows.\n")
    for name, (kind, said) in found.items():
        if kind != "the same":
            print(f"- {kind}, {name.partition('_')[0]}: `{calls[name[name.index('_') :]]}`: {said[:200]}")


if __name__ == "__main__":
    main()
