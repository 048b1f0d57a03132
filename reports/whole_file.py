"""Write a text file that is there whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from ..errors import BadDestination


def write_whole(text: str, path: Path) -> None:
    """Write text as UTF-8 beside `path`, then move it into place, with the permissions a new file gets.

    What UTF-8 cannot hold (a lone surrogate in a name that came out of a trace) becomes a question mark. Raises
    BadDestination.
    """
    try:
        handle, partial = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".partial")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(text.encode("utf-8", "replace"))
            umask = os.umask(0)
            os.umask(umask)
            Path(partial).chmod(0o666 & ~umask)
            Path(partial).replace(path)
        except BaseException:
            Path(partial).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise BadDestination(f"{path} cannot be written: {error.strerror or error}") from error
