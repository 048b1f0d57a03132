"""The sections of a recipe about precision: amp, loss_scale and dynamic_loss_scale."""

from __future__ import annotations

import re
from typing import Any

from ..source.infer.abstract_values import LibraryName, LibraryUse
from ..source.infer.interpreter import OPTION, PERHAPS, Interpreter
from .entries import AMP, ASK, SCALE, Entry, by_sureness, calls, distinct, options, place, sources, surely
from .unread import setting, settings, unread

OF_DEVICES = ("torch.cuda.", "torch.cpu.")  # all others take the device as first argument
SCALER_FIELDS = ("init_scale", "growth_factor", "backoff_factor", "growth_interval")


def _enabled(seen: LibraryUse) -> Any:
    """Whether a scaler or an autocast is enabled; ??? where that could not be read."""
    of_device, scaler = seen.name.startswith(OF_DEVICES), seen.name.endswith("Scaler")
    at = (4 if of_device else 5) if scaler else (0 if of_device else 2)
    given = setting(seen, "enabled", at)
    return True if given is None else given


ON_DEVICES = re.compile(r"cuda|gpu|\bcpu\b|\bmps\b|\bnpu\b", re.IGNORECASE)  # of a condition on where the script runs


def _depends(interpreter: Interpreter, seen: LibraryUse) -> list[str]:
    """The undecided conditions of a call that the training itself does not have, besides those on the device."""
    if seen.certainty != PERHAPS:
        return []
    starts = surely(by_sureness(one for one in interpreter.seen if one.name.endswith(".backward")))
    several = [set((one.condition or "").split(" and ")) for one in starts]
    always = set.intersection(*several) if several else set()
    mine = [text for text in (seen.condition or "").split(" and ") if text and text not in always]
    return [text for text in mine if not ON_DEVICES.search(text)]


def amp(interpreter: Interpreter) -> list[Entry]:
    """The sections `amp`, `loss_scale` and `dynamic_loss_scale`."""
    found = calls(interpreter, AMP)
    entries: list[Entry] = []
    for seen in surely(found):
        if "opt_level" in {argument.name for argument in seen.arguments or []} or seen.name.startswith("apex."):
            return _apex(seen)
        enabled = _enabled(seen)
        if enabled is False:
            continue
        if enabled == ASK:
            entries.append(Entry("amp", ASK, [place(seen), "whether it is enabled could not be read"]))
            break
        if _depends(interpreter, seen):
            chosen = distinct(surely(found))
            entries.append(Entry("amp", ASK, [*map(str, map(place, chosen)), "which of it runs could not be read"]))
            break
        dtype = seen.get("dtype") or (seen.get("dtype", 1) if not seen.name.startswith("torch.cuda") else None)
        if dtype is not None and not isinstance(dtype, LibraryName):
            entries.append(Entry("amp", ASK, [place(seen), "its dtype could not be read"]))
            break
        short = dtype.name.rpartition(".")[2] if dtype is not None else "float16"
        wanted = "bfloat16" if short == "bfloat16" else "float16"
        entries.append(Entry("amp", {"level": "O1", "dtype": wanted}, [place(seen)]))
        break
    else:
        for seen in found[:1]:
            written = next((a.node for a in seen.arguments or [] if a.name == "enabled"), None)
            why = seen.condition or (seen.source.text(written) if written is not None else "it is enabled")
            entries.append(
                Entry("amp", {"level": "O1", "dtype": "float16"}, [f"{place(seen)}, only where {why}"], out=True)
            )
    scalers = calls(interpreter, SCALE)
    for seen in [s for s in surely(scalers) if _enabled(s) is not False][:1]:
        roots = {id(seen.node): "scaler"}
        if _enabled(seen) == ASK:
            comments = [place(seen), "whether it is enabled could not be read"]
            return [*entries, Entry("dynamic_loss_scale", ASK, comments, roots=roots)]
        if _depends(interpreter, seen):
            return [
                *entries,
                Entry("dynamic_loss_scale", ASK, [place(seen), "whether it is on could not be read"], roots=roots),
            ]
        first = 0 if seen.name.startswith(OF_DEVICES) else 1
        drafted = settings(seen, {name: first + at for at, name in enumerate(SCALER_FIELDS)})
        if drafted.get("growth_interval", ASK) != ASK:
            drafted["growth_interval"] = int(drafted["growth_interval"])
        comments = [place(seen), *(unread(name) for name in drafted if drafted[name] == ASK)]
        return [*entries, Entry("dynamic_loss_scale", drafted, comments, roots=roots)]
    for seen in options(scalers)[:1]:
        entries.append(Entry("dynamic_loss_scale", {}, [f"{place(seen)}, only where {seen.condition}"], out=True))
    return entries


def switched_off(interpreter: Interpreter) -> list[LibraryUse]:
    """The scalers and autocasts that do nothing, since they are made with enabled=False."""
    found = [*calls(interpreter, SCALE), *calls(interpreter, AMP)]
    return [seen for seen in found if _enabled(seen) is False and seen.certainty != OPTION]


def _apex(seen: LibraryUse) -> list[Entry]:
    level = setting(seen, "opt_level", 2) or "O1"
    if level not in ("O0", "O1", "O2", "O3"):
        return [Entry("amp", {"level": "O1"}, [place(seen), "its opt_level could not be read"], out=True)]
    found = [Entry("amp", {"level": level, "dtype": "float16"}, [place(seen), *sources(seen.get("opt_level", 2))])]
    scale = seen.get("loss_scale")
    drafted = setting(seen, "loss_scale") or "dynamic"
    if drafted == ASK and level != "O0":
        return [*found, Entry("dynamic_loss_scale", ASK, [place(seen), unread("loss_scale")])]
    try:
        fixed = float(drafted)
    except (TypeError, ValueError):
        fixed = 0.0
    if level == "O0":
        return found
    if fixed > 0:
        return [*found, Entry("loss_scale", fixed, [place(seen), *sources(scale)])]
    return [*found, Entry("dynamic_loss_scale", {}, ["apex's loss scale is dynamic", *sources(scale)])]
