"""What a torch checkpoint holds: find the state dict in the inert pickle, and read each tensor's description.

A tensor is a view of a storage: element offset, sizes and strides. Every view is checked against its storage here,
so that whatever reads the bytes later can trust the numbers.
"""

from __future__ import annotations

from typing import Any

from ...errors import Ambiguous, BadCheckpoint, Unsupported
from .contents import ITEM_SIZES, MAX_DIM, MAX_RANK, ByteRange, Checkpoint, Source, Tensor, check_name, product, shown
from .pickled import Call, Global, Storage

STORAGE_DTYPES = {
    "DoubleStorage": "float64",
    "FloatStorage": "float32",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
    "ComplexDoubleStorage": "complex128",
    "ComplexFloatStorage": "complex64",
}
UNTYPED = ("torch.storage.UntypedStorage", "torch.storage.TypedStorage")

WRAPPERS = ("state_dict", "model")  # the keys under which training scripts keep the weights
PREFIXES = ("module.", "_orig_mod.")  # put before every name by DistributedDataParallel and by torch.compile
COUNTERS = ("n_averaged",)  # what AveragedModel keeps beside the names that it prefixes


class TorchSource(Source):
    """A file that torch.save wrote: an inert pickle, and storages somewhere in the file.

    `format` is the file's in words, `size` in bytes.
    """

    format: str
    size: int

    def load(self) -> Any:
        """What the pickle describes, inert; raises BadCheckpoint, Unsupported, with the path in front."""
        raise NotImplementedError

    def storage(self, key: str) -> ByteRange:
        """The byte range of a storage; raises BadCheckpoint when the file lacks it."""
        raise NotImplementedError

    def checkpoint(self, key: str | None = None) -> Checkpoint:
        return read(self, key)


def read(archive: TorchSource, key: str | None = None) -> Checkpoint:
    """Find the state dict (under `key` when given) and describe its tensors, without reading their bytes.

    Raises BadCheckpoint when there is none, or a tensor does not fit its storage; Ambiguous when two could be meant.
    """
    content = archive.load()
    wrapper, entries, others = _find(archive.path, content, key)
    for name in entries:
        check_name(archive.path, name)
    prefix = ""
    names = [name for name in entries if name not in COUNTERS]
    while taken := next((p for p in PREFIXES if names and all(_longer(name, prefix + p) for name in names)), None):
        prefix += taken
    tensors: dict[str, Tensor] = {}
    refused: dict[str, str] = {}
    for name, value in entries.items():
        short = name.removeprefix(prefix)
        if not _is_tensor(value) or (prefix and name in COUNTERS):
            others[name] = _describe(value)
            continue
        try:
            tensors[short] = _tensor(archive, value)
        except Unsupported as reason:
            refused[short] = str(reason)
        except BadCheckpoint as error:
            raise BadCheckpoint(f"{archive.path}: {shown(name)}: {error}") from None
    return Checkpoint("torch", archive.format, tensors, refused, wrapper, prefix, others)


def _longer(name: str, prefix: str) -> bool:
    return name.startswith(prefix) and name != prefix


def _find(path: str, content: Any, key: str | None) -> tuple[str | None, dict[Any, Any], dict[str, str]]:
    """Return (wrapper key, state dict, what else is there)."""
    if type(content) is not dict:
        raise BadCheckpoint(f"{path} holds {_describe(content)}, not a state dict")
    nested = {
        name: value
        for name, value in content.items()
        if isinstance(name, str) and name.isprintable() and type(value) is dict and _holds_tensors(value)
    }
    known = [name for name in WRAPPERS if name in nested]
    if key is not None:
        if key not in nested:
            found = f"; there is {', '.join(nested)}" if nested else ""
            raise BadCheckpoint(f"{path} has no state dict under --key {shown(key)}{found}")
        wrapper = key
    elif not known and _holds_tensors(content):
        return None, content, {}
    elif not nested:
        raise BadCheckpoint(f"{path} holds no tensors")
    elif len(known) == 1 or len(nested) == 1:
        wrapper = (known or list(nested))[0]
    else:
        names = ", ".join(known or nested)
        raise Ambiguous(f"{path} holds tensors under {names}; say which with --key NAME")
    others = {shown(str(name)): _describe(value) for name, value in content.items() if name != wrapper}
    return wrapper, nested[wrapper], others


def _holds_tensors(value: dict[Any, Any]) -> bool:
    return any(_is_tensor(item) for item in value.values())


def _is_tensor(value: Any) -> bool:
    return type(value) is Call and "._rebuild_" in value.name


def _describe(value: Any) -> str:
    """Say in a few words what an entry is that is not converted."""
    if type(value) is dict:
        keys = ", ".join(shown(str(name)) for name in list(value)[:4] if isinstance(name, str))
        return f"a dict of {len(value)}" + (f" ({keys}{', …' if len(value) > 4 else ''})" if keys else "")
    if isinstance(value, (bool, int, float, str)):
        text = repr(value) if not isinstance(value, int) or abs(value) < 1 << 64 else "a large integer"
        return text if len(text) <= 40 else text[:39] + "…"
    if _is_tensor(value):
        return "a tensor"
    if type(value) in (Call, Global):
        return value.name
    return f"a {type(value).__name__}" + (f" of {len(value)}" if isinstance(value, (list, tuple, set)) else "")


def _tensor(archive: TorchSource, call: Call) -> Tensor:
    """Describe one tensor; raises BadCheckpoint for numbers that do not fit, Unsupported for other kinds of tensor."""
    for _ in range(8):  # Parameter(tensor), or a tensor with attributes: the tensor inside is what counts
        kind, args = call.name.rpartition(".")[2], call.args
        if kind in ("_rebuild_parameter", "_rebuild_parameter_with_state") and args and type(args[0]) is Call:
            call = args[0]
        elif kind == "_rebuild_from_type_v2" and _plain_type(args):
            call = Call(args[0].name, args[2])
        else:
            break
    if kind == "_rebuild_tensor_v2" and 6 <= len(args) <= 7:
        storage, dtype, metadata = args[0], None, args[6:]
    elif kind == "_rebuild_tensor_v3" and 7 <= len(args) <= 8:
        storage, dtype, metadata = args[0], args[6], args[7:]
    else:
        raise Unsupported(KINDS.get(kind, f"torch builds it with {kind}, which msmigrate does not know"))
    if metadata and metadata[0]:
        raise Unsupported("it is a lazily negated or conjugated view; save tensor.resolve_neg().resolve_conj() instead")
    if not isinstance(storage, Storage) or not (dtype is None or isinstance(dtype, Global)):
        raise BadCheckpoint("the description of the tensor is damaged")
    return _view(archive, storage, _dtype(storage, dtype), args[1], args[2], args[3])


SPARSE = "it is a sparse tensor, which MindSpore checkpoints cannot hold; save tensor.to_dense()"
DEVICE = "it lives on a device whose tensors are pickled; save tensor.cpu()"
SUBCLASS = "it is a tensor subclass; save the plain tensor"
KINDS = {
    "_rebuild_sparse_tensor": SPARSE,
    "_rebuild_sparse_csr_tensor": SPARSE,
    "_rebuild_qtensor": "it is a quantized tensor, which MindSpore checkpoints cannot hold; save tensor.dequantize()",
    "_rebuild_meta_tensor_no_storage": "it is on the meta device and has no values",
    "_rebuild_nested_tensor": "it is a nested tensor, which MindSpore checkpoints cannot hold",
    "_rebuild_device_tensor_from_numpy": DEVICE,
    "_rebuild_device_tensor_from_cpu_tensor": DEVICE,
    "_rebuild_wrapper_subclass": SUBCLASS,
    "_rebuild_from_type_v2": SUBCLASS,
}


def _plain_type(args: tuple[Any, ...]) -> bool:
    return (
        len(args) == 4
        and isinstance(args[0], Global)
        and isinstance(args[1], Global)
        and args[1].name in ("torch.Tensor", "torch.nn.parameter.Parameter", "torch.nn.parameter.Buffer")
        and type(args[2]) is tuple
    )


def _dtype(storage: Storage, dtype: Global | None) -> str:
    """Return the dtype by its torch name without `torch.`; raises Unsupported for one of unknown size."""
    if dtype is not None:
        name = dtype.name.rpartition(".")[2]
    elif storage.kind in UNTYPED:
        raise BadCheckpoint("the tensor has no dtype")
    else:
        name = STORAGE_DTYPES.get(storage.kind.rpartition(".")[2], storage.kind)
    if name not in ITEM_SIZES:
        raise Unsupported(f"its dtype {name} has no counterpart in MindSpore")
    return name


def _view(archive: TorchSource, storage: Storage, dtype: str, offset: Any, shape: Any, strides: Any) -> Tensor:
    """Check a view against its storage and the storage against its member of the zip."""
    shape, strides = _sizes(shape, "shape"), _sizes(strides, "strides")
    if type(offset) is not int or not 0 <= offset < MAX_DIM or len(shape) != len(strides):
        raise BadCheckpoint("offset, shape and strides do not make a tensor")
    item = ITEM_SIZES[dtype]
    total = storage.numel * (1 if storage.kind in UNTYPED else item)
    member = archive.storage(storage.key)
    if not 0 <= total < MAX_DIM or member.length != total:
        raise BadCheckpoint(
            f"its storage {shown(storage.key)} should hold {total if abs(total) < MAX_DIM else 'absurdly many'} bytes "
            f"and holds {member.length}"
        )
    count = product(shape)
    last = offset + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True)) if count else -1
    if (last + 1) * item > total:
        raise BadCheckpoint(f"shape {shape} at offset {offset} reaches past its storage of {total:,} bytes")
    if count * item > archive.size:  # strides of 0 let a tiny file claim any size
        raise Unsupported("it is an expanded view, larger than the file; save tensor.contiguous()")
    length = (last + 1 - offset) * item if count else 0
    return Tensor(dtype, shape, strides, (ByteRange(member.offset + (offset * item if count else 0), length),))


def _sizes(value: Any, what: str) -> tuple[int, ...]:
    """Return the sizes or strides as a tuple of checked integers."""
    if type(value) is Call and value.name == "torch.Size" and len(value.args) == 1:
        value = value.args[0]
    if type(value) not in (tuple, list) or any(type(item) is not int for item in value):
        raise BadCheckpoint(f"its {what} is not a list of integers")
    if len(value) > MAX_RANK or any(not 0 <= item < MAX_DIM for item in value):
        raise BadCheckpoint(f"its {what} is negative or absurdly large")
    return tuple(value)
