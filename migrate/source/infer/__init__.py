"""Facts from reading: what a script says of its values and of the libraries that it uses, with nothing of it run."""

from __future__ import annotations

from . import calls, expressions, statements  # they register what each kind of node means

__all__ = ["calls", "expressions", "statements"]
