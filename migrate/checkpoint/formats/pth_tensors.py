"""Placeholders for the names, calls and storages of a torch checkpoint's pickle, and the tensors that they describe.

The placeholders are inert. A tensor is element offset, sizes and strides. Every view is checked against its storage
here, so that code that reads the bytes later can trust the numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ....errors import BadCheckpoint, Unsupported
from .reader import ITEM_SIZES, MAX_DIM, MAX_RANK, ByteRange, Tensor, product, shown


class Global(NamedTuple):
    """A name that the pickle mentions, such as `torch.float32`; nothing was imported."""

    name: str


class Storage(NamedTuple):
    """A block of bytes in the file: `key` identifies it, `numel` counts elements of `kind`.

    `kind` is the storage class, such as `torch.FloatStorage`; for `torch.storage.UntypedStorage` numel counts bytes.
    `view` is the part of the block that is used, as offset and number of elements; None means all of it.
    """

    kind: str
    key: str
    numel: int
    view: tuple[int, int] | None = None


class Call:
    """A call that the pickle asks for, which is not made: `name(*args)`, then `state` set on the result."""

    __slots__ = ("args", "name", "state")

    def __init__(self, name: str, args: tuple[Any, ...]) -> None:
        self.name, self.args, self.state = name, args, None


def zip_reference(reference: Any) -> Storage:
    """The storage that a persistent id of the zip format refers to; raises TypeError for anything else."""
    if type(reference) is not tuple or len(reference) != 5 or reference[0] != "storage":
        raise TypeError
    return _storage(*reference[1:])


def legacy_reference(reference: Any) -> Storage | Global:
    """What a persistent id from before torch 1.6 refers to; raises TypeError when it is no such id.

    That is a storage, perhaps only part of one, or the class of a module; the source code that comes with the class is
    ignored.
    """
    if type(reference) is not tuple or len(reference) not in (4, 6):
        raise TypeError
    if len(reference) == 4 and reference[0] == "module" and isinstance(reference[1], Global):
        return reference[1]
    if len(reference) != 6 or reference[0] != "storage":
        raise TypeError
    storage, view = _storage(*reference[1:5]), reference[5]
    if view is None:
        return storage
    if type(view) is not tuple or [type(item) for item in view] != [str, int, int]:
        raise TypeError
    return storage._replace(view=view[1:])


def _storage(kind: Any, key: Any, _: Any, numel: Any) -> Storage:
    if not isinstance(kind, Global) or not isinstance(key, str) or type(numel) is not int:
        raise TypeError
    return Storage(kind.name, key, numel)


STORAGE_DTYPES = {
    f"{module}.{name}Storage": dtype
    for module in ("torch", "torch.cuda")
    for name, dtype in {
        "Double": "float64",
        "Float": "float32",
        "Half": "float16",
        "BFloat16": "bfloat16",
        "Long": "int64",
        "Int": "int32",
        "Short": "int16",
        "Char": "int8",
        "Byte": "uint8",
        "Bool": "bool",
        "ComplexDouble": "complex128",
        "ComplexFloat": "complex64",
    }.items()
}
UNTYPED = ("torch.storage.UntypedStorage", "torch.storage.TypedStorage")

# Only torch's own functions make tensors; a `_rebuild_tensor_v2` of another package may mean anything.
REBUILD = "torch._utils._rebuild_"
FROM_TYPE = tuple(f"torch.{module}._rebuild_from_type{n}" for module in ("_tensor", "tensor") for n in ("_v2", ""))
PARAMETER = ("torch.nn.parameter.Parameter", "torch.nn.parameter.Buffer")
AROUND = (*PARAMETER, "torch.autograd.variable.Variable")  # as torch before 0.4 saved a parameter: around its tensor
PLAIN = ("torch.Tensor", *PARAMETER)


def is_tensor(value: Any) -> bool:
    """Whether an inert value is a call of one of the functions with which torch's tensors are pickled."""
    if type(value) is not Call:
        return False
    name = value.name
    return (name.startswith(REBUILD) and name.count(".") == 2) or name in FROM_TYPE or name in AROUND


def holds_storage(value: Any) -> bool:
    """Whether an inert value is a call on a storage: a tensor, or a library's substitute for one."""
    return type(value) is Call and any(isinstance(item, Storage) for item in value.args)


def describe(call: Call, size: int, storage_at: Callable[[str], ByteRange]) -> Tensor:
    """The tensor that a call would make, of a file of `size` bytes whose storages `storage_at` finds.

    Raises BadCheckpoint for numbers that do not fit, Unsupported for other kinds of tensor.
    """
    for _ in range(8):  # Parameter(tensor), or a tensor with attributes: the tensor inside is what counts
        kind, args = _kind(call.name), call.args
        if kind in (*AROUND, "_rebuild_parameter", "_rebuild_parameter_with_state") and args and is_tensor(args[0]):
            call = args[0]
        elif kind in FROM_TYPE and _plain_type(args):
            call = Call(args[0].name, args[2])
        else:
            break
    if kind == "_rebuild_tensor" and len(args) == 4:
        storage, dtype, metadata = args[0], None, ()
    elif kind == "_rebuild_tensor_v2" and 6 <= len(args) <= 7:
        storage, dtype, metadata = args[0], None, args[6:]
    elif kind == "_rebuild_tensor_v3" and 7 <= len(args) <= 8:
        storage, dtype, metadata = args[0], args[6], args[7:]
    else:
        raise Unsupported(KINDS.get(kind, f"torch builds it with {shown(kind)}, which msmigrate does not know"))
    if metadata and metadata[0]:
        raise Unsupported("it is a lazily negated or conjugated view; save tensor.resolve_neg().resolve_conj() instead")
    if not isinstance(storage, Storage) or not (dtype is None or isinstance(dtype, Global)):
        raise BadCheckpoint("the description of the tensor is damaged")
    return _view(storage, _dtype(storage, dtype), args[1:4], size, storage_at)


def storage_item_size(kind: str) -> int:
    """The bytes of one element of a storage class; raises Unsupported for an unknown one."""
    if kind in UNTYPED or kind in ("torch.QInt8Storage", "torch.QUInt8Storage"):
        return 1
    if kind == "torch.QInt32Storage":
        return 4
    if kind not in STORAGE_DTYPES:
        raise Unsupported(f"it holds a {shown(kind)}, whose elements have no known size")
    return ITEM_SIZES[STORAGE_DTYPES[kind]]


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
    **dict.fromkeys(FROM_TYPE, SUBCLASS),
}


def _kind(name: str) -> str:
    """The name of a function: its short name in torch._utils, else its full name."""
    return name.removeprefix("torch._utils.") if name.startswith(REBUILD) else name


def _plain_type(args: tuple[Any, ...]) -> bool:
    return (
        len(args) == 4
        and isinstance(args[0], Global)
        and isinstance(args[1], Global)
        and args[1].name in PLAIN
        and type(args[2]) is tuple
    )


def _dtype(storage: Storage, dtype: Global | None) -> str:
    """The dtype by its torch name without `torch.`; raises Unsupported for one of unknown size."""
    if dtype is not None:
        name = dtype.name.removeprefix("torch.")
    elif storage.kind in UNTYPED:
        raise BadCheckpoint("the tensor has no dtype")
    else:
        name = STORAGE_DTYPES.get(storage.kind, storage.kind)
    if name not in ITEM_SIZES:
        raise Unsupported(f"its dtype {shown(name)} has no counterpart in MindSpore")
    return name


def _view(
    storage: Storage, dtype: str, numbers: tuple[Any, ...], file_size: int, storage_at: Callable[[str], ByteRange]
) -> Tensor:
    """Check a view (offset, shape, strides) against its storage, and the storage against its bytes in the file."""
    offset, shape, strides = numbers[0], _sizes(numbers[1], "shape"), _sizes(numbers[2], "strides")
    if type(offset) is not int or not 0 <= offset < MAX_DIM or len(shape) != len(strides):
        raise BadCheckpoint("offset, shape and strides do not make a tensor")
    item = ITEM_SIZES[dtype]
    start, total = _block(storage, 1 if storage.kind in UNTYPED else item, storage_at(storage.key))
    count = product(shape)
    last = offset + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True)) if count else -1
    if (last + 1) * item > total:
        raise BadCheckpoint(f"shape {shape} at offset {offset} reaches past its storage of {total:,} bytes")
    if count * item > file_size:  # strides of 0 let a tiny file claim any size
        raise Unsupported("it is an expanded view, larger than the file; save tensor.contiguous()")
    length = (last + 1 - offset) * item if count else 0
    return Tensor(dtype, shape, strides, (ByteRange(start + (offset * item if count else 0), length),))


def _block(storage: Storage, item: int, found: ByteRange) -> tuple[int, int]:
    """Where the bytes of a storage begin, and how many there are."""
    total = storage.numel * item
    if not 0 <= total < MAX_DIM or found.length != total:
        raise BadCheckpoint(
            f"its storage {shown(storage.key)} should hold {total if abs(total) < MAX_DIM else 'absurdly many'} bytes "
            f"and holds {found.length}"
        )
    if storage.view is None:
        return found.offset, total
    offset, count = storage.view
    if not (0 <= offset <= storage.numel and 0 <= count <= storage.numel - offset):
        raise BadCheckpoint(f"it views a part outside its storage {shown(storage.key)}")
    return found.offset + offset * item, count * item


def _sizes(value: Any, what: str) -> tuple[int, ...]:
    """The sizes or strides as a tuple of checked integers."""
    if type(value) is Call and value.name == "torch.Size" and len(value.args) == 1:
        value = value.args[0]
    if type(value) not in (tuple, list) or any(type(item) is not int for item in value):
        raise BadCheckpoint(f"its {what} is not a list of integers")
    if len(value) > MAX_RANK or any(not 0 <= item < MAX_DIM for item in value):
        raise BadCheckpoint(f"its {what} is negative or absurdly large")
    return tuple(value)
