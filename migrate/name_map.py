"""The user's map: pairs of a pattern over torch names and the MindSpore name it stands for.

    - {torch: 'layer(\\d)\\.(\\d+)\\.downsample\\.0', mindspore: 'stages.\\1.\\2.down_sample_layer.0'}
    - {torch: 'fc', mindspore: 'end_point'}

torch: a regular expression that has to match a whole module path or a whole parameter name. What lies below a mapped
module goes along under its own name where the net has it. The first pair that matches counts, and it wins over
everything alignment finds by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import BadInput

LONGEST = 1000  # characters of a pattern
MOST = 1_000_000  # bytes of a file
FORM = "a list of {torch: REGEX, mindspore: NAME}"


@dataclass(frozen=True)
class Rule:
    """One pair, and the line where it stands."""

    torch: re.Pattern[str]
    mindspore: str
    line: int
    file: Path

    def target(self, name: str) -> str | None:
        """What this pair makes of a torch name, or None where it does not match. Raises BadInput."""
        found = self.torch.fullmatch(name)
        if found is None:
            return None
        try:
            return found.expand(self.mindspore)
        except (re.error, IndexError) as error:
            raise BadInput(f"{self.where}: {self.mindspore!r} does not fit its pattern: {error}") from None

    @property
    def where(self) -> str:
        """File and line."""
        return f"{self.file}:{self.line}"


def read_rules(path: Path | None) -> list[Rule]:
    """The pairs of a map file, none without one. Raises BadInput with file and line."""
    if path is None:
        return []
    import yaml  # here, for it would take a sixth of the time of converting a small checkpoint

    try:
        if path.stat().st_size > MOST:
            raise BadInput(f"{path}: a map of names has less than {MOST} bytes")
        node = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    except FileNotFoundError:
        raise BadInput(f"there is no file {path}") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError, ValueError) as error:
        raise BadInput(f"{path}: is no YAML file: {' '.join(str(error).split())[:300]}") from None
    if node is None:
        return []
    if not isinstance(node, yaml.SequenceNode):
        raise BadInput(f"{path}: expected {FORM}")
    return [_rule(path, item) for item in node.value]


def _rule(path: Path, node: Any) -> Rule:
    import yaml

    line = node.start_mark.line + 1
    scalars = isinstance(node, yaml.MappingNode) and all(
        isinstance(part, yaml.ScalarNode) for pair in node.value for part in pair
    )
    fields = {key.value: value.value for key, value in node.value} if scalars else {}
    if fields.keys() != {"torch", "mindspore"} or len(node.value) != 2:
        raise BadInput(f"{path}:{line}: expected {{torch: REGEX, mindspore: NAME}}")
    if len(fields["torch"]) > LONGEST or len(fields["mindspore"]) > LONGEST:
        raise BadInput(f"{path}:{line}: a pattern has at most {LONGEST} characters")
    try:
        return Rule(re.compile(fields["torch"]), fields["mindspore"], line, path)
    except (re.error, RecursionError, OverflowError) as error:
        raise BadInput(f"{path}:{line}: {fields['torch']!r} is no regular expression: {error}") from None


class Names:
    """What the rules of a map make of module paths and tensor names; the names of the net need not be known."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = rules
        self.used: set[int] = set()
        self._paths: dict[str, str] = {"": ""}

    def path(self, path: str) -> str:
        """A module's path in MindSpore: as the first rule says that matches it, or the nearest module above it."""
        if path not in self._paths:
            target = self._target(path)
            if target is None:
                above, _, own = path.rpartition(".")
                mapped = self.path(above)
                target = f"{mapped}.{own}" if mapped else own
            self._paths[path] = target
        return self._paths[path]

    def tensor(self, name: str) -> str | None:
        """The name that a rule gives this very tensor, or None."""
        return self._target(name)

    def check(self, names: Iterable[str]) -> None:
        """Raise BadInput for a rule that matched nothing; names: of the tensors, for a hint."""
        for rule in self.rules:
            if rule.line not in self.used:
                modules = {name.rpartition(".")[0] for name in names} - {""}
                hint = near(rule.torch.pattern, modules)
                raise BadInput(f"{rule.where}: {rule.torch.pattern!r} matches no name of the checkpoint{hint}")

    def _target(self, name: str) -> str | None:
        for rule in self.rules:
            target = rule.target(name)
            if target is not None:
                self.used.add(rule.line)
                return target
        return None


def apply(rules: list[Rule], ours: dict[str, bool], theirs: set[str]) -> dict[str, str]:
    """Torch name -> MindSpore name, as the rules say.

    ours: every torch name, modules and tensors; the value says whether it is a module, below which names go along.
    theirs: every MindSpore name. Raises BadInput for a rule that matches nothing, or leads to a name that is not
    there, and where two torch names are led to one.
    """
    found: dict[str, str] = {}
    used: set[int] = set()
    for name in ours:
        for rule in rules:
            target = rule.target(name)
            if target is None:
                continue
            used.add(rule.line)
            if target not in theirs:
                hint = near(target, theirs)
                raise BadInput(f"{rule.where}: {name} would be {target!r}, which the MindSpore net does not have{hint}")
            found[name] = target
            break
    for rule in rules:
        if rule.line not in used:
            hint = near(rule.torch.pattern, ours)
            raise BadInput(f"{rule.where}: {rule.torch.pattern!r} matches no name of the torch model{hint}")
    for name in [n for n in ours if n not in found]:  # below a mapped module
        head = name
        while head and head not in found:
            head = head.rpartition(".")[0]
        if head and ours.get(head) and found[head] + name[len(head) :] in theirs:
            found[name] = found[head] + name[len(head) :]
    taken: dict[str, str] = {}
    for name, target in found.items():
        if target in taken:
            raise BadInput(f"{rules[0].file}: {taken[target]} and {name} would both be {target}")
        taken[target] = name
    return found


def near(name: str, among: Iterable[str]) -> str:
    """The names that look most like one, as the end of a message."""
    import difflib

    close = difflib.get_close_matches(name, list(among), n=3, cutoff=0.5)
    return f"; the nearest: {', '.join(close)}" if close else ""


def write_rules(path: Path, pairs: Iterable[tuple[str, str, str]]) -> None:
    """Write (torch name, MindSpore name, how it was found) as a map to edit. Raises BadInput where that cannot be."""
    lines = ["# What msmigrate aligned; edit it, and give it back with --map. torch is a regular expression.\n"]
    for ours, theirs, how in pairs:
        pattern, target = re.escape(ours), theirs.replace("\\", "\\\\")
        pair = f"torch: {_quoted(pattern)}, mindspore: {_quoted(target)}"
        lines.append(f"- {{{pair}}}  # {how}\n")
    try:
        path.write_text("".join(lines), encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror or error}") from error


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
