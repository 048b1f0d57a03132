"""Content that no source file holds, such as a single number, and weights that torch computes from several tensors.

Such content is kept in a temporary file without a name. MindSpore has neither weight norm, spectral norm nor pruning,
so the computed weight is written, unless the net computes it itself by nn.weight_norm or nn.spectral_norm. Weight norm:
w = g·v / ‖v‖, the norm over all dimensions except the one that g has (Salimans and Kingma, 2016). Spectral norm:
w / (uᵀ W v) with the stored vectors, which is what torch computes in evaluation (Miyato and others, 2018). Pruning:
w · mask.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import IO, Any, NamedTuple

from ...errors import Ambiguous, BadCheckpoint, MsmigrateError, Unsupported
from .formats.byte_copy import cast, castable, chunks, read_range, widened
from .formats.reader import ByteRange, Checkpoint, Piece, Shape, Tensor, product, row_major
from .plan import DROP, Entry, size

NUMBERS = {
    name: struct.Struct(f"<{code}")
    for name, code in {"float64": "d", "float32": "f", "int64": "q", "int32": "i", "int16": "h", "uint8": "B"}.items()
}


class Maker(NamedTuple):
    """Functions that describe an inert tensor of the file, read a single number from a tensor, make a new tensor from
    (dtype, bytes, shape), and list the entries of a state dict or of a model that was saved whole."""

    tensor: Callable[[Any], Tensor]
    number: Callable[[Tensor], float]
    constant: Callable[[str, bytes, Shape], Tensor]
    weights: Callable[[Any], Mapping[Any, Any]] = dict


class Constants:
    """A context manager for tensors that no source holds; `number` is its file's index, after the source's files."""

    def __init__(self, number: int) -> None:
        self.number, self.at = number, 0
        self.file: IO[bytes] | None = None  # opened when there is something to hold

    def __enter__(self) -> Constants:
        return self

    def __exit__(self, *_: object) -> None:
        if self.file is not None:
            self.file.close()

    @property
    def descriptors(self) -> list[int]:
        return [] if self.file is None else [self.file.fileno()]

    def add(self, dtype: str, content: bytes, shape: Shape) -> Tensor:
        """A tensor of this content."""
        if self.file is None:
            import tempfile  # only when needed: imports take most of the time of a small conversion

            self.file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 (closed by __exit__)
        self.file.write(content)
        span = ByteRange(self.at, len(content), self.number)
        self.at += len(content)
        return Tensor(dtype, shape, row_major(shape), (span,))

    def add_integer(self, value: int) -> Tensor:
        """A tensor of one int64."""
        return self.add("int64", struct.pack("<q", value), ())

    def arrays(self, sources: Sequence[int]) -> tuple[Callable[[Tensor], Any], Callable[[Any, str], Tensor]]:
        """Two functions: read a tensor of the sources as a float64 array, and store such an array in a dtype.

        The first raises BadCheckpoint when a source is too short.
        """
        return lambda tensor: array(sources, tensor), self._keep

    def _keep(self, values: Any, dtype: str) -> Tensor:
        shape = tuple(values.shape)
        wide = Tensor("float64", shape, row_major(shape), ())
        return self.add(dtype, cast(values.view("u8"), Piece("", dtype, shape, wide)), shape)


def array(sources: Sequence[int], tensor: Tensor) -> Any:
    """A floating-point tensor of one of the sources, as float64, in its shape."""
    import numpy as np

    blocks = chunks(sources, Piece("", tensor.dtype, tensor.shape, tensor))
    content = b"".join(
        block if isinstance(block, bytes) else read_range(sources[block.file], block.offset, block.length)
        for block in blocks
    )
    bits = np.frombuffer(content, f"u{tensor.item_size}")
    wide = widened(bits, tensor.dtype) if castable(tensor.dtype) else np.frombuffer(content, tensor.dtype)
    return wide.astype(np.float64).reshape(tensor.shape)


def number(sources: Sequence[int], tensor: Tensor) -> float:
    """The value of a one-element tensor in one of the sources.

    Raises BadCheckpoint when the source is too short, or when the tensor is not a single number.
    """
    form = NUMBERS.get(tensor.dtype)
    if form is None or product(tensor.shape) != 1:
        raise BadCheckpoint(f"a tensor of {tensor.dtype} {list(tensor.shape)} stands where a single number should")
    content = b"".join(read_range(sources[span.file], span.offset, span.length) for span in tensor.spans)
    value: float = form.unpack(content)[0]
    return value


# Weights that torch computes from several tensors, folded into plain weights

TAKE_OFF = "take it off in torch and save again"
WHOLE = ("bool", "uint8", "int8", "int16", "int32", "int64")  # dtypes that only a mask may have
MAX_AXES = 32  # of an array
CLOSE = 0.9  # cosine of u and W·v along the dimension that they were computed along


class Parametrization(NamedTuple):
    """One way to compute a weight: the `ends` of its tensors' names, and the function that computes it from them."""

    called: str
    ends: tuple[str, ...]
    compute: Callable[..., Any]
    spare: tuple[str, ...] = ()  # ends of names that are not needed


class Folded(NamedTuple):
    """The checkpoint with plain weights, what became of the tensors they were computed from, and remarks."""

    checkpoint: Checkpoint
    dropped: list[Entry]
    notes: list[str]


Read = Callable[[Tensor], Any]  # a tensor as an array of float64
Store = Callable[[Any, str], Tensor]  # an array of float64 as a tensor of a dtype


def folded(
    checkpoint: Checkpoint,
    owners: Mapping[str, tuple[str, ...]] | None,
    read: Read,
    store: Store,
    there: Container[str] = (),
) -> Folded:
    """Fold what can be folded; a computed weight whose tensors do not fit together stays, and is refused later.

    owners: module path -> class and bases, where they are known: original0 and original1 may also belong to a user's
    own parametrization. there: the tensors that the net takes as they are. Raises Ambiguous where a spectral norm may
    have been along either of two dimensions.
    """
    tensors = dict(checkpoint.tensors)
    instead: dict[str, tuple[str, Tensor]] = {}  # name of a tensor that is gone -> name and weight
    dropped: list[Entry] = []
    counts: dict[str, int] = {}
    for name in checkpoint.tensors:
        for form in FORMS:
            stem = _stem(name, form)
            if stem is None:
                continue
            if not _is_of(form, (owners or {}).get(f"{stem}0", ())):
                continue
            parts = [f"{stem}{end}" for end in form.ends]
            target = PARAMETRIZED.sub(r"\1\2", stem)
            if any(part not in tensors for part in parts) or target in tensors:
                continue
            if all(part in there for part in parts):
                continue
            held = [tensors[part] for part in parts]
            if not _can_be_computed(form, target, held):
                continue
            try:
                weight = _computed(form, map(read, held))
            except MsmigrateError as error:
                raise type(error)(f"{target}: {error}") from None
            if weight is None:
                continue
            gone = [*parts, *(f"{stem}{end}" for end in form.spare if f"{stem}{end}" in tensors)]
            dropped += [
                Entry(DROP, part, tensors[part], owner=form.called, why=f"{form.called}: folded into {target}")
                for part in gone
            ]
            made = store(weight, held[-1].dtype if form.called == "weight norm" else held[0].dtype)
            for part in gone:
                del tensors[part]
            tensors[target] = made
            instead.update(dict.fromkeys(gone, (target, made)))
            counts[form.called] = counts.get(form.called, 0) + 1
            break
    notes = [
        f"{called} is folded into {count} weight{'s' if count > 1 else ''}; MindSpore has no {called} to train with"
        for called, count in counts.items()
    ]
    weights = [instead.get(name, (name, tensor)) for name, tensor in checkpoint.tensors.items()]
    return Folded(checkpoint._replace(tensors=dict(weights)), dropped, notes)


def _is_of(form: Parametrization, classes: tuple[str, ...]) -> bool:
    """Whether a parametrization of these classes may be the form's; without known classes it may."""
    ours = {"weight norm": "_WeightNorm", "spectral norm": "_SpectralNorm"}.get(form.called, "")
    return not classes or any(name.endswith(ours) for name in classes)


def _stem(name: str, form: Parametrization) -> str | None:
    """The name without the first of the form's ends, or None where it does not end so."""
    return name.removesuffix(form.ends[0]) if name.endswith(form.ends[0]) else None


def _can_be_computed(form: Parametrization, name: str, held: Sequence[Tensor]) -> bool:
    """Whether a weight may have this name, and these are numbers that an array can hold."""
    return (
        ".." not in f".{name}."
        and all(castable(tensor.dtype) for tensor in (held[:1] if form.called == "pruning" else held))
        and all(castable(tensor.dtype) or tensor.dtype in WHOLE for tensor in held)
        and all(tensor.nbytes and len(tensor.shape) <= MAX_AXES for tensor in held)
    )


def _computed(form: Parametrization, arrays: Iterable[Any]) -> Any:
    """The weight; what is too large becomes infinite, as in torch."""
    import numpy as np

    with np.errstate(all="ignore"):
        return form.compute(*arrays)


def _weight_norm(g: Any, v: Any) -> Any:
    import numpy as np

    fits = all(of_g in (1, of_v) for of_g, of_v in zip(g.shape, v.shape, strict=False))
    if v.ndim < 2 or g.ndim not in (0, v.ndim) or not fits or sum(length != 1 for length in g.shape) > 1:
        return None
    axes = tuple(axis for axis in range(v.ndim) if g.ndim == 0 or g.shape[axis] == 1)
    norm = np.sqrt((v * v).sum(axis=axes, keepdims=True))
    return v * (g / norm)  # NaN for a row of zeros, as in torch


def _spectral_norm(weight: Any, u: Any, v: Any = None) -> Any:
    import numpy as np

    if u.ndim != 1 or weight.ndim < 2 or (v is not None and v.ndim != 1):
        return None
    found = []
    for axis in (0, 1):
        matrix = np.moveaxis(weight, axis, 0).reshape(weight.shape[axis], -1)
        if matrix.shape[0] != len(u) or (v is not None and matrix.shape[1] != len(v)):
            continue
        along = matrix @ v if v is not None else matrix @ (matrix.T @ u)
        length = float(np.linalg.norm(along) * np.linalg.norm(u))
        if length and abs(float(u @ along)) / length > CLOSE:
            sigma = u @ (matrix @ (v if v is not None else _unit(matrix.T @ u)))
            found.append(weight / sigma)
    if len(found) > 1:
        raise Ambiguous(f"its spectral norm of {size(weight.shape)} may be along either dimension; {TAKE_OFF}")
    if not found:
        raise Unsupported(f"its spectral norm's vectors are not those of the weight; {TAKE_OFF}")
    return found[0]


def _unit(vector: Any) -> Any:
    return vector / ((vector * vector).sum() ** 0.5)


def _pruned(weight: Any, mask: Any) -> Any:
    return weight * mask if weight.shape == mask.shape else None


PARAMETRIZED = re.compile(r"^(|.*\.)parametrizations\.([^.]+)\.$")
FORMS = (
    Parametrization("weight norm", ("_g", "_v"), _weight_norm),
    Parametrization("weight norm", ("original0", "original1"), _weight_norm),
    Parametrization("spectral norm", ("original", "0._u", "0._v"), _spectral_norm),
    Parametrization("spectral norm", ("_orig", "_u", "_v"), _spectral_norm),
    Parametrization("spectral norm", ("_orig", "_u"), _spectral_norm),
    Parametrization("pruning", ("_orig", "_mask"), _pruned),
)
