"""Which names the patterns of a recipe pick: globs over state_dict names, in model.freeze and optimizer.groups."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from fnmatch import translate
from re import Pattern

from ...errors import BadRecipe

BACK = "!"  # begins a pattern that takes back what the ones before it picked


def compiled(patterns: Sequence[str]) -> list[Pattern[str]]:
    """The globs as regular expressions over whole names; read once, for each name is matched with all of them."""
    return [re.compile(translate(pattern)) for pattern in patterns]


def picked(patterns: Sequence[str], names: Iterable[str], where: str, what: str) -> list[str]:
    """The names that the patterns pick, in the order of `names`; see matching().

    where: the key of the recipe, as "model.freeze". what: what a name is of, as "parameter". Raises BadRecipe for a
    pattern that matches no name, with the nearest that would, and where all that was picked is taken back.
    """
    names = list(names)
    for index, pattern in enumerate(patterns):
        own = pattern.removeprefix(BACK)
        if not any(map(compiled([own])[0].match, names)):
            raise BadRecipe(f"{where}.{index}: {pattern!r} matches no {what}; {hint(own, names)}")
    found = matching(patterns, names)
    if patterns and not found:
        raise BadRecipe(f"{where}: the patterns take back all that they pick: {', '.join(patterns)}")
    return found


def matching(patterns: Sequence[str], names: Iterable[str]) -> list[str]:
    """The names that the patterns pick, in the order of `names`; the last pattern that matches a name decides.

    "!PATTERN" takes back what the patterns before it picked: ["*", "!fc.*"] is all but the head.
    """
    globs = compiled([pattern.removeprefix(BACK) for pattern in patterns])
    takes = [not pattern.startswith(BACK) for pattern in patterns]
    found = []
    for name in names:
        if next((take for take, glob in zip(reversed(takes), reversed(globs), strict=True) if glob.match(name)), False):
            found.append(name)
    return found


def hint(pattern: str, names: Iterable[str]) -> str:
    """What to write in place of a pattern that matches none of the names."""
    names = list(names)
    if any(name.startswith(f"{pattern}.") for name in names):
        return f"did you mean {pattern + '.*'!r}?"
    near = difflib.get_close_matches(pattern, names, n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"names look like {names[0]!r}" if names else "there is none"
