"""Names of layouts; nothing of this file runs but its enumeration."""

from enum import Enum


class Layout(str, Enum):
    FIRST = "first"
    LAST = "last"
