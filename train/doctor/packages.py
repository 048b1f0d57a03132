"""What is installed, by its metadata alone: versions, and requirements that are not met. Nothing is imported."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

US = "msmigrate"
NOT_OURS = ("test",)  # extras that nobody needs who only uses msmigrate


@dataclass(frozen=True)
class Unmet:
    """A requirement that does not hold. name: of the package wanted. by: who wants it. there: its version, or None."""

    name: str
    wanted: str
    by: str
    there: str | None


class Packages:
    """The packages on a search path (sys.path by default), each read when asked for."""

    def __init__(self, path: list[str] | None = None) -> None:
        self._path = path
        self._found: dict[str, list[metadata.Distribution]] = {}

    def all(self, name: str) -> list[metadata.Distribution]:
        """Every installation of a package that is whole, the one that Python imports first."""
        name = canonicalize_name(name)
        if name not in self._found:
            found = metadata.distributions(name=name, path=sys.path if self._path is None else self._path)
            self._found[name] = [one for one in found if "\nVersion:" in f"\n{one.read_text('METADATA') or ''}"]
        return self._found[name]

    def version(self, name: str) -> str | None:
        """The version that Python imports, or None."""
        found = self.all(name)
        return found[0].version if found else None

    def twice(self, name: str) -> list[str]:
        """The versions whose metadata lie in one folder, where more than one does: an update that broke off."""
        found = {(Path(str(one.locate_file(""))).resolve(), one.version): None for one in self.all(name)}
        folders = [folder for folder, _ in found]  # each once: a search path may name a folder twice
        return [version for folder, version in found if folders.count(folder) > 1]

    def requires_python(self, name: str) -> str | None:
        """The Pythons that a package is for, as its metadata have it."""
        found = self.all(name)
        there = found and "Requires-Python" in found[0].metadata
        return found[0].metadata["Requires-Python"] if there else None

    def folder(self, name: str, module: str) -> Path | None:
        """Where a package's module lies."""
        found = self.all(name)
        return Path(str(found[0].locate_file(module))) if found else None

    def requirements(self, name: str, extras: frozenset[str] = frozenset()) -> Iterator[Requirement]:
        """What a package requires on this platform, with these extras."""
        found = self.all(name)
        for line in (found[0].requires or []) if found else []:
            try:
                requirement = Requirement(line)
            except InvalidRequirement:  # an old package, whose requirement pip would not understand either
                continue
            marker = requirement.marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
                yield requirement

    def ours(self) -> dict[str, str]:
        """What msmigrate itself requires: name -> requirement, as pip takes it. Without extras."""
        return {canonicalize_name(item.name): plain(item) for item in self.requirements(US)}

    def optional(self) -> dict[str, tuple[str, str]]:
        """What msmigrate uses where it is there: name -> (extra, requirement)."""
        found: dict[str, tuple[str, str]] = {}
        extras = self.all(US)[0].metadata.get_all("Provides-Extra") if self.all(US) else None
        for extra in extras or []:
            if extra not in NOT_OURS:
                for item in self.requirements(US, frozenset({extra})):
                    if canonicalize_name(item.name) not in (*self.ours(), US):
                        found.setdefault(canonicalize_name(item.name), (extra, plain(item)))
        return found

    def unmet(self) -> list[Unmet]:
        """What msmigrate requires, and what that requires in its turn, as far as it does not hold."""
        found: list[Unmet] = []
        waiting = [(US, frozenset[str]())]
        for name, (_, requirement) in self.optional().items():
            there = self.version(name)
            if there is not None:
                waiting.append((name, frozenset()))
                if not holds(Requirement(requirement), there):
                    found.append(Unmet(name, requirement, US, there))
        seen = set(waiting)
        while waiting:
            name, extras = waiting.pop(0)
            for item in self.requirements(name, extras):
                wanted = canonicalize_name(item.name)
                there = self.version(wanted)
                if there is None or not holds(item, there):
                    found.append(Unmet(wanted, plain(item), name, there))
                following = (wanted, frozenset(item.extras))
                if there is not None and following not in seen:
                    seen.add(following)
                    waiting.append(following)
        return [*{(one.name, one.by): one for one in found}.values()]


def plain(requirement: Requirement) -> str:
    """`numpy>=1.26,<2`: without its marker, and in the order in which it is read."""
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    limits = sorted(map(str, requirement.specifier), key=lambda limit: (limit[0] == "<", limit))
    return f"{requirement.name}{extras}{','.join(limits)}"


def holds(requirement: Requirement, version: str) -> bool:
    """Whether an installed version is one that is wanted; a pre-release that somebody installed counts."""
    try:
        return requirement.specifier.contains(Version(version), prereleases=True)
    except InvalidVersion:
        return False
