"""A checkpoint in several files, as Hugging Face has them: an index says in which file each tensor stands.

    NAME.index.json    {"metadata": {…}, "weight_map": {tensor: file}}

The files are in the folder of the index. They are written as safetensors, and read in any format with a state dict.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from ....atomic_files import atomic_folder
from ....errors import Ambiguous, BadCheckpoint, BadDestination
from . import safetensors_file
from .byte_copy import Losses, Progress
from .reader import Checkpoint, Checksum, Piece, Source, check_count, check_name, open_file, read_at, shown
from .safetensors_file import FORMATS, Header, SafetensorsFile, strict_json, tied, united

INDEX = ".index.json"
CHECKPOINTS = (".safetensors", ".bin", ".pth", ".pt", ".ckpt")  # endings of a checkpoint that is alone in a folder
MAX_INDEX = 64 << 20  # bytes
MAX_SHARDS = 10_000
MAX_SHARD = 5_000_000_000  # bytes of tensors in one file by default, as in transformers

Opener = Callable[[str], Source]  # opens a checkpoint of one file


def open_folder(path: str, opener: Opener) -> Source:
    """The checkpoint in a folder: by its index, or the only one there.

    Raises Ambiguous for two indices, BadCheckpoint when there is neither an index nor one checkpoint.
    """
    try:
        names = sorted(entry.name for entry in Path(path).iterdir())
    except OSError as error:
        raise BadCheckpoint(f"cannot read {path}: {error.strerror}") from None
    indices = [name for name in names if name.endswith(INDEX)]
    if len(indices) > 1:
        raise Ambiguous(f"{path} holds {' and '.join(map(shown, indices))}; give the path of the one to read")
    if indices:
        index = str(Path(path, indices[0]))
        return Shards(index, open_file(index), opener)
    alone = [name for name in names if name.lower().endswith(CHECKPOINTS)]
    if len(alone) == 1:
        return opener(str(Path(path, alone[0])))
    held = ", ".join(map(shown, names[:10])) + (f" and {len(names) - 10:,} more" if len(names) > 10 else "")
    why = "several checkpoints without an index; give the path of one" if alone else "no checkpoint and no index"
    raise BadCheckpoint(f"cannot read {path}: Is a directory with {why}; it holds {held or 'nothing'}")


class Shards(Source):
    """An open checkpoint of several files; `path` is that of the index, which is read at once and closed."""

    def __init__(self, path: str, index: BinaryIO, opener: Opener) -> None:
        super().__init__(path, [])
        with index:
            self.shards = _read_index(path, index)
        self.sources: list[Source] = []
        try:
            for name in self.shards:
                self.sources.append(opener(str(Path(path).parent / name)))
                self.files += self.sources[-1].files
        except BaseException as error:
            self.__exit__()
            if isinstance(error.__context__, OSError) and error.__context__.errno in (errno.EMFILE, errno.ENFILE):
                count = len(self.shards)
                raise BadCheckpoint(
                    f"{path}: its {count:,} files cannot all be open at once; allow it with `ulimit -n {count + 100}`"
                ) from None
            raise

    def checksums(self, *, whole: bool = False) -> list[Checksum]:
        found: list[Checksum] = []
        first = 0
        for source in self.sources:
            for each in source.checksums(whole=whole):
                found.append(each._replace(range=each.range._replace(file=each.range.file + first)))
            first += len(source.files)
        return found

    def checkpoint(self, key: str | None = None) -> Checkpoint:
        headers: list[Header] = []
        kinds: list[str] = []
        others: dict[str, str] = {}
        first = count = 0
        everywhere = {tensor for names in self.shards.values() for tensor in names}
        for names, source in zip(self.shards.values(), self.sources, strict=True):
            if isinstance(source, SafetensorsFile) and key is None:
                kind, header = "safetensors", source.header()
            else:
                held = source.checkpoint(key)
                kind, header = held.format, _header(held)
                others.update(held.others)
            _check_names(source.path, header, names, everywhere, others)
            headers.append(_renumbered(header, first))
            count += len(header.tensors) + len(header.refused)
            check_count(self.path, count)
            kinds.append(kind)
            first += len(source.files)
        whole = united(self.path, f"{' and '.join(dict.fromkeys(kinds))} in {len(kinds)} files", headers)
        return whole._replace(others={**others, **whole.others})


def _read_index(path: str, file: BinaryIO) -> dict[str, list[str]]:
    """The files that an index names, in order of their names, and the tensors that each is to hold."""
    content = read_at(file, path, 0, MAX_INDEX + 1)
    if len(content) > MAX_INDEX:
        raise BadCheckpoint(f"{path} has more than {MAX_INDEX:,} bytes, which no index has")
    try:
        index = strict_json(content)
    except BadCheckpoint as error:
        raise BadCheckpoint(f"{path} {error}") from None
    places = index.get("weight_map") if type(index) is dict else None
    if type(places) is not dict or not places:
        raise BadCheckpoint(f"{path} is no index of a checkpoint in several files: it has no weight_map")
    shards: dict[str, list[str]] = {}
    for tensor, name in places.items():
        check_name(path, tensor)
        if not _is_plain(name):
            raise BadCheckpoint(
                f"{path}: {shown(tensor)} should be in {ascii(name)[:80]}, which is not the name of a file next to it"
            )
        shards.setdefault(name, []).append(tensor)
    if len(shards) > MAX_SHARDS:
        raise BadCheckpoint(f"{path} names {len(shards):,} files; a checkpoint has at most {MAX_SHARDS:,}")
    return dict(sorted(shards.items()))


def _is_plain(name: Any) -> bool:
    """Whether it names a file in the same folder, and nothing else."""
    return (
        isinstance(name, str)
        and name not in ("", ".", "..")
        and name.isprintable()
        and not {"/", "\\"} & set(name)
        and len(name) <= 255
    )


def _header(held: Checkpoint) -> Header:
    """The content of a file of another format as a Header; its prefix is put back, since it depends on all files."""
    beside = (held.training or {}) if held.framework == "mindspore" else {}  # torch's is not made of named tensors
    return Header(
        {held.prefix + name: tensor for name, tensor in {**held.tensors, **beside}.items()},
        {held.prefix + name: why for name, why in held.refused.items()},
        {"format": FORMATS[held.framework]},
        held.record,
    )


def _check_names(path: str, header: Header, names: list[str], everywhere: set[str], others: Mapping[str, str]) -> None:
    """Raise BadCheckpoint unless a file holds exactly the tensors that the index says.

    A tied tensor may be missing in the index, or in the file, when the same bytes are there under another name.
    """
    for name in names:
        alias = header.metadata.get(name) in header.tensors
        if not (name in header.tensors or name in header.refused or name in others or alias):
            raise BadCheckpoint(f"{path} lacks {shown(name)}, which the index says is in it; fetch it again")
    named = {header.tensors[name] for name in names if name in header.tensors}
    for name in {**header.tensors, **header.refused}.keys() - set(names):
        if name in everywhere or header.tensors.get(name) not in named:
            raise BadCheckpoint(
                f"{path} holds {shown(name)}, which the index does not list; it is of another checkpoint"
            )


def _renumbered(header: Header, first: int) -> Header:
    """The same header, with its file numbers counted from `first`."""
    tensors = {
        name: tensor._replace(spans=tuple(span._replace(file=span.file + first) for span in tensor.spans))
        for name, tensor in header.tensors.items()
    }
    return header._replace(tensors=tensors)


def plan_shards(content: Sequence[Piece], most: int, left_out: Mapping[str, str] | None = None) -> list[list[Piece]]:
    """Divide tensors among files of at most `most` bytes of data each, in order.

    A larger tensor gets a file of its own. left_out: the name of a tied tensor, which takes no room, -> that of the one
    that holds its bytes, in whose file it is noted.
    """
    shards: list[list[Piece]] = []
    current: list[Piece] = []
    taken = 0
    place: dict[str, list[Piece]] = {}
    left_out = left_out or {}
    for piece in content:
        if piece.name in left_out:
            shard = place[left_out[piece.name]]
        elif piece.nbytes > most:
            shards.append(shard := [])
        else:
            if taken + piece.nbytes > most or not current:
                shards.append(current := [])
                taken = 0
            shard = current
            taken += piece.nbytes
        shard.append(piece)
        place[piece.name] = shard
    return shards


def write_folder(
    target: Path,
    sources: Sequence[int],
    content: Sequence[Piece],
    *,
    most: int,
    framework: str,
    record: dict[str, Any] | None = None,
    progress: Progress | None = None,
    losses: Losses | None = None,
    force: bool = False,
    finish: Callable[[], object] | None = None,
) -> int:
    """Write a folder of safetensors files and their index; returns the bytes of all files.

    most: bytes of tensors in one file. sources, framework, record, progress, losses: as in registry.Writer; the
    record is in the first file. A single file has no index. finish: is called before the folder appears. Raises
    BadDestination, and BadCheckpoint when a source ends early; whatever happens, the folder is complete or untouched.
    """
    left_out = tied(content) if framework == "torch" else {}
    shards = plan_shards(content, most, left_out)
    if len(shards) > MAX_SHARDS:
        raise BadDestination(f"{target}: files of {most:,} bytes would be {len(shards):,}, more than {MAX_SHARDS:,}")
    records = [record, *[None] * (len(shards) - 1)]
    size = sum(safetensors_file.size(shard, framework, noted) for shard, noted in zip(shards, records, strict=True))
    written = 0

    def overall(done: int, _: int) -> None:
        if progress:
            progress(written + done, size)

    places: dict[str, str] = {}
    with atomic_folder(target, force=force) as folder:
        for number, (shard, noted) in enumerate(zip(shards, records, strict=True), 1):
            name = f"model-{number:05}-of-{len(shards):05}.safetensors" if len(shards) > 1 else "model.safetensors"
            output = os.open(folder / name, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o666)
            try:
                written += safetensors_file.write(
                    sources, output, shard, framework=framework, record=noted, progress=overall, losses=losses
                )
                safetensors_file.verify(output, str(target / name), shard)
            finally:
                os.close(output)
            places.update({piece.name: name for piece in shard if piece.name not in left_out})
        if len(shards) > 1:
            total = sum(piece.nbytes for piece in content if piece.name not in left_out)
            metadata = {"total_size": total, "format": FORMATS[framework]}
            written += _write_index(folder / f"model.safetensors{INDEX}", {"metadata": metadata, "weight_map": places})
        if finish is not None:
            finish()
    return written


def _write_index(path: Path, index: Mapping[str, Any]) -> int:
    content = json.dumps(index, ensure_ascii=False, indent=2).encode() + b"\n"
    path.write_bytes(content)
    return len(content)
