"""Facts from reading a script: its values, and its uses of libraries, without running any of it."""

from __future__ import annotations

from . import calls, expressions, statements  # they register the handlers of all kinds of nodes

__all__ = ["calls", "expressions", "statements"]
