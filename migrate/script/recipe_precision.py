"""The sections of a recipe on number formats and averages: amp, loss_scale, dynamic_loss_scale, ema."""

from __future__ import annotations

from . import recipe_keys
from .noting import OPTION, UNCALLED
from .reading import Reader
from .recipe_keys import calls, options, surely
from .recipe_values import Entry, number, place, sources
from .values import Instance, Name, Seen, Thing, known

EMA_FIELDS = ("decay", "warmup_gamma", "warmup_power", "min_decay", "update_after_step")
SCALER_FIELDS = ("init_scale", "growth_factor", "backoff_factor", "growth_interval")


def amp(reader: Reader) -> list[Entry]:
    """The sections `amp`, `loss_scale` and `dynamic_loss_scale`."""
    found = calls(reader, recipe_keys.AMP)
    entries: list[Entry] = []
    for seen in surely(found):
        if "opt_level" in {argument.name for argument in seen.arguments or []} or seen.name.startswith("apex."):
            return _apex(seen)
        if known(seen.get("enabled"), True) is False:
            continue
        dtype = seen.get("dtype") or (seen.get("dtype", 1) if not seen.name.startswith("torch.cuda") else None)
        short = dtype.name.rpartition(".")[2] if isinstance(dtype, Name) else "float16"
        wanted = "bfloat16" if short == "bfloat16" else "float16"
        entries.append(Entry("amp", {"level": "O1", "dtype": wanted}, [place(seen)]))
        break
    else:
        for seen in found[:1]:
            enabled = next((a.node for a in seen.arguments or [] if a.name == "enabled"), None)
            why = seen.condition or (seen.source.text(enabled) if enabled is not None else "it is enabled")
            entries.append(
                Entry("amp", {"level": "O1", "dtype": "float16"}, [f"{place(seen)}, only where {why}"], out=True)
            )
    scalers = calls(reader, recipe_keys.SCALE)
    for seen in [s for s in surely(scalers) if known(s.get("enabled"), True) is not False][:1]:
        fields = {name: number(seen.get(name)) for name in SCALER_FIELDS}
        told = {name: float(v) if name != "growth_interval" else int(v) for name, v in fields.items() if v is not None}
        return [*entries, Entry("dynamic_loss_scale", told, [place(seen)])]
    for seen in options(scalers)[:1]:
        entries.append(Entry("dynamic_loss_scale", {}, [f"{place(seen)}, only where {seen.condition}"], out=True))
    return entries


def _apex(seen: Seen) -> list[Entry]:
    level = known(seen.get("opt_level", 2), "O1")
    if level not in ("O0", "O1", "O2", "O3"):
        return [Entry("amp", {"level": "O1"}, [place(seen), "its opt_level cannot be told"], out=True)]
    found = [Entry("amp", {"level": level, "dtype": "float16"}, [place(seen), *sources(seen.get("opt_level", 2))])]
    scale = seen.get("loss_scale")
    told = known(scale, "dynamic")
    try:
        fixed = float(told)
    except (TypeError, ValueError):
        fixed = 0.0
    if level == "O0":
        return found
    if fixed > 0:
        return [*found, Entry("loss_scale", fixed, [place(seen), *sources(scale)])]
    return [*found, Entry("dynamic_loss_scale", {}, ["apex's loss scale is dynamic", *sources(scale)])]


def ema(reader: Reader) -> Entry | None:
    """The section `ema`."""
    found = calls(reader, recipe_keys.EMA)
    own = [made for made in reader.made if recipe_keys.key_of(made.of.library_base() or "") == recipe_keys.EMA]
    for made in own:
        section = _own_average(made, reader)
        if section is not None:
            return section
    for seen in surely(found):
        told = {name: value for name in EMA_FIELDS if (value := number(seen.get(name))) is not None}
        if known(seen.get("use_warmup")) is True:
            told["warmup"] = True
        comments = [place(seen), *sources(seen.get("decay"))]
        if "decay" not in told:
            if seen.name.startswith("torch."):
                return _torch_average(seen, comments)
            told["decay"] = 0.9999  # timm's
        return Entry("ema", {**told, "decay": float(told["decay"])}, comments)
    for seen in options(found):
        return Entry("ema", {"decay": 0.9998}, [f"{place(seen)}, only where {seen.condition}"], out=True)
    return None


def _torch_average(seen: Seen, comments: list[str]) -> Entry:
    """torch's AveragedModel, whose decay stands in the function that it averages by."""
    rule = next((value for key in ("multi_avg_fn", "avg_fn") if isinstance(value := seen.get(key), Thing)), None)
    made = rule.seen if rule is not None and rule.name.endswith(("get_ema_multi_avg_fn", "get_ema_avg_fn")) else None
    if made is None:
        return Entry("ema", {"decay": 0.999}, [*comments, "its decay cannot be told"], out=True)
    value = made.get("decay", 0)
    decay = number(value) if value is not None else 0.999  # torch's default
    comments += sources(value)
    if decay is None or not 0 < decay < 1:
        return Entry("ema", {"decay": 0.999}, [*comments, "its decay cannot be told"], out=True)
    if known(seen.get("use_buffers", 4), False) is not True:
        comments.append("without use_buffers torch averages the weights alone; a recipe averages the buffers too")
    return Entry("ema", {"decay": float(decay)}, comments)


def _own_average(made: Instance, reader: Reader) -> Entry | None:
    """An object of the script's own class of averages."""
    if made.source is None or made.node is None:
        return None
    value = next((argument.value for argument in made.arguments if argument.name == "decay"), None)
    decay = number(value)
    where = f"{made.source.shown} line {made.node.lineno}: {made.source.text(made.node)}"
    every = [s for s in reader.seen if s.name.endswith(".update_parameters") and s.condition and "%" in s.condition]
    said = [
        where,
        *sources(value),
        *(f"the script updates it where {s.condition}; a recipe does at every step" for s in every[:1]),
    ]
    if made.certainty in (OPTION, UNCALLED):
        return Entry(
            "ema", {"decay": float(f"{decay:.6g}") if decay else 0.9998}, [*said, "only with other arguments"], out=True
        )
    if decay is None or not 0 < decay < 1:
        return Entry("ema", {"decay": 0.9998}, [*said, "its decay cannot be told"], out=True)
    return Entry("ema", {"decay": float(decay)}, said)
