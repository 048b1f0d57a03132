"""Worker: match names with regular expressions that anyone may have written, in a process that can be stopped.

    python -I -S pattern_worker.py < {"rules": [[PATTERN, TARGET], …], "names": [NAME, …]}

Python's `re` cannot be interrupted, and a pattern such as `(a+)+b` takes longer than anyone waits. Prints the number of
each rule as it begins with it, and at last one line of JSON: name -> [the first rule that matches the whole name, the
new name], or [the rule, null, why its target does not fit].
"""

from __future__ import annotations

import json
import re
import resource
import sys
from typing import Any

MEMORY = 1 << 29  # bytes; a pattern that loops without consuming a letter piles them up
SECONDS = 10  # of the processor, in case no other process is left to stop this one


def match(rules: list[tuple[str, str]], names: list[str]) -> dict[str, Any]:
    """The first rule of each name, as above."""
    found: dict[str, Any] = {}
    left = dict.fromkeys(names)
    for number, (pattern, target) in enumerate(rules):
        print(number, flush=True)
        plain = re.sub(r"\\(.)", r"\1", pattern)
        literal = re.escape(plain) == pattern  # as --write-map writes them, thousands in a file
        whole = re.compile(pattern)
        for name in [plain] if literal and plain in left else [] if literal else list(left):
            matched = whole.fullmatch(name)
            if matched is not None:
                try:
                    found[name] = [number, matched.expand(target)]
                except (re.error, IndexError) as error:
                    found[name] = [number, None, str(error)]
                del left[name]
    return found


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    request = json.load(sys.stdin)
    print(json.dumps(match(request["rules"], request["names"])))
