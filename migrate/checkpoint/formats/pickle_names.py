"""Which names a checkpoint's pickle may use, and which only attacks use. None is ever imported.

Whatever a pickle names stays a name here, so none can do harm; but a user whose file would run something in torch
should be warned. Which names are allowed depends on the package:

- Python's own: classes of plain data, and the functions that build such data. All else in its modules has effects.
- torch's: classes, dtypes, the functions that rebuild its objects, and functions that compute, which layers may hold.
- NumPy's: its scalar types, its arrays and what rebuilds them, and plain functions of numbers.
- Packages whose purpose is to run code, start processes or reach the network: nothing.
- All other packages: anything, since a model saved whole names its author's classes and functions.
"""

from __future__ import annotations

import sys
from functools import lru_cache

MAX_NAME = 1000  # letters of a module's name, and of a name in it


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


RENAMED = {"__builtin__": "builtins", "copy_reg": "copyreg"}  # as protocol 2, which torch uses, still calls them

# Python's own modules, including those that some versions or systems lack.
STANDARD = sys.stdlib_module_names | _words(
    "test _pyrepl _osx_support _aix_support distutils lib2to3 asynchat asyncore smtpd imp pipes telnetlib cgi cgitb "
    "nntplib sndhdr imghdr uu xdrlib mailcap crypt msilib nis spwd audioop aifc chunk sunau commands popen2 httplib "
    "urllib2 nt winreg _winapi _posixsubprocess"
)
# Packages among them: `os.path` is Python's, but `code.net.Model` is from a user's folder.
STANDARD_PACKAGES = _words(
    "asyncio collections concurrent ctypes curses dbm distutils email encodings ensurepip html http "
    "idlelib importlib json lib2to3 logging multiprocessing os pathlib pydoc_data re sqlite3 sysconfig test tkinter "
    "tomllib unittest urllib venv wsgiref xml xmlrpc zoneinfo string _pyrepl nt posix sys"
)
# What in them is plain data, or builds it. Their C versions, with a leading underscore, have the same names.
PLAIN = {
    module: _words(names)
    for module, names in {
        "builtins": "set frozenset dict list tuple int float bool str bytes bytearray complex slice range object type "
        "Ellipsis NotImplemented long unicode xrange getattr",
        "copyreg": "_reconstructor __newobj__ __newobj_ex__",
        "argparse": "Namespace",
        "array": "array _array_reconstructor",
        "codecs": "encode",  # bytes, in protocol 2
        "collections": "OrderedDict defaultdict Counter deque ChainMap UserDict UserList UserString",
        "contextlib": "nullcontext",
        "datetime": "date datetime time timedelta timezone tzinfo",
        "decimal": "Decimal",
        "fractions": "Fraction",
        "functools": "partial",
        "io": "BytesIO StringIO",
        "ipaddress": "IPv4Address IPv6Address IPv4Network IPv6Network IPv4Interface IPv6Interface",
        "itertools": "count cycle repeat chain islice",
        "logging": "getLogger",  # a logger is pickled as its name
        "math": "sqrt exp log log2 log10 log1p sin cos tan tanh sinh cosh atan floor ceil fabs pow erf inf nan pi",
        "numbers": "Number Complex Real Rational Integral",
        # a generic type is pickled as typing.List[int] is written; Python 3.11.2 pickles two flags as one | other
        "operator": "getitem or_",
        "_operator": "or_",
        "pathlib": "PurePath PurePosixPath PureWindowsPath Path PosixPath WindowsPath",
        "pathlib._local": "PurePath PurePosixPath PureWindowsPath Path PosixPath WindowsPath",
        "random": "Random",
        "re": "_compile RegexFlag Pattern",
        "string": "Template",
        "time": "struct_time",
        "types": "SimpleNamespace GenericAlias MappingProxyType NoneType",
        "typing": "Any Union Optional Callable Literal Final ClassVar Annotated Generic TypeVar NamedTuple TypedDict "
        "Dict List Tuple Set FrozenSet Type DefaultDict OrderedDict Counter Deque Sequence MutableSequence Mapping "
        "MutableMapping Iterable Iterator Collection Container Sized Hashable Text",
        "uuid": "UUID SafeUUID",
        "zoneinfo": "ZoneInfo ZoneInfo._unpickle",
    }.items()
}

# Other packages whose purpose is to run code, start processes or reach files and the network.
RUNNERS = _words(
    "pip setuptools pkg_resources ensurepip cffi cloudpickle dill joblib requests aiohttp httpx httpcore urllib3 "
    "websocket websockets paramiko fabric invoke pexpect ptyprocess sh plumbum psutil IPython ipykernel jupyter_client "
    "execnet celery dask ray pyspark huggingface_hub gdown wget boto3 botocore fsspec msmigrate"
)
HARMLESS = _words("dill._dill._load_type")  # with it dill names NoneType and similar types, in any checkpoint
READERS = _words("pandas.eval pandas.read_pickle pandas.io.pickle.read_pickle pandas.io.api.read_pickle")

# torch's packages that run code, read files or start processes, and then what in them is still only data.
TORCH_ACTS = _words(
    "torch.hub torch.jit torch.package torch.ops torch._ops torch.classes torch.multiprocessing torch.testing torch._C "
    "torch._dynamo torch._inductor torch._export torch.onnx torch.distributed torch.utils torch.fx.experimental"
)
TORCH_KEEPS = _words(
    "torch._dynamo.eval_frame torch._dynamo.convert_frame torch._dynamo.hooks torch._dynamo.repro.after_dynamo "
    "torch.utils.data torch.utils.hooks torch.distributed.fsdp torch.distributed.tensor torch.distributed._tensor "
    "torch.distributed._shard torch.distributed.optim torch.distributed.algorithms torch.distributed.device_mesh "
    "torch.distributed.checkpoint"
)
TORCH_COMPUTES = _words(  # modules of functions that layers may hold: they compute with tensors or fill them
    "torch.nn.functional torch.nn.init torch.functional torch.special torch.fft torch.linalg "
    "torch._C._nn torch._C._special torch._C._fft torch._C._linalg"
)
# hooks and schedules name methods of their classes
TORCH_METHODS = ("torch.nn.", "torch.optim.", "torch.Tensor.", "torch._C.TensorBase.", "torch._C._VariableFunctions")
TORCH_NAMES = _words(
    "torch._C.Generator torch._C._VariableFunctions torch._C._VariableFunctionsClass "
    "torch._tensor._rebuild_from_type torch._tensor._rebuild_from_type_v2 "
    "torch.tensor._rebuild_from_type torch.tensor._rebuild_from_type_v2 torch.serialization._get_layout "
    "torch.amp.grad_scaler._refresh_per_optimizer_state torch.cuda.amp.grad_scaler._refresh_per_optimizer_state "
    "torch.amp.autocast_mode.autocast torch.cuda.amp.autocast_mode.autocast torch.autograd.grad_mode.no_grad "
    "torch.fx.graph_module.reduce_graph_module torch.fx.graph_module.reduce_package_graph_module "
    "torch._dynamo.backends.inductor.inductor torch.utils.checkpoint.checkpoint "
    "torch.utils.data._utils.collate.default_collate torch.utils.data._utils.collate.default_convert"
)
TORCH_REBUILDS = "torch._utils._rebuild_"
TORCH_RUNS = _words(  # in torch itself; everything else there computes
    "load save compile from_file import_ir_module import_ir_module_from_buffer parse_ir parse_schema hub fork wait"
)

NUMPY_MODULES = _words(  # with classes of data
    "numpy.dtypes numpy.ma numpy.ma.core numpy.rec numpy.core.records numpy._core.records numpy.random numpy.matrixlib "
    "numpy.matrixlib.defmatrix numpy.random.mtrand numpy.random._generator numpy.random.bit_generator "
    "numpy.random._mt19937 numpy.random._pcg64 numpy.random._philox numpy.random._sfc64 numpy.polynomial "
    "numpy.polynomial.polynomial numpy.polynomial.chebyshev numpy.polynomial.legendre numpy.polynomial.hermite "
    "numpy.polynomial.hermite_e numpy.polynomial.laguerre"
)
NUMPY_REBUILDS = _words(
    "multiarray._reconstruct multiarray.scalar multiarray._frombuffer numeric._frombuffer ma.core._mareconstruct "
    "random._pickle.__randomstate_ctor random._pickle.__generator_ctor random._pickle.__bit_generator_ctor "
    "random.bit_generator.__pyx_unpickle_SeedSequence random.bit_generator.__pyx_unpickle_SeedlessSeedSequence"
)
NUMPY_NAMES = _words(  # in numpy itself, or as ufuncs where they are compiled
    "dtype ndarray recarray record matrix poly1d bool bool_ bool8 object_ void str_ string_ unicode_ bytes_ half "
    "single double longdouble longfloat float_ float16 float32 float64 float96 float128 csingle cdouble clongdouble "
    "complex_ complex64 complex128 complex192 complex256 byte short intc int_ intp long longlong int8 int16 int32 "
    "int64 ubyte ushort uintc uint uintp ulong ulonglong uint8 uint16 uint32 uint64 datetime64 timedelta64 nan inf pi "
    "mean median average max min amax amin sum prod std var abs absolute fabs sign sqrt square exp exp2 expm1 log log2 "
    "log10 log1p sin cos tan arctan sinh cosh tanh add subtract multiply divide true_divide power maximum minimum clip "
    "argmax argmin nanmean nanmax nanmin nanstd percentile quantile round rint floor ceil isnan isfinite"
)
COMPILED = _words("numpy.core._multiarray_umath numpy._core._multiarray_umath")

OWN_RULES = {"torch", "numpy"}


@lru_cache(maxsize=4096)  # a state dict names a few things ten thousand times
def is_refused(module: str, name: str) -> bool:
    """Whether no checkpoint needs this name of this module; the name may have dots, for attributes: `Net.Block`."""
    module = RENAMED.get(module, module)
    if name in PLAIN.get(module, ()):
        return False
    parts = name.split(".")
    if any(part.startswith("__") and part.endswith("__") for part in parts):
        return True
    # Attributes of a module are other modules too: `torch.serialization` and `os.system`.
    for at, part in enumerate(parts[:-1]):
        if part in STANDARD or part in RUNNERS or part in OWN_RULES:
            return is_refused(".".join(parts[at:-1]), parts[-1])
    top = module.partition(".")[0]
    if top == "torch":
        return not _may_be_of_torch(module, parts)
    if top == "numpy":
        return not _may_be_of_numpy(module, parts)
    if top in STANDARD and (top == module or top in STANDARD_PACKAGES):
        return name not in PLAIN.get(module.removeprefix("_"), ())
    full = f"{module}.{name}"
    return (top in RUNNERS and full not in HARMLESS) or full in READERS


def is_method_refused(full: str, attribute: str) -> bool:
    """Whether no checkpoint needs getattr of this attribute, on the object with this full name."""
    parts = full.split(".")
    first = next((at for at, part in enumerate(parts) if at and _is_class(part)), len(parts) - 1)
    return is_refused(".".join(parts[:first]), ".".join((*parts[first:], attribute)))


def _is_class(part: str) -> bool:
    """Whether a name is spelled as a class or a constant."""
    return part.lstrip("_")[:1].isupper()


def _may_be_of_torch(module: str, parts: list[str]) -> bool:
    full = ".".join((module, *parts))
    if full in TORCH_NAMES or (full.startswith(TORCH_REBUILDS) and len(parts) == 1):
        return True
    if module in TORCH_COMPUTES:
        return len(parts) == 1
    if module == "torch" and len(parts) == 1:
        return parts[0] not in TORCH_RUNS and (_is_class(parts[0]) or not parts[0].startswith("_"))
    if full.startswith(TORCH_METHODS) and _is_class(parts[0]):
        return True
    inside = full.split(".")
    packages = [".".join(inside[:count]) for count in range(1, len(inside))]
    if TORCH_ACTS.intersection(packages) and not TORCH_KEEPS.intersection(packages):
        return False
    return all(map(_is_class, parts))


def _may_be_of_numpy(module: str, parts: list[str]) -> bool:
    if len(parts) != 1:
        return False
    if module == "numpy" or module in COMPILED:
        return parts[0] in NUMPY_NAMES
    inside = module.removeprefix("numpy.").removeprefix("core.").removeprefix("_core.")
    return f"{inside}.{parts[0]}" in NUMPY_REBUILDS or (module in NUMPY_MODULES and _is_class(parts[0]))
