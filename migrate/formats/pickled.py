"""What the names, calls and storages of a checkpoint's pickle become, all inert, and which names it may mention."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...errors import BadCheckpoint

# What a checkpoint of tensors may name. Everything here stays a name; the list says what we know to be data, so that
# a pickled model (its classes) or an attack (os.system) is refused by name rather than half understood.
ALLOWED_MODULES = {
    "torch": (
        "Size Tensor device Generator "
        "DoubleStorage FloatStorage HalfStorage BFloat16Storage LongStorage IntStorage ShortStorage CharStorage "
        "ByteStorage BoolStorage ComplexDoubleStorage ComplexFloatStorage QInt8Storage QInt32Storage QUInt8Storage "
        "QUInt4x2Storage QUInt2x4Storage "
        "float64 float32 float16 bfloat16 int64 int32 int16 int8 uint64 uint32 uint16 uint8 bool "
        "complex32 complex64 complex128 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu "
        "float4_e2m1fn_x2 qint8 qint32 quint8 quint4x2 quint2x4 "
        "per_tensor_affine per_tensor_symmetric per_channel_affine per_channel_symmetric"
    ),
    "torch.storage": "UntypedStorage TypedStorage _LegacyStorage",
    "torch.nn.parameter": "Parameter Buffer",
    "torch.serialization": "_get_layout",
    "torch._tensor": "_rebuild_from_type_v2",
    "torch._utils": (
        "_rebuild_tensor _rebuild_tensor_v2 _rebuild_tensor_v3 _rebuild_parameter _rebuild_parameter_with_state "
        "_rebuild_qtensor _rebuild_sparse_tensor _rebuild_sparse_csr_tensor _rebuild_nested_tensor "
        "_rebuild_meta_tensor_no_storage _rebuild_device_tensor_from_numpy _rebuild_device_tensor_from_cpu_tensor "
        "_rebuild_wrapper_subclass"
    ),
    "collections": "OrderedDict defaultdict Counter",
    # Found beside the weights in training checkpoints: options, paths, numpy numbers, encoded bytes.
    "argparse": "Namespace",
    "pathlib": "PosixPath WindowsPath PurePosixPath PureWindowsPath Path",
    "numpy": "dtype ndarray float64 float32 int64 int32 bool_",
    "numpy.core.multiarray": "scalar _reconstruct",
    "numpy._core.multiarray": "scalar _reconstruct",
    "_codecs": "encode",
    "datetime": "datetime timedelta date",
    "builtins": "set frozenset dict list tuple int float bool str bytes bytearray complex slice range",
}
ALLOWED = frozenset(f"{module}.{name}" for module, names in ALLOWED_MODULES.items() for name in names.split())


class Global(NamedTuple):
    """A name that the pickle mentions, such as `torch.float32`; nothing was imported."""

    name: str


class Storage(NamedTuple):
    """A block of bytes in the archive: `key` is its member under data/, `numel` counts elements of `kind`.

    `kind` is the storage class, such as `torch.FloatStorage`; for `torch.storage.UntypedStorage` numel counts bytes.
    """

    kind: str
    key: str
    numel: int


class Call:
    """A call that the pickle asks for and that was not made: `name(*args)`, then `state` set on the result."""

    __slots__ = ("args", "name", "state")

    def __init__(self, name: str, args: tuple[Any, ...]) -> None:
        self.name, self.args, self.state = name, args, None


def allow(module: str, name: str) -> Global:
    """Return the inert global, or raise BadCheckpoint naming it."""
    if module == "__builtin__":  # as protocol 2, which torch uses, still calls it
        module = "builtins"
    full = f"{module}.{name}"
    if full not in ALLOWED:
        shown = full if full.isprintable() and len(full) <= 200 else ascii(full)[:200]
        raise BadCheckpoint(
            f"its pickle names {shown}, which is not plain tensor data; nothing was run. If this is a model saved "
            "whole, save model.state_dict() instead"
        )
    return Global(full)
