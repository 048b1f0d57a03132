"""The user's map: pairs of a pattern over torch names and the MindSpore name it stands for.

    - {torch: 'layer(\\d)\\.(\\d+)\\.downsample\\.0', mindspore: 'stages.\\1.\\2.down_sample_layer.0'}
    - {torch: 'fc', mindspore: 'end_point'}

torch: a regular expression that has to match a whole module path or a whole parameter name. What lies below a mapped
module goes along under its own name where the net has it. The first pair that matches counts, and it wins over
everything alignment finds by itself.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import warnings
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import processes
from ..errors import BadInput
from ..printable import quoted

LONGEST = 1000  # characters of a pattern
MOST = 1_000_000  # bytes of a file
SECONDS = 4.0  # for all patterns of a map together, and all names
FORM = "a list of {torch: REGEX, mindspore: NAME}"
WORKER = Path(__file__).with_name("pattern_worker.py")
HINT_WORK = 10_000_000  # letters of a name times those that it is compared with: about a second


@dataclass(frozen=True)
class Rule:
    """One pair, and the line where it stands."""

    torch: str
    mindspore: str
    line: int
    file: Path

    @property
    def where(self) -> str:
        """File and line."""
        return f"{self.file}:{self.line}"


def read_rules(path: Path | None) -> list[Rule]:
    """The pairs of a map file, none without one. Raises BadInput with file and line."""
    if path is None:
        return []
    import yaml  # here, for it would take a sixth of the time of converting a small checkpoint

    from .. import yaml_reader

    node = yaml_reader.compose(path, what="a map of names", most=MOST)
    if node is None:
        return []
    if not isinstance(node, yaml.SequenceNode):
        raise BadInput(f"{path}: expected {FORM}")
    until = time.monotonic() + SECONDS
    return [_rule(path, item, until) for item in node.value]


def _rule(path: Path, node: Any, until: float) -> Rule:
    import yaml

    line = node.start_mark.line + 1
    scalars = isinstance(node, yaml.MappingNode) and all(
        isinstance(part, yaml.ScalarNode) for pair in node.value for part in pair
    )
    fields = {key.value: value.value for key, value in node.value} if scalars else {}
    if fields.keys() != {"torch", "mindspore"}:
        raise BadInput(f"{path}:{line}: expected {{torch: REGEX, mindspore: NAME}}")
    if len(fields["torch"]) > LONGEST or len(fields["mindspore"]) > LONGEST:
        raise BadInput(f"{path}:{line}: a pattern has at most {LONGEST} characters")
    rule = Rule(fields["torch"], fields["mindspore"], line, path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a later Python may read otherwise
            re.compile(rule.torch)
    except (re.error, RecursionError, OverflowError) as error:
        raise BadInput(f"{rule.where}: {quoted(rule.torch, 300)} is no regular expression: {error}") from None
    if time.monotonic() > until:
        raise BadInput(f"{rule.where}: up to here the patterns take longer than {SECONDS:g} s to read: write fewer")
    return rule


def targets(rules: Sequence[Rule], names: Collection[str]) -> dict[str, tuple[Rule, str]]:
    """Name -> the first rule that matches it, and what that makes of it; names that none matches are left out.

    Raises BadInput for a rule whose MindSpore name does not fit its pattern, and for a pattern that takes too long.
    """
    if not rules or not names:
        return {}
    asked = {"rules": [(rule.torch, rule.mindspore) for rule in rules], "names": list(names)}
    command = [sys.executable, "-I", "-S", "-W", "ignore", str(WORKER)]
    try:
        done = processes.run(command, SECONDS, json.dumps(asked))
    except subprocess.TimeoutExpired as error:
        rule = _begun(rules, (error.stdout or b"").decode())
        raise BadInput(
            f"{rule.where}: {quoted(rule.torch, 300)} takes longer than {SECONDS:g} s to match: write it "
            "without a repetition inside of a repetition, as in (a+)+"
        ) from None
    if done.returncode:
        rule = _begun(rules, done.stdout)
        raise BadInput(
            f"{rule.where}: {quoted(rule.torch, 300)} takes too much memory to match: write it without {{…}} in {{…}}"
        )
    found = {}
    for name, (number, target, *why) in json.loads(done.stdout.splitlines()[-1]).items():
        rule = rules[number]
        if target is None:
            raise BadInput(f"{rule.where}: {quoted(rule.mindspore, 300)} does not fit its pattern: {why[0]}")
        found[name] = (rule, target)
    return found


def _begun(rules: Sequence[Rule], output: str) -> Rule:
    """The rule with which the worker began last."""
    lines = output.split()
    return rules[int(lines[-1])] if lines else rules[0]


class Names:
    """What the rules of a map make of module paths and tensor names; the names of the net need not be known."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = rules
        self.used: set[int] = set()
        self._paths: dict[str, str] = {"": ""}
        self._targets: dict[str, tuple[Rule, str] | None] = {}

    def match(self, names: Iterable[str]) -> None:
        """Match the names of tensors, and the modules around them, all at once. Raises BadInput as `targets` does."""
        if self.rules:
            new = dict.fromkeys(head for name in names for head in _heads(name) if head not in self._targets)
            found = targets(self.rules, new)
            self._targets.update((name, found.get(name)) for name in new)

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
                hint = near(rule.torch, modules)
                raise BadInput(f"{rule.where}: {quoted(rule.torch, 300)} matches no name of the checkpoint{hint}")

    def _target(self, name: str) -> str | None:
        if not self.rules:
            return None
        if name not in self._targets:
            self.match([name])
        found = self._targets[name]
        if found is None:
            return None
        rule, target = found
        self.used.add(rule.line)
        return target


def _heads(name: str) -> Iterable[str]:
    """A name, and those of the modules around it."""
    while name:
        yield name
        name = name.rpartition(".")[0]


def apply(rules: list[Rule], ours: dict[str, bool], theirs: set[str]) -> dict[str, str]:
    """Torch name -> MindSpore name, as the rules say.

    ours: every torch name, modules and tensors; the value says whether it is a module, below which names go along.
    theirs: every MindSpore name. Raises BadInput for a rule that matches nothing, or leads to a name that is not
    there, and where two torch names are led to one.
    """
    found: dict[str, str] = {}
    matched = targets(rules, ours)
    for name in [name for name in ours if name in matched]:
        rule, target = matched[name]
        if target not in theirs:
            hint = near(target, theirs)
            raise BadInput(
                f"{rule.where}: {name} would be {quoted(target, 300)}, which the MindSpore net does not have{hint}"
            )
        found[name] = target
    used = {rule.line for rule, _ in matched.values()}
    for rule in rules:
        if rule.line not in used:
            hint = near(rule.torch, ours)
            raise BadInput(f"{rule.where}: {quoted(rule.torch, 300)} matches no name of the torch model{hint}")
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
    """The names that look most like one, as the end of a message; nothing where they are too many to compare."""
    import difflib

    there = list(among)
    if len(name) * sum(map(len, there)) > HINT_WORK:
        return ""
    close = difflib.get_close_matches(name, there, n=3, cutoff=0.5)
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
