"""What a command says on stderr besides how far it is: where there is no terminal, that is a line every ten seconds."""

from __future__ import annotations

import re


def besides_progress(stderr: str) -> str:
    return re.sub(r"^\d+ s: .*\n", "", stderr, flags=re.MULTILINE)
