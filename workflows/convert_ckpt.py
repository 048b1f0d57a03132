"""convert-ckpt and inspect from start to end: a checkpoint converted, planned or looked at, without a framework."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import BadInput, MsmigrateError
from ..migrate.checkpoint import convert as converting
from ..migrate.checkpoint.formats.byte_copy import Progress
from ..migrate.checkpoint.plan import Plan
from ..migrate.checkpoint.user_map import write_rules
from ..option_fields import as_path, check_type, model_name
from ..printable import echo
from ..reports.checkpoint import (
    LateProgress,
    inspect_json,
    inspection_text,
    plan_json,
    plan_text,
    result_json,
    result_text,
)
from .results import Result, only_json

if TYPE_CHECKING:
    from ..migrate.checkpoint.inspect_file import Facts

WRITING = ("force", "crc", "max_shard_size")  # options that `plan` does not have
LISTED = 5  # paths without a counterpart


@dataclass(frozen=True, repr=False)
class ConversionPlan(Result):
    """What a conversion would do with every tensor; true where none is refused and none missing."""

    plan: Plan

    @property
    def ok(self) -> bool:
        """Whether the conversion would be made."""
        try:
            self.plan.check()
        except MsmigrateError:
            return False
        return True

    def text(self) -> str:
        """A line for every tensor, and the totals of both sides."""
        return plan_text(self.plan)

    def as_dict(self) -> dict[str, Any]:
        """The plan as `convert-ckpt --dry-run --json` prints it."""
        return plan_json(self.plan)


@dataclass(frozen=True, repr=False)
class Conversion(Result):
    """A finished conversion; one that is refused raises instead."""

    result: converting.Result

    @property
    def ok(self) -> bool:
        """True: the new file is there, and whole."""
        return True

    @property
    def path(self) -> Path:
        """The new file or folder."""
        return Path(self.result.destination)

    @property
    def plan(self) -> ConversionPlan:
        """What became of every tensor."""
        return ConversionPlan(self.result.plan)

    def text(self) -> str:
        """A few lines: how much went where, what was dropped and why."""
        return result_text(self.result)

    def as_dict(self) -> dict[str, Any]:
        """The result as `convert-ckpt --json` prints it."""
        return result_json(self.result)


@dataclass(frozen=True, repr=False)
class Inspection(Result):
    """What a checkpoint holds."""

    facts: Facts

    @property
    def ok(self) -> bool:
        """True: the file could be read."""
        return True

    def text(self) -> str:
        """Modules and tensors, the first ones of each."""
        return inspection_text(self.facts, whole=False)

    def as_dict(self) -> dict[str, Any]:
        """All tensors, as `inspect --json` prints them."""
        return inspect_json(self.facts)


def convert(
    source: Any,
    destination: str | Path,
    *,
    key: str | None = None,
    model: Any = None,
    into: Any = None,
    to: str | None = None,
    dtype: str | None = None,
    training: bool = False,
    optimizer: str | None = None,
    max_shard_size: int | None = None,
    name_map: str | Path | None = None,
    force: bool = False,
    crc: bool = True,
    progress: Progress | None = None,
) -> Conversion:
    """Convert a checkpoint from torch to MindSpore, or back, with every tensor accounted for; `convert-ckpt`.

    source: a file or folder of weights; or a torch module or state_dict in memory, which is saved first.
    destination: the new file; .ckpt is MindSpore's, .pth, .pt and .bin are torch's, .safetensors may be either's, and a
        name with a slash at its end is a folder of such files.
    key: where the state_dict is in the file, when that is ambiguous.
    model: the torch model whose classes own the tensors, by name (torchvision:resnet50, FILE.py:FUNCTION) or as the
        function or class that builds it.
    into: a MindSpore net that must be filled exactly, named likewise.
    to: whose names the new file gets, "torch" or "mindspore"; by default the other framework's.
    dtype: floating-point tensors are cast to it: float64, float32, float16 or bfloat16.
    training: convert optimizer, schedule, loss scale and moving average too.
    optimizer: the optimizer's class in torch, where the file fits several; or a function that returns
        (model, optimizer), by name.
    max_shard_size: bytes of tensors in each file of a folder; 5 GB by default.
    name_map: a YAML file that says what torch's modules are called in MindSpore.
    force: replace the destination where it exists.
    crc: check what is read against the checksums in the source.
    progress: called with the bytes written so far and those of the whole.

    Raises BadCheckpoint, BadDestination, Ambiguous, Unsupported, BadInput and WorkerFailed; the destination is then as
    it was before.
    """
    if max_shard_size is not None:
        check_type(int, max_shard_size, "max_shard_size")
    with _as_file(source) as file:
        result = converting.convert(
            file,
            as_path(destination, "destination"),
            key=key,
            model=None if model is None else model_name(model, "model"),
            into=_net_name(into),
            to=to,
            dtype=dtype,
            training=training,
            optimizer=optimizer,
            max_shard_size=max_shard_size,
            name_map=as_path(name_map, "name_map"),
            force=force,
            crc=crc,
            progress=progress,
        )
    return Conversion(result)


def plan(
    source: Any,
    destination: str | Path | None = None,
    *,
    key: str | None = None,
    model: Any = None,
    into: Any = None,
    to: str | None = None,
    dtype: str | None = None,
    training: bool = False,
    optimizer: str | None = None,
    name_map: str | Path | None = None,
) -> ConversionPlan:
    """Say what `convert` would do with every tensor, and write nothing; `convert-ckpt --dry-run`.

    destination: its name says the format; MindSpore's .ckpt by default, or torch's .pth from a MindSpore file.
    The other arguments are those of `convert`.

    Raises BadCheckpoint, BadDestination, Ambiguous, BadInput and WorkerFailed. A tensor that would be refused is an
    entry of the plan, which is then false.
    """
    with _as_file(source) as file:
        planned = converting.make_plan(
            file,
            as_path(destination, "destination"),
            key=key,
            model=None if model is None else model_name(model, "model"),
            into=_net_name(into),
            to=to,
            dtype=dtype,
            training=training,
            optimizer=optimizer,
            name_map=as_path(name_map, "name_map"),
        )
    return ConversionPlan(planned)


def inspect(path: str | Path, *, key: str | None = None, crc: bool = False) -> Inspection:
    """Say what a checkpoint holds: tensors, layers and everything else in it, none of it loaded or run; `inspect`.

    path: a file or folder that convert reads.
    key: where the state_dict is in the file, when that is ambiguous.
    crc: read all of the file and compare its checksums.

    Raises BadCheckpoint, Ambiguous and BadInput.
    """
    from ..migrate.checkpoint.inspect_file import inspect_file  # not above: a conversion needs none of it

    return Inspection(inspect_file(as_path(path, "path"), key, crc=crc))


def _as_file(source: Any) -> AbstractContextManager[Path]:
    """The file of weights that a source is, or is saved to while it is needed. Raises BadInput for anything else."""
    if isinstance(source, (str, Path)):
        return nullcontext(Path(source))
    content = source.state_dict() if hasattr(source, "state_dict") and hasattr(source, "named_parameters") else source
    if not isinstance(content, Mapping) or not all(isinstance(name, str) for name in content):
        raise BadInput(
            f"{type(source).__name__} is no checkpoint: give a path, a torch module, or a state_dict (names of "
            "parameters and their tensors)"
        )
    return _saved(content)


@contextmanager
def _saved(content: Mapping[str, Any]) -> Iterator[Path]:
    torch: Any = sys.modules.get("torch")  # the caller's own, whose tensors these are
    if torch is None:
        raise BadInput("a state_dict holds torch's tensors, and torch is not imported here: give the file's path")
    odd = next((name for name, value in content.items() if not isinstance(value, torch.Tensor)), None)
    if odd is not None:
        raise BadInput(f"{odd} is a {type(content[odd]).__name__}, and no torch tensor: msmigrate converts state_dicts")
    from ..temporary import temporary_folder  # not above, too

    with temporary_folder("convert") as folder:
        file = folder / "state_dict.pth"
        torch.save(dict(content), file)
        yield file


def run_convert(
    source: str,
    destination: str | None,
    *,
    write_map: Path | None = None,
    dry_run: bool = False,
    json_file: Path | None = None,
    **options: Any,
) -> None:
    """Convert a checkpoint and print the result; or print the plan alone, or write a map of names.

    options: those of `convert`. Raises BadInput for options that do not fit together, and what
    convert raises.
    """
    if write_map is not None:
        if options.get("into") is None or destination is not None:
            raise BadInput("--write-map FILE needs the net of --into, and no DST.")
        _write_map(source, write_map, options)
        return
    if dry_run:
        planned = plan(source, destination, **{key: each for key, each in options.items() if key not in WRITING})
        if not only_json(planned.as_dict, json_file):
            echo(planned.text())
        planned.plan.check()
        return
    if destination is None:
        raise BadInput("nothing says where the converted checkpoint goes: name it (only --dry-run goes without)")
    with LateProgress() as progress:
        result = convert(source, destination, progress=progress, **options)
    if not only_json(result.as_dict, json_file):
        echo(result.text())


def run_inspect(
    path: str, *, key: str | None = None, crc: bool = False, whole: bool = False, json_file: Path | None = None
) -> None:
    """Print what a checkpoint holds. Raises what inspect_file raises."""
    inspection = inspect(path, key=key, crc=crc)
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    if not only_json(inspection.as_dict, json_file):
        echo(inspection_text(inspection.facts, whole=whole, width=width))


def _write_map(source: str, file: Path, options: dict[str, Any]) -> None:
    into = _net_name(options["into"])
    assert into is not None
    inferred = converting.inferred_map(source, into, key=options.get("key"), model=options.get("model"))
    guessed = [pair for pair in inferred.pairs if pair[0] != pair[1]]
    write_rules(file, guessed)
    echo(
        f"{file}: {len(guessed)} modules paired by order and shapes, {len(inferred.pairs) - len(guessed)} have the "
        "same name; check it, then convert with --map"
    )
    for side, paths in (("torch", inferred.ours), ("MindSpore", inferred.theirs)):
        if paths:
            more = f" and {len(paths) - LISTED} more" if len(paths) > LISTED else ""
            echo(
                f"no counterpart found for {', '.join(path or '(the top)' for path in paths[:LISTED])}{more} of {side}"
            )


def _net_name(into: Any) -> str | None:
    """The name of the net of --into; `msmigrate:resnet50(num_classes=10)` becomes the function that builds it."""
    if into is None:
        return None
    spec = model_name(into, "into")
    if not spec.startswith("msmigrate:"):
        return spec
    name, _, arguments = spec.removeprefix("msmigrate:").partition("(")
    inner = arguments.removesuffix(")").strip()
    return f"msmigrate.training.models.mindspore_models:build({name!r}{', ' * bool(inner)}{inner})"
