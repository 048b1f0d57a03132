"""What dataclasses hold that a model is made of."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .torch_described import Describer


def configurations(describer: Describer) -> dict[str, dict[str, Any]]:
    """By class: the defaults of fields, what every object of it holds that was seen, and other names of fields."""
    found: dict[str, dict[str, Any]] = {}
    for value in list(describer.configured.values()):
        name = describer.name(type(value))
        if name in describer.records or not _takes_its_fields(type(value)):
            continue
        fields = {field.name: _default(field) for field in dataclasses.fields(value) if field.init}
        defaults = {key: describer.made(item) for key, item in fields.items() if item is not dataclasses.MISSING}
        holds = {key: vars(value)[key] for key in (*fields, *vars(value)) if key in vars(value)}
        told = {key: describer.made(item) for key, item in holds.items() if _plain(item)}
        known = found.setdefault(name, {"defaults": defaults, "held": told, "aliases": _aliases(type(value))})
        known["held"] = {key: item for key, item in known["held"].items() if key in told and told[key] == item}
    return found


def _takes_its_fields(cls: type) -> bool:
    """Whether a class is made from its fields, and by no `__init__` of its own, as torchvision's MBConvConfig is."""
    owner = next(base for base in cls.__mro__ if "__init__" in vars(base))
    parameters = vars(owner).get("__dataclass_params__")
    return parameters is not None and parameters.init


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def _plain(value: Any) -> bool:
    """Whether something can be written: numbers, texts, what holds such, and other configurations."""
    if isinstance(value, (list, tuple)):
        return all(map(_plain, value))
    if isinstance(value, dict):
        return all(_plain(item) for pair in value.items() for item in pair)
    return value is None or isinstance(value, (bool, int, float, str)) or dataclasses.is_dataclass(value)


def _aliases(cls: type) -> dict[str, str]:
    """Other names of fields, as transformers' configurations tell them."""
    found = getattr(cls, "attribute_map", None)
    return dict(found) if isinstance(found, dict) and all(isinstance(name, str) for name in found.values()) else {}
