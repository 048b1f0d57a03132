"""Convert, plan, inspect: checkpoints, dry or written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..printable import echo


def _write_map(source: str, file: Path, options: dict[str, Any]) -> None:
    from ..migrate.checkpoint.convert import inferred_map
    from ..migrate.checkpoint.name_map import write_rules

    found = inferred_map(source, options["into"], key=options["key"], model=options["model"])
    guessed = [pair for pair in found.pairs if pair[0] != pair[1]]
    write_rules(file, guessed)
    echo(
        f"{file}: {len(guessed)} modules paired by order and shapes, {len(found.pairs) - len(guessed)} are called "
        "alike; check it, then convert with --map"
    )
    for side, paths in (("torch", found.ours), ("MindSpore", found.theirs)):
        if paths:
            more = f" and {len(paths) - 5} more" if len(paths) > 5 else ""
            echo(f"nothing found for {', '.join(path or '(the top)' for path in paths[:5])}{more} of {side}")


def own_model(spec: str) -> str:
    """Expand `msmigrate:resnet50(num_classes=10)` to the function that builds it."""
    name, _, arguments = spec.removeprefix("msmigrate:").partition("(")
    inner = arguments.removesuffix(")").strip()
    return f"msmigrate.training.models.mindspore_models:build({name!r}{', ' * bool(inner)}{inner})"
