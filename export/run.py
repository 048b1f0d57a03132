"""An export from beginning to end: settle, run and export in MindSpore, run torch, load and run the file, judge."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..train.inference.inference_process import follow
from ..train.inference.request import Told
from .asked import FACTS, MINDIR, MORE, REQUEST, Asked
from .subject import Net, settle
from .verdict import Comparison, compare

Worker = Callable[[str], Sequence[str]]


def module(name: str) -> Sequence[str]:
    """The command that runs a worker of this package."""
    return (sys.executable, "-m", f"msmigrate.export.{name}")


@dataclass(frozen=True)
class Exported:
    """A file that was exported and run, and all comparisons; it stands in the temporary folder of the export.

    facts: what the workers noted, such as inputs, versions and what was rewritten. sizes: of the batches it ran on.
    """

    file: Path
    net: Net
    facts: dict[str, Any]
    sizes: list[int]
    comparisons: list[Comparison]

    @property
    def sound(self) -> bool:
        """Whether everything agrees."""
        return all(one.passed for one in self.comparisons)


def export(asked: Asked, folder: Path, told: Told = lambda event: None, worker: Worker = module) -> Exported:
    """Export a checkpoint into a folder of the caller's, and run what was written; nothing is judged by its existence.

    told: called with what is being done. Raises what settling raises, Unsupported for what cannot be exported or
    does not run, and WorkerFailed.
    """
    net = settle(asked, folder)
    (folder / REQUEST).write_text(net.job.model_dump_json(), encoding="utf-8")
    place = str(folder)
    follow([*worker("mindspore_export"), place], folder / "export.log", told)
    facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
    batch = int(facts["batch"])
    sizes = [batch, batch + MORE] if asked.dynamic else [batch]
    if net.torch is not None:
        words = [*worker("torch_reference"), place, net.torch, str(batch)]
        follow(words, folder / "torch.log", told, "torch")
    shown = [str(size) for size in sizes]
    if net.job.form == MINDIR:
        follow([*worker("mindspore_load"), place, *shown], folder / "check.log", told)
    else:
        words = [*worker("onnx_check"), place, str(int(asked.dynamic)), *shown]
        follow(words, folder / "check.log", told, "onnxruntime")
        facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
    return Exported(folder / facts["file"], net, facts, sizes, compare(folder, sizes, torch=net.torch is not None))
