"""Load a new checkpoint into the net of --into, and hold every parameter's bytes against the file.

What `load_param_into_net` returns is not asked: it strips prefixes, loads, and still lists the parameter as not loaded.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ..errors import BadCheckpoint
from . import model_spec
from .formats.atomic_file import link_open
from .formats.byte_copy import STRETCH, read_range
from .formats.source import open_source
from .formats.strays import beside
from .plan import few


@contextmanager
def linked(output: int, target: Path) -> Iterator[Path]:
    """A name for an open file that has none yet, beside its target and with its ending, as long as the block runs.

    Let the block outlast the giving of the file's own name: a file without a name can be given one only once.
    """
    folder = beside(target, "tmp")
    folder.mkdir(0o700)
    try:
        path = folder / f"checkpoint{target.suffix}"
        try:
            link_open(output, path)
        except OSError:  # this file system has no hard links
            with open(output, "rb", closefd=False) as whole, path.open("wb") as copy:
                whole.seek(0)
                shutil.copyfileobj(whole, copy)
        yield path
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def check_loads(path: Path, into: str, names: Mapping[str, str]) -> None:
    """Raise BadCheckpoint unless MindSpore loads the file into the net, byte for byte.

    into: names the net. names: parameter's path in the net -> its name in the file. Raises WorkerFailed when the net
    cannot be built or the file not loaded.
    """
    loaded: Mapping[str, str] = model_spec.ask("mindspore_target", into, "--into", str(path))["digests"]
    with open_source(str(path)) as source:
        tensors = source.checkpoint().tensors
        wrong = []
        for parameter, name in names.items():
            digest = hashlib.sha256()
            for offset, length, file in tensors[name].spans:
                for start in range(0, length, STRETCH):
                    digest.update(read_range(source.descriptors[file], offset + start, min(STRETCH, length - start)))
            if loaded.get(parameter) != digest.hexdigest():
                wrong.append(parameter)
    if wrong:
        raise BadCheckpoint(
            f"{into}: after load_param_into_net the net's {few(wrong, 3, ', ')} {'is' if len(wrong) == 1 else 'are'} "
            "not what the file holds; it changes parameters as they are loaded, or shares one between two names"
        )
