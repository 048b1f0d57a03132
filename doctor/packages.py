"""Installed versions against what is required."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from .. import __version__
from .machine import OK, PROBLEM, WARNING, Finding, Machine

US = "msmigrate"
NOT_OWN = ("test", "all")  # extras that no user of msmigrate needs, or that are made of others


@dataclass(frozen=True)
class Unmet:
    """A requirement that is not met. name: of the required package. by: the one that requires it. there: the installed
    version, or None."""

    name: str
    wanted: str
    by: str
    there: str | None


class Packages:
    """The packages on a search path (sys.path by default), each read when it is needed."""

    def __init__(self, path: list[str] | None = None) -> None:
        self._path = path
        self._found: dict[str, list[metadata.Distribution]] = {}

    def all(self, name: str) -> list[metadata.Distribution]:
        """Every complete installation of a package; the first is the one that Python imports."""
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
        """The versions whose metadata are in the same folder, if several are: an update was interrupted."""
        found = {(Path(str(one.locate_file(""))).resolve(), one.version): None for one in self.all(name)}
        folders = [folder for folder, _ in found]  # each once: a search path may name a folder twice
        return [version for folder, version in found if folders.count(folder) > 1]

    def requires_python(self, name: str) -> str | None:
        """The Python versions that a package is for, according to its metadata."""
        found = self.all(name)
        there = found and "Requires-Python" in found[0].metadata
        return found[0].metadata["Requires-Python"] if there else None

    def folder(self, name: str, module: str) -> Path | None:
        """The folder of a package's module, or None."""
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

    def required(self) -> dict[str, str]:
        """What msmigrate itself requires: name -> requirement, as pip takes it. Without extras."""
        return {canonicalize_name(item.name): plain(item) for item in self.requirements(US)}

    def wanted(self, name: str) -> str:
        """msmigrate's requirement for a package, its own or an extra's, as pip takes it; just the name where there is
        none."""
        return self.required().get(name) or self.optional().get(name, ("", name))[1]

    def optional(self) -> dict[str, tuple[str, str]]:
        """The packages that msmigrate uses if they are installed: name -> (extra, requirement)."""
        found: dict[str, tuple[str, str]] = {}
        extras = self.all(US)[0].metadata.get_all("Provides-Extra") if self.all(US) else None
        for extra in extras or []:
            if extra not in NOT_OWN:
                for item in self.requirements(US, frozenset({extra})):
                    if canonicalize_name(item.name) not in (*self.required(), US):
                        found.setdefault(canonicalize_name(item.name), (extra, plain(item)))
        return found

    def unmet(self) -> list[Unmet]:
        """The requirements of msmigrate, and of what it requires in turn, that are not met."""
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
    """Whether an installed version meets a requirement; a pre-release that somebody installed counts."""
    try:
        return requirement.specifier.contains(Version(version), prereleases=True)
    except InvalidVersion:
        return False


SHOWN = ("mindspore", "numpy", "torch", "torchvision", "onnx")  # each in a line; the others together
ALSO_MINDSPORE = ("mindspore-ascend", "mindspore-gpu", "mindspore-cpu", "mindspore-dev")  # install the same folder
PAIR = ("torch", "torchvision")
# what a machine that only has the other framework can do
HALVES = {
    "mindspore": "this machine has torch's half: record, convert, inspect, analyze, compare",
    "torch": "this machine has MindSpore's half: record --with, compare, train with a report, eval, export",
}
PYTHONS = ">=3.10,<3.13"  # those of msmigrate, where its own metadata are not there
SYSTEMS = {"linux": ("x86_64", "aarch64")}  # where MindSpore's wheels and msmigrate's workers run
COMPILED = re.compile(r"_c_expression\.(.+)")
# what a version outside the requirement does, where it was measured
BREAKS = {
    ("numpy", "2"): "MindSpore 2.10 is built against NumPy 1.x: under 2 a tensor + np.float32 is an ImportError, "
    "a mean over np.int64 a TypeError, at some later line",
}


def findings(machine: Machine, packages: Packages, target: str | None = None) -> Iterator[Finding]:
    """Python, msmigrate, each of SHOWN, what is optional, and all other requirements. target: where MindSpore has to
    train, if that is wanted here."""
    unmet = packages.unmet()
    yield _python(machine, packages)
    yield _msmigrate(machine, packages)
    for name in SHOWN:
        missing = packages.version(name) is None and name in packages.optional()
        if missing:
            yield _missing(name, machine, packages, target)
        else:
            yield _package(name, machine, packages, [one for one in unmet if one.name == name])
    for name, (extra, requirement) in packages.optional().items():
        if name in SHOWN:
            continue
        yield _optional(name, extra, requirement, machine, packages, [one for one in unmet if one.name == name])
    yield _others(machine, packages, [one for one in unmet if one.name not in (*SHOWN, *packages.optional())])


def _python(machine: Machine, packages: Packages) -> Finding:
    """The version against msmigrate's and MindSpore's metadata, and the platform against MindSpore's wheels."""
    here = f"{machine.python} at {machine.executable}, {machine.system} {machine.architecture}"
    for name in (US, "mindspore"):
        wanted = packages.requires_python(name) or (PYTHONS if name == US else "")
        try:
            fits = machine.python in SpecifierSet(wanted, prereleases=True)
        except InvalidSpecifier:
            continue
        if not fits:
            what = f"{name} {packages.version(name) or __version__} is for Python {wanted}"
            change = "Make an environment with Python 3.11, and install msmigrate there."
            return Finding("python", PROBLEM, f"{here}; {what}", change, "python3.11 -m venv .venv")
    if machine.architecture not in SYSTEMS.get(machine.system, ()):
        change = "Use Linux on x86_64 or aarch64, for which MindSpore has wheels."
        return Finding("python", PROBLEM, here, change)
    return Finding("python", OK, here)


def _msmigrate(machine: Machine, packages: Packages) -> Finding:
    installed = packages.version(US)
    if installed is None:
        change = "Install it, so that pip keeps what it requires: from its clone,"
        return Finding(
            US, WARNING, f"{__version__}, run from its folder and not installed", change, machine.install(".")
        )
    if installed != __version__:
        change = "Install the one that runs: from its clone,"
        return Finding(US, WARNING, f"{__version__} runs, but {installed} is installed", change, machine.install("."))
    return Finding(US, OK, __version__)


def _package(name: str, machine: Machine, packages: Packages, unmet: list[Unmet]) -> Finding:
    """One of SHOWN: installed once, whole, as it is required, and compiled for this Python."""
    version, wanted = packages.version(name), packages.wanted(name)
    if name == "mindspore":
        others = [other for other in ALSO_MINDSPORE if packages.version(other)]
        if others and version is not None:
            names = " ".join([name, *others])
            change = "Remove all of them, then install one: each has overwritten files of the others."
            command = f"{machine.pip} uninstall -y {names} && {machine.install(wanted)}"
            return Finding(name, PROBLEM, f"{' and '.join([name, *others])} are both installed", change, command)
    if version is None:
        return Finding(
            name, PROBLEM, "not installed", f"Install {name}.", _with_numpy(wanted, machine=machine, packages=packages)
        )
    twice = packages.twice(name)
    if twice:
        change = "An update was interrupted; install it again."
        command = machine.install(wanted, options="--force-reinstall --no-deps")
        return Finding(name, PROBLEM, f"installed twice, as {' and '.join(twice)}", change, command)
    if unmet:
        return _misfit(name, machine, packages, unmet)
    return (_compiled(machine, packages) if name == "mindspore" else None) or _builds(
        name, version, machine, packages
    ) or Finding(name, OK, version)  # fmt: skip


def _missing(name: str, machine: Machine, packages: Packages, target: str | None) -> Finding:
    """A package of SHOWN that only an extra installs: one framework is enough, and torch needs torchvision."""
    command = _with_numpy(packages.wanted(name), machine=machine, packages=packages)
    there = {each: packages.version(each) is not None for each in ("mindspore", *PAIR)}
    if name == "torchvision" and there["torch"]:
        return Finding(name, PROBLEM, "not installed, and torch's half needs it", f"Install {name}.", command)
    if name == "mindspore" and target is not None:
        return Finding(name, PROBLEM, f"not installed, and {target} is wanted", f"Install {name}.", command)
    if name in HALVES and not any(there[each] for each in HALVES):
        both = _with_numpy(*(packages.wanted(each) for each in there), machine=machine, packages=packages)
        found = "not installed, and neither is the other framework"
        return Finding(name, PROBLEM, found, "Install one of them, or both, as this machine has to do.", both)
    if name in HALVES:
        return Finding(name, OK, f"not installed: {HALVES[name]}; to have it too: {command}")
    extra = packages.optional()[name][0]
    return Finding(name, OK, f"not installed; only msmigrate[{extra}] needs it: {command}")


def _misfit(name: str, machine: Machine, packages: Packages, unmet: list[Unmet]) -> Finding:
    """A version that does not meet a requirement: msmigrate's own first, because the others follow from it."""
    first = min(unmet, key=lambda one: one.by != US)
    found = f"{first.there or 'not installed'}, but {first.by} {packages.version(first.by)} requires {first.wanted}"
    why = BREAKS.get((name, str(first.there).split(".")[0]), "")
    wanted = packages.wanted(name)
    mended = first.wanted if wanted == name else wanted
    both = dict.fromkeys([*([packages.wanted(first.by)] * (first.by != US)), mended])
    change = f"Install {'one' if len(both) == 1 else 'versions'} that fit{'s' * (len(both) == 1)}."
    return Finding(name, PROBLEM, f"{found}{f': {why}' * bool(why)}", change, machine.install(*both))


def _compiled(machine: Machine, packages: Packages) -> Finding | None:
    """MindSpore's own library is of one Python: a folder that another Python's pip has filled does not load."""
    folder = packages.folder("mindspore", "mindspore")
    wanted = packages.wanted("mindspore")
    libraries = [] if folder is None else sorted(path.name for path in folder.glob("_c_expression.*"))
    command = machine.install(wanted, options="--force-reinstall --no-deps")
    version = packages.version("mindspore")
    if not libraries:
        change = "Its files are gone or damaged; install it again."
        return Finding("mindspore", PROBLEM, f"{version}, without its library in {folder}", change, command)
    if f"_c_expression{machine.extension}" in libraries or "_c_expression.so" in libraries:
        return None
    built = COMPILED.sub(r"\1", libraries[0])
    found = f"{version}, compiled as {built}, and this Python loads {machine.extension.lstrip('.')}"
    return Finding("mindspore", PROBLEM, found, "Install the wheel of this Python.", command)


def _builds(name: str, version: str, machine: Machine, packages: Packages) -> Finding | None:
    """torch and torchvision of different builds (+cpu, +cu126): torchvision's operators do not load."""
    versions = {one: packages.version(one) or "" for one in PAIR}
    labels = {one: text.partition("+")[2] for one, text in versions.items()}
    if name != "torchvision" or not all(labels.values()) or len(set(labels.values())) == 1:
        return None
    found = f"{version}, but torch is {versions['torch']}: not of the same build"
    change = f"Install torchvision from the index that torch's +{labels['torch']} came from; or both anew:"
    both = [packages.wanted(one) for one in PAIR]
    return Finding(name, PROBLEM, found, change, machine.install(*both, options="--force-reinstall"))


def _optional(
    name: str, extra: str, requirement: str, machine: Machine, packages: Packages, unmet: list[Unmet]
) -> Finding:
    version = packages.version(name)
    if version is None:
        return Finding(name, OK, f"not installed; only msmigrate[{extra}] needs it: {machine.install(requirement)}")
    if unmet:
        first = unmet[0]
        found = f"{version}, but {first.by} requires {first.wanted}"
        return Finding(name, WARNING, found, "Install one that fits.", machine.install(requirement))
    return Finding(name, OK, version)


def _others(machine: Machine, packages: Packages, unmet: list[Unmet]) -> Finding:
    """The packages that are not shown one by one, and what all of them require in their turn."""
    required = packages.required()
    if not required:
        return Finding("others", WARNING, "unknown: msmigrate is not installed, so nothing says what it requires")
    if not unmet:
        names = ", ".join(f"{name} {packages.version(name)}" for name in sorted(set(required) - set(SHOWN)))
        return Finding("others", OK, names)
    listed = "; ".join(f"{one.by} requires {one.wanted}, {one.there or 'nothing'} is installed" for one in unmet[:3])
    more = f"; and {len(unmet) - 3} more" if len(unmet) > 3 else ""
    needed = dict.fromkeys(text for one in unmet for text in _needed(one, packages))
    return Finding(
        "others",
        PROBLEM,
        listed + more,
        "Install what is missing.",
        _with_numpy(*needed, machine=machine, packages=packages),
    )


def _with_numpy(*wanted: str, machine: Machine, packages: Packages) -> str:
    """The command that installs these, and keeps NumPy below 2: otherwise pip takes the newest for them."""
    numpy = [packages.required()["numpy"]] if "numpy" in packages.required() else []
    return machine.install(*dict.fromkeys([*wanted, *numpy]))


def _needed(one: Unmet, packages: Packages) -> list[str]:
    own = [] if one.by == US or one.there is None else [packages.wanted(one.by)]
    wanted = packages.wanted(one.name)
    return [*own, one.wanted if wanted == one.name else wanted]
