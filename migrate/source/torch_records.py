"""What named tuples and dataclasses hold."""

from __future__ import annotations

import dataclasses
from typing import Any

PLAIN = (bool, int, float, str, type(None))


def record_fields(cls: type) -> dict[str, Any] | None:
    """The fields of a named tuple's class or a dataclass, in order, and those with plain defaults; None of others."""
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        defaults = {k: v for k, v in cls._field_defaults.items() if isinstance(v, PLAIN)}  # type: ignore[attr-defined]
        return {"named": False, "fields": list(cls._fields), "defaults": defaults}
    if dataclasses.is_dataclass(cls):
        fields = [field for field in dataclasses.fields(cls) if field.init]
        defaults = {field.name: field.default for field in fields if isinstance(field.default, PLAIN)}
        return {"named": True, "fields": [field.name for field in fields], "defaults": defaults}
    return None


def fields_of(value: Any) -> dict[str, Any] | None:
    """What a dataclass or a named tuple was made of, without what it has anyway; None for anything else."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        defaults = type(value)._field_defaults  # type: ignore[attr-defined]
        found = value._asdict().items()
    elif dataclasses.is_dataclass(value):
        fields = [field for field in dataclasses.fields(value) if field.init]
        defaults = {field.name: field.default for field in fields}
        found = [(field.name, getattr(value, field.name)) for field in fields]
    else:
        return None
    plain = {key: default for key, default in defaults.items() if isinstance(default, PLAIN)}
    return {k: v for k, v in found if k not in plain or type(v) is not type(plain[k]) or v != plain[k]}
