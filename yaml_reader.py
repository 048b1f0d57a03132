"""YAML that anyone may have written: data only, small, shallow, every key once, and numbers that are numbers.

PyYAML's safe loader executes nothing. This reader also refuses what makes a small file a large tree, or makes PyYAML
slow or crash: deep nesting, pages of aliases, tags, numbers of thousands of digits. It refuses repeated keys, of which
the last would win in silence, and reads `1e-4` as the number that YAML 1.2 says it is; PyYAML's YAML 1.1 takes
it for a text.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import yaml
from yaml._yaml import CParser
from yaml.composer import Composer
from yaml.constructor import SafeConstructor
from yaml.resolver import Resolver

from .errors import BadInput
from .input_files import read_text
from .printable import quoted

DEEPEST = 20
MOST_NODES = 100_000  # with aliases followed: about a second's work

_FLOAT = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)[eE][-+]?\d+|[-+]?(\d+\.\d*|\.\d+)|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_MERGE = "tag:yaml.org,2002:merge"


class _Loader(Composer, CParser, SafeConstructor, Resolver):
    """The safe loader with the refusals above; libyaml finds the tokens, and their nodes are counted here."""

    def __init__(self, text: str, aliases: bool) -> None:
        CParser.__init__(self, text)
        Composer.__init__(self)
        SafeConstructor.__init__(self)
        Resolver.__init__(self)
        self.aliases = aliases
        self.depth = 0
        self.nodes = 0
        self.within: dict[str, int] = {}  # anchor -> how many nodes its value has, once it is complete

    def compose_node(self, parent: Any, index: Any) -> Any:
        event: Any = self.peek_event()
        is_alias = self.check_event(yaml.AliasEvent)
        if is_alias and not self.aliases:
            raise _refused("aliases are not read: write the value out", event)
        if is_alias and event.anchor in self.anchors and event.anchor not in self.within:
            raise _refused(f"the alias *{event.anchor} stands inside the value that it stands for", event)
        if not is_alias and event.tag is not None:
            raise _refused(f"tags such as {event.tag[:40]} are not read", event)
        if self.depth == DEEPEST:
            raise _refused(f"nested more than {DEEPEST} deep", event)
        before = self.nodes
        self.nodes += self.within.get(event.anchor, 0) if is_alias else 1
        if self.nodes > MOST_NODES:
            how = " (an alias counts as the value that it stands for)" if is_alias else ""
            raise _refused(f"more than {MOST_NODES:,} values{how}", event)
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        if not is_alias and event.anchor is not None:
            self.within[event.anchor] = self.nodes - before
        return node

    def compose_mapping_node(self, anchor: Any) -> Any:
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _refused("a key cannot be a list or a mapping", key)
            if key.tag == _MERGE and not self.aliases:
                raise _refused("<< is not read: write the keys out", key)
            if key.value in seen:
                raise _refused(f"the key {quoted(key.value)} is here twice", key)
            seen.add(key.value)
        return node


def _refused(problem: str, at: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=at.start_mark)


def _whole(loader: _Loader, node: yaml.ScalarNode) -> int:
    """A decimal number; YAML 1.1 would read 010 as eight."""
    text = loader.construct_scalar(node)
    if not re.fullmatch(r"[-+]?\d{1,18}", text):
        raise _refused("not a whole number of at most 18 digits", node)
    return int(text)


def _float(loader: _Loader, node: yaml.ScalarNode) -> float:
    """A number, or what is written as infinity; 1e999 is neither."""
    text = loader.construct_scalar(node)
    text = text.lower()
    number = float(text.replace(".inf", "inf").replace(".nan", "nan"))
    if math.isinf(number) and "inf" not in text:
        raise _refused("a number that is too large", node)
    return number


# first character -> [(tag, pattern)]; without YAML 1.1's numbers and dates, with YAML 1.2's numbers
_NUMBERS = {"tag:yaml.org,2002:float": _FLOAT, "tag:yaml.org,2002:int": re.compile(r"[-+]?\d+")}
_GONE = (*_NUMBERS, "tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:value")
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _GONE]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for _tag, _pattern in _NUMBERS.items():
    _Loader.add_implicit_resolver(_tag, re.compile(rf"^({_pattern.pattern})$"), list("-+0123456789."))
_Loader.yaml_constructors = {
    **SafeConstructor.yaml_constructors,
    "tag:yaml.org,2002:int": _whole,
    "tag:yaml.org,2002:float": _float,
}


def read(
    path: Path, *, what: str, most: int, error: type[BadInput] = BadInput, aliases: bool = False
) -> tuple[Any, yaml.Node | None]:
    """The value of a file of YAML, and its tree, which knows the lines; None and None for an empty file.

    what: what the file is, for messages ("a recipe"). most: bytes it may have. aliases: whether it may have any.
    Raises `error` with the file, and the line where there is one, for everything that cannot be read.
    """
    loader, tree = _composed(path, what, most, error, aliases)
    try:
        return (loader.construct_document(tree) if tree is not None else None), tree
    except (yaml.YAMLError, ValueError, OverflowError) as refused:
        mark = getattr(refused, "problem_mark", None)
        keys = _keys_to(tree, mark.index) if tree is not None and mark is not None else []
        raise _located(path, what, error, refused, f", at {'.'.join(keys)[:200]}" if keys else "") from refused


def compose(path: Path, *, what: str, most: int, error: type[BadInput] = BadInput) -> yaml.Node | None:
    """The tree of a file of YAML, in which every scalar is a text; the arguments and errors are those of `read`."""
    return _composed(path, what, most, error, False)[1]


def _composed(
    path: Path, what: str, most: int, error: type[BadInput], aliases: bool
) -> tuple[_Loader, yaml.Node | None]:
    try:
        text = read_text(path, most)
    except FileNotFoundError:
        raise error(f"{path}: there is no such file") from None
    except (OSError, ValueError) as refused:
        raise error(f"{path}: cannot be read: {getattr(refused, 'strerror', None) or refused}") from refused
    try:
        loader = _Loader(text, aliases)
        return loader, loader.get_single_node()
    except (yaml.YAMLError, ValueError) as refused:
        mark = getattr(refused, "problem_mark", None)
        lines = text.splitlines()[mark.line : mark.line + 1] if mark is not None else []
        around = "".join(lines)[max(0, mark.column - 60) :][:80].strip() if mark is not None else ""
        raise _located(path, what, error, refused, f", in {ascii(around)[:200]}" if around else "") from refused


def _located(path: Path, what: str, error: type[BadInput], refused: Exception, place: str) -> BadInput:
    """The error with file, line, reason, and a nearer place."""
    mark = getattr(refused, "problem_mark", None) or getattr(refused, "context_mark", None)
    reason = getattr(refused, "problem", None) or getattr(refused, "context", None) or str(refused)
    if reason == "exceeded maximum nesting depth":  # libyaml's own limit, which its lookahead meets before ours
        reason = f"nested more than {DEEPEST} deep"
    if reason.startswith("but "):  # the context has the beginning of the sentence
        reason = f"{refused.context}, {reason}"  # type: ignore[attr-defined]
    where = f"{path}:{mark.line + 1}" if mark is not None else str(path)
    return error(f"{where}: not YAML that {what} may hold: {' '.join(reason.split())[:300]}{place}")


def _keys_to(node: yaml.Node, index: int) -> list[str]:
    """The keys on the way to the value that begins at this character of the text."""
    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    if isinstance(node, yaml.SequenceNode):
        pairs = [(None, item) for item in node.value]
    for place, (key, item) in enumerate(pairs):
        if item.start_mark.index <= index < max(item.end_mark.index, item.start_mark.index + 1):
            return [str(key.value) if key is not None else str(place), *_keys_to(item, index)]
    return []


def line(node: yaml.Node | None, loc: tuple[Any, ...]) -> int:
    """The line, counted from 1, of the deepest node on the way to `loc`."""
    if node is None:
        return 1
    number = node.start_mark.line + 1
    for part in loc:
        if isinstance(node, yaml.MappingNode):
            pair = next(((k, v) for k, v in reversed(node.value) if k.value == str(part)), None)
            if pair is None:
                break
            number, node = pair[0].start_mark.line + 1, pair[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            number = node.start_mark.line + 1
    return number
