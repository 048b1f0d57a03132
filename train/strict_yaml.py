"""YAML as a recipe needs it: data only, small, every key once, and numbers that are numbers.

PyYAML's safe loader never executes anything. Beyond it this reader refuses aliases (a page of them stands for
gigabytes), repeated keys (the last would win in silence) and deep nesting, and reads `1e-4` as the number that YAML
1.2 says it is; PyYAML's YAML 1.1 takes it for a text.
"""

from __future__ import annotations

import math
import re
import unicodedata
from pathlib import Path
from typing import Any

import yaml

from ..errors import BadRecipe

LARGEST = 256 * 1024  # bytes; PyYAML reads about 200 KiB a second, and weights for 20 000 classes fit
DEEPEST = 20

_FLOAT = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)[eE][-+]?\d+|[-+]?(\d+\.\d*|\.\d+)|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


class _Loader(yaml.SafeLoader):
    """The safe loader with the refusals above."""

    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.MarkedYAMLError(
                problem="aliases are not read: write the value out", problem_mark=self.peek_event().start_mark
            )
        self.depth += 1
        if self.depth > DEEPEST:
            raise yaml.MarkedYAMLError(
                problem=f"nested more than {DEEPEST} deep", problem_mark=self.peek_event().start_mark
            )
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def compose_mapping_node(self, anchor: Any) -> Any:
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(problem="a key is a word", problem_mark=key.start_mark)
            if key.value in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"the key {key.value!r} stands here twice", problem_mark=key.start_mark
                )
            seen.add(key.value)
        return node


def _whole(loader: _Loader, node: yaml.ScalarNode) -> int:
    """A decimal number; YAML 1.1 would read 010 as eight."""
    text = loader.construct_scalar(node)
    if not re.fullmatch(r"[-+]?\d{1,18}", text):
        raise yaml.MarkedYAMLError(problem="not a whole number of at most 18 digits", problem_mark=node.start_mark)
    return int(text)


_NUMBERS = {"tag:yaml.org,2002:float": _FLOAT, "tag:yaml.org,2002:int": re.compile(r"[-+]?\d+")}
# first character -> [(tag, pattern)]; YAML 1.1's numbers go, 1.2's come
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _NUMBERS]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for _tag, _pattern in _NUMBERS.items():
    _Loader.add_implicit_resolver(_tag, re.compile(rf"^({_pattern.pattern})$"), list("-+0123456789."))
_Loader.add_constructor("tag:yaml.org,2002:int", _whole)


def read(path: Path) -> tuple[Any, yaml.Node | None]:
    """The file's value, and its tree, which knows the lines (None: an empty file).

    Raises BadRecipe with the file, and the line where there is one, for everything that cannot be read.
    """
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise BadRecipe(f"{path}: is larger than {LARGEST // 1024} KiB and not a recipe")
        text = content.decode("utf-8-sig")
    except (OSError, ValueError) as error:  # ValueError: not UTF-8, or a path with a zero byte
        raise BadRecipe(f"{path}: cannot be read: {error}") from error
    tree = None
    try:
        loader = _Loader(text)
        tree = loader.get_single_node()
        return (loader.construct_document(tree) if tree else None), tree
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f":{mark.line + 1}" if mark else ""
        key = ".".join(_at(tree, mark.index)) if tree is not None and mark else ""
        said = f"{error.problem or error.context}{f', at {key}' if key else ''}"
        raise BadRecipe(f"{path}{where}: not YAML that a recipe may hold: {said}") from error
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError) as error:
        raise BadRecipe(f"{path}: not YAML that a recipe may hold: {' '.join(str(error).split())}") from error


def _at(node: yaml.Node, index: int) -> list[str]:
    """The keys on the way to the value that begins at this letter of the text."""
    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    if isinstance(node, yaml.SequenceNode):
        pairs = [(None, item) for item in node.value]
    for place, (key, item) in enumerate(pairs):
        if item.start_mark.index <= index < max(item.end_mark.index, item.start_mark.index + 1):
            return [str(key.value) if key is not None else str(place), *_at(item, index)]
    return []


def line(node: yaml.Node | None, loc: tuple[Any, ...]) -> int:
    """The line, counted from 1, of the deepest node on the way to `loc`."""
    if node is None:
        return 1
    found = node.start_mark.line + 1
    for part in loc:
        if isinstance(node, yaml.MappingNode):
            pair = next(((k, v) for k, v in node.value if k.value == str(part)), None)
            if pair is None:
                break
            found, node = pair[0].start_mark.line + 1, pair[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            found = node.start_mark.line + 1
    return found


def refuse_odd(value: Any, where: str = "") -> None:
    """Raise ValueError unless `value` is made of words, finite numbers, true, false, null, lists and mappings.

    YAML has dates, bytes and sets besides, which no argument of a recipe takes and JSON cannot say.
    """
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise ValueError(f"the key {key!r}{where} is not a word")
            refuse_odd(item, f" in {key!r}")
    elif isinstance(value, (list, tuple)):
        for item in value:
            refuse_odd(item, where)
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value}{where} is not a finite number")
    elif value is not None and not isinstance(value, (bool, int, float, str)):
        raise ValueError(f"{value!r}{where} is neither a number, a word, true, false nor null")


def odd_text(value: Any, loc: tuple[Any, ...] = ()) -> tuple[tuple[Any, ...], str] | None:
    """Where in a tree the first text stands with a control character or half of a character, and that character.

    No name and no path has one, a terminal obeys some, and JSON cannot say the others.
    """
    if isinstance(value, str):
        odd = next((letter for letter in value if unicodedata.category(letter) in ("Cc", "Cs")), None)
        return None if odd is None else (loc, odd)
    if isinstance(value, dict):
        inside = [found for key in value if (found := odd_text(key, (*loc, key)))]
        inside += [found for key, item in value.items() if (found := odd_text(item, (*loc, key)))]
    else:
        items = value if isinstance(value, (list, tuple)) else ()
        inside = [found for index, item in enumerate(items) if (found := odd_text(item, (*loc, index)))]
    return next(iter(inside), None)
