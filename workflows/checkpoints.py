"""convert-ckpt and inspect from start to end: a plan shown, a checkpoint converted, a map guessed, a file looked at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import BadInput
from ..migrate.checkpoint.convert import convert, inferred_map, make_plan
from ..migrate.checkpoint.inspect_file import inspect_file
from ..migrate.checkpoint.name_map import write_rules
from ..printable import echo, json_line
from ..reports.checkpoint import (
    LateProgress,
    inspect_json,
    plan_json,
    plan_text,
    result_json,
    result_text,
    show_inspection,
)

WRITING = ("force", "crc", "max_shard_size")  # what a plan knows nothing of
LISTED = 5  # paths without a counterpart


def run_convert(
    source: str,
    destination: str | None,
    *,
    write_map: Path | None = None,
    dry_run: bool = False,
    as_json: bool = False,
    **options: Any,
) -> None:
    """Convert a checkpoint and print the result; or print the plan alone, or write a map of names.

    options: those of migrate.checkpoint.convert.convert. Raises BadInput for options that do not fit together, and what
    convert raises.
    """
    if options.get("into") is not None and options["into"].startswith("msmigrate:"):
        options["into"] = own_model(options["into"])
    if write_map is not None:
        if options.get("into") is None or destination is not None:
            raise BadInput("--write-map FILE needs the net of --into, and no DST.")
        _write_map(source, write_map, options)
        return
    if dry_run:
        plan = make_plan(source, destination, **{key: each for key, each in options.items() if key not in WRITING})
        echo(json_line(plan_json(plan)) if as_json else plan_text(plan))
        plan.check()
        return
    if destination is None:
        raise BadInput("nothing says where the converted checkpoint goes: name it (only --dry-run goes without)")
    with LateProgress() as progress:
        result = convert(source, destination, progress=progress, **options)
    echo(json_line(result_json(result)) if as_json else result_text(result))


def run_inspect(
    path: str, *, key: str | None = None, crc: bool = False, whole: bool = False, as_json: bool = False
) -> None:
    """Print what a checkpoint holds. Raises what inspect_file raises."""
    facts = inspect_file(path, key, crc=crc)
    if as_json:
        echo(json_line(inspect_json(facts)))
    else:
        show_inspection(facts, whole=whole)


def _write_map(source: str, file: Path, options: dict[str, Any]) -> None:
    found = inferred_map(source, options["into"], key=options.get("key"), model=options.get("model"))
    guessed = [pair for pair in found.pairs if pair[0] != pair[1]]
    write_rules(file, guessed)
    echo(
        f"{file}: {len(guessed)} modules paired by order and shapes, {len(found.pairs) - len(guessed)} are called "
        "alike; check it, then convert with --map"
    )
    for side, paths in (("torch", found.ours), ("MindSpore", found.theirs)):
        if paths:
            more = f" and {len(paths) - LISTED} more" if len(paths) > LISTED else ""
            echo(f"nothing found for {', '.join(path or '(the top)' for path in paths[:LISTED])}{more} of {side}")


def own_model(spec: str) -> str:
    """Expand `msmigrate:resnet50(num_classes=10)` to the function that builds it."""
    name, _, arguments = spec.removeprefix("msmigrate:").partition("(")
    inner = arguments.removesuffix(")").strip()
    return f"msmigrate.training.models.mindspore_models:build({name!r}{', ' * bool(inner)}{inner})"
