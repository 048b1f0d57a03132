"""The user's --map: read, apply, propose (--write-map).

Modules with the same name on both sides form a pair. The others are aligned in their order on both sides, where their
tensors have the same names within the module and the same shapes. That is a guess: two layers of one shape may have
changed places, so a map is written for the user to check, and never used unseen.

    - {torch: 'layer(\\d)\\.(\\d+)\\.downsample\\.0', mindspore: 'stages.\1.\2.down_sample_layer.0'}
    - {torch: 'fc', mindspore: 'end_point'}
    - {torch: 'attn\\.qkv\\.weight', mindspore: 'q.weight + k.weight + v.weight'}
    - {torch: 'mlp\\.up\\.weight', mindspore: 'both.weight [2 of 2]'}

torch: a regular expression that has to match a whole module path or a whole parameter name. What lies below a mapped
module is mapped with it, under its own name, where the net has it. The first pair that matches counts, and it wins over
everything alignment finds by itself. A parameter may be several of the net's joined one after the other, or a part of
one.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import warnings
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, NamedTuple

from ... import processes
from ...errors import BadInput
from ...mappings.state_names import layer_states
from ...mappings.verb_registry import SHAPES
from ...printable import quoted
from . import plan as plans
from .formats.reader import Shape
from .plan import Module, Net, Owners, split

Signature = tuple[tuple[str, Shape], ...]  # the tensors of one module, under MindSpore's names within it


class Inferred(NamedTuple):
    """Pairs of (torch path, MindSpore path, how it was found), and the paths on each side without a pair."""

    pairs: list[tuple[str, str, str]]
    ours: list[str]
    theirs: list[str]


def infer(shapes: Mapping[str, Shape], owners: Owners | None, net: Net) -> Inferred:
    """Pair the modules of a checkpoint (tensor name -> shape) with those of a net.

    owners: module path -> class and bases, where they are known; else every class that the tensors allow is tried.
    """
    cells: dict[str, dict[str, Shape]] = {}
    for name, (shape, _) in net.items():
        path, leaf = split(name)
        cells.setdefault(path, {})[leaf] = shape
    modules = [
        (module.path, found)
        for module in plans.modules(shapes)
        if (found := _signatures(module, (owners or {}).get(module.path)))
    ]
    theirs = [(path, _signature(leaves)) for path, leaves in cells.items()]
    by_path = dict(theirs)
    pairs = [(path, path, "same name") for path, found in modules if by_path.get(path) in found]
    same = {path for path, _, _ in pairs}
    left = [(path, found) for path, found in modules if path not in same]
    right = [(path, signature) for path, signature in theirs if path not in same]
    chosen = _aligned(left, right)
    pairs += [(left[i][0], right[j][0], "by order and shapes") for i, j in chosen]
    ours, others = {i for i, _ in chosen}, {j for _, j in chosen}
    return Inferred(
        pairs,
        [path for i, (path, _) in enumerate(left) if i not in ours],
        [path for j, (path, _) in enumerate(right) if j not in others],
    )


def _aligned(
    left: Sequence[tuple[str, list[Signature]]], right: Sequence[tuple[str, Signature]]
) -> list[tuple[int, int]]:
    """The longest run of pairs that keeps the order of both sides."""
    known = {signature for _, signature in right}
    # of a module's possible classes the one that the net has, else the first
    ours = [next((found for found in signatures if found in known), signatures[0]) for _, signatures in left]
    matcher = SequenceMatcher(None, ours, [signature for _, signature in right], autojunk=False)
    return [
        (block.a + offset, block.b + offset) for block in matcher.get_matching_blocks() for offset in range(block.size)
    ]


def _signatures(module: Module, classes: Sequence[str] | None) -> list[Signature]:
    """The names and shapes of the module's tensors in MindSpore, for each class that it may be of."""
    names = [classes] if classes else [family.classes for family in module.families or ()]
    found = []
    for candidates in names:
        known = layer_states()
        states = next((known[name] for name in candidates if name in known), None)
        if states is None or not set(module.leaves) <= set(states):
            continue
        there = {
            split(state.mindspore)[1]: SHAPES[state.verb].forward(shape) if state.verb else shape
            for leaf, shape in module.leaves.items()
            if (state := states[leaf]).mindspore is not None
        }
        found.append(_signature(there))
    return found or [_signature(module.leaves)]


def _signature(leaves: Mapping[str, Shape]) -> Signature:
    return tuple(sorted(leaves.items()))


LONGEST = 1000  # characters of a pattern
MOST = 1_000_000  # bytes of a file
SECONDS = 4.0  # for all patterns of a map together, and all names
FORM = "a list of {torch: REGEX, mindspore: NAME}"
WORKER = Path(__file__).with_name("pattern_worker.py")
HINT_WORK = 10_000_000  # letters of a name times those that it is compared with: about a second


@dataclass(frozen=True)
class Rule:
    """One pair, and the line where it stands; bare: of modules without tensors, which no checkpoint names."""

    torch: str
    mindspore: str
    line: int
    file: Path
    bare: bool = False

    @property
    def where(self) -> str:
        """File and line."""
        return f"{self.file}:{self.line}"


def read_rules(path: Path | None) -> list[Rule]:
    """The pairs of a map file, none without one. Raises BadInput with file and line."""
    if path is None:
        return []
    import yaml  # only when needed: it takes a sixth of the time of converting a small checkpoint

    from ... import yaml_reader

    node = yaml_reader.compose(path, what="a map of names", most=MOST)
    if node is None:
        return []
    if not isinstance(node, yaml.SequenceNode):
        raise BadInput(f"{path}: expected {FORM}")
    until = time.monotonic() + SECONDS
    rules = [_rule(path, item, until) for item in node.value]
    first: dict[str, Rule] = {}
    for rule in rules:
        known = first.setdefault(rule.mindspore, rule)
        if known is not rule and "\\" not in rule.mindspore:  # a target without groups is a single name
            raise BadInput(f"{rule.where}: {quoted(rule.mindspore, 300)} is already the target of line {known.line}")
    return rules


def _rule(path: Path, node: Any, until: float) -> Rule:
    import yaml

    line = node.start_mark.line + 1
    scalars = isinstance(node, yaml.MappingNode) and all(
        isinstance(part, yaml.ScalarNode) for pair in node.value for part in pair
    )
    fields = {key.value: value.value for key, value in node.value} if scalars else {}
    bare = fields.pop("tensors", "") if fields.get("tensors") == "none" else ""
    if fields.keys() != {"torch", "mindspore"}:
        unknown = next((key for key in fields if key not in ("torch", "mindspore")), None)
        key = "" if unknown is None else f", and no {quoted(unknown, 60)}"
        key = ", and of tensors only: none" if unknown == "tensors" else key
        raise BadInput(f"{path}:{line}: expected {{torch: REGEX, mindspore: NAME}}{key}")
    if len(fields["torch"]) > LONGEST or len(fields["mindspore"]) > LONGEST:
        raise BadInput(f"{path}:{line}: a pattern has at most {LONGEST} characters")
    rule = Rule(fields["torch"], fields["mindspore"], line, path, bool(bare))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about syntax that a later Python may read differently
            re.compile(rule.torch)
    except (re.error, RecursionError, OverflowError) as error:
        raise BadInput(f"{rule.where}: {quoted(rule.torch, 300)} is no regular expression: {error}") from None
    if time.monotonic() > until:
        raise BadInput(f"{rule.where}: up to here the patterns take longer than {SECONDS:g} s to read: write fewer")
    return rule


def targets(rules: Sequence[Rule], names: Collection[str]) -> dict[str, tuple[Rule, str]]:
    """Name -> the first rule that matches it, and the new name; names that no rule matches are left out.

    Raises BadInput for a rule whose MindSpore name does not fit its pattern, and for a pattern that takes too long.
    """
    if not rules or not names:
        return {}
    request = {"rules": [(rule.torch, rule.mindspore) for rule in rules], "names": list(names)}
    command = [sys.executable, "-I", "-S", "-W", "ignore", str(WORKER)]
    try:
        done = processes.run(command, SECONDS, json.dumps(request))
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
    """The new module paths and tensor names by the rules of a map; the names of the net need not be known."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = [rule for rule in rules if not rule.bare]
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
        """A module's path in MindSpore, by the first rule that matches it or the nearest module above it."""
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
        # a rule for a module counts as used even where the modules inside have rules of their own, which come first
        matched = {found[0].line for found in self._targets.values() if found is not None}
        for rule in self.rules:
            if rule.line not in self.used | matched:
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
        if parts_of(target) != [target]:
            raise BadInput(
                f"{rule.where}: {quoted(target, 300)}: a checkpoint's tensors are converted whole; such pairs are for "
                "parity-step"
            )
        self.used.add(rule.line)
        return target


def _heads(name: str) -> Iterable[str]:
    """A name, and those of the modules around it."""
    while name:
        yield name
        name = name.rpartition(".")[0]


def apply(rules: list[Rule], ours: dict[str, bool], theirs: set[str]) -> dict[str, str]:
    """Torch name -> MindSpore name, as the rules say.

    ours: every torch name, modules and tensors; the value says whether it is a module, whose map applies to the names
    below it. theirs: every MindSpore name. Raises BadInput for a rule that matches nothing, or leads to a name that the
    net does not have, and where two torch names would become one.
    """
    found: dict[str, str] = {}
    matched = targets(rules, ours)
    for name in [name for name in ours if name in matched]:
        rule, target = matched[name]
        for part in parts_of(target):
            if part not in theirs:
                hint = near(part, theirs)
                raise BadInput(
                    f"{rule.where}: {name} would be {quoted(part, 300)}, which the MindSpore net does not have{hint}"
                )
        if parts_of(target) != [target] and ours[name]:
            raise BadInput(f"{rule.where}: {name} is a module: only parameters can have parts; write a pair for each")
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


TOGETHER = " + "
PART = re.compile(r"(.+) \[(\d{1,2}) of (\d{1,2})\]")  # of one tensor


def parts_of(target: str) -> list[str]:
    """The MindSpore tensors that a torch parameter is made of, or is a part of; else the name itself."""
    part = PART.fullmatch(target)
    return [part[1]] if part else target.split(TOGETHER)


def near(name: str, among: Iterable[str]) -> str:
    """The names that look most like one, as the end of a message; nothing where they are too many to compare."""
    import difflib

    there = list(among)
    if len(name) * sum(map(len, there)) > HINT_WORK:
        return ""
    close = difflib.get_close_matches(name, there, n=3, cutoff=0.5)
    return f"; the nearest: {', '.join(close)}" if close else ""


def write_rules(
    path: Path,
    pairs: Iterable[tuple[str, str, str]],
    bare: Container[str] = (),
    open_: Iterable[tuple[str, Iterable[tuple[str, str]]]] = (),
) -> None:
    """Write (torch name, MindSpore name, how it was found) as a map to edit; bare: the torch names of modules without
    tensors, which a conversion of a checkpoint ignores; open_: what is not settled, in words, with the possible pairs,
    written as comments. Raises BadInput where the file cannot be written."""
    lines = ["# What msmigrate aligned; edit it and pass it with --map. torch is a regular expression.\n"]
    lines += [f"- {line(ours, theirs, ours in bare)}  # {how}\n" for ours, theirs, how in pairs]
    for why, candidates in open_:
        lines.append(f"# Open: {' '.join(why.split())}\n")
        lines += [f"# - {line(ours, theirs)}\n" for ours, theirs in candidates]
    try:
        path.write_text("".join(lines), encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror or error}") from error


def line(ours: str, theirs: str, bare: bool = False) -> str:
    """One pair as it stands in a map; bare: of modules without tensors."""
    pattern, target = re.escape(ours), theirs.replace("\\", "\\\\")
    return f"{{torch: {_quoted(pattern)}, mindspore: {_quoted(target)}{', tensors: none' * bare}}}"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
