"""Process: an ONNX file's operators, shapes and FLOPs.

    python -m msmigrate.migrate.analyze.onnx_worker model.onnx

Prints one line of JSON: `nodes` (operator, how often, where, with how many axes, with which attributes), `costs`,
`inputs`. A process of its own, since ONNX's library reads the file in C++, and a damaged file may crash it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path, PurePosixPath
from typing import Any

# MindSpore sets this to "python" for all later processes, and its documentation asks users to: that reader is slow, and
# refuses a file for one name that is not UTF-8
os.environ.pop("PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION", None)

import onnx

from ...errors import BadInput
from ...input_files import read_bytes, unreadable
from ..checkpoint.formats.reader import MAX_DIM, MAX_RANK
from ..model_spec import serve

LARGEST_CONSTANT = 1024  # values of a tensor that shape inference may read: shapes and axes, not weights
Shapes = dict[str, "list[int] | None"]


def known_shapes(model: onnx.ModelProto) -> Shapes:
    """Return the shape of every tensor that has one; a first axis of any size (the batch) counts as 1."""
    light = onnx.ModelProto()
    light.CopyFrom(model)
    del light.functions[:]  # inference follows every call, and a few functions that call each other twice take for ever
    for tensor in light.graph.initializer:
        if prod(tensor.dims) > LARGEST_CONSTANT:
            tensor.ClearField("raw_data")
            tensor.ClearField("float_data")
    for value in light.graph.input:
        sizes = value.type.tensor_type.shape.dim
        if sizes and not sizes[0].dim_value:
            sizes[0].dim_value = 1
    with contextlib.suppress(Exception):  # without shapes only the FLOPs are missing
        light = onnx.shape_inference.infer_shapes(light)
    graph = light.graph
    shapes: Shapes = {tensor.name: list(tensor.dims) for tensor in model.graph.initializer}
    for value in (*graph.input, *graph.value_info, *graph.output):
        tensor = value.type.tensor_type
        if tensor.HasField("shape") and len(tensor.shape.dim) <= MAX_RANK:
            sizes = [size.dim_value if size.HasField("dim_value") else -1 for size in tensor.shape.dim]
            shapes.setdefault(value.name, sizes)
    return shapes


def flops(model: onnx.ModelProto, shapes: Shapes) -> int | None:
    """Return the FLOPs of convolutions and matrix products for one pass, None where a shape is not known."""
    if model.functions:
        return None  # the nodes inside them have no shapes here
    total = 0
    for node in model.graph.node:
        if node.op_type in ("Conv", "ConvTranspose", "MatMul", "Gemm"):
            one = _of_node(node, shapes)
            if one is None:
                return None
            total += one
    return total


def _of_node(node: Any, shapes: Shapes) -> int | None:
    known = [shapes.get(name) for name in (*node.input[:2], *node.output[:1])]
    if len(known) < 3 or any(shape is None or min(shape, default=0) < 0 for shape in known):
        return None
    left, right, result = ([*shape] for shape in known if shape is not None)
    if node.op_type == "Conv":
        return 2 * prod(result) * prod(right[1:])
    if node.op_type == "ConvTranspose":
        return 2 * prod(left) * prod(right[1:])
    turned = node.op_type == "Gemm" and any(item.name == "transA" and item.i for item in node.attribute)
    inner = left[-2] if turned and len(left) > 1 else left[-1] if left else 1
    return 2 * prod(result) * inner


LARGEST = 2**31 - 1  # bytes, protobuf's limit; larger models keep their tensors in other files
FREE = 64 << 20  # bytes of memory that any model may take
TIMES = 2  # further bytes of memory for each byte of the file
MOST_NODES = 1_000_000
MOST_PLACES = 1000  # of one operator that are reported
MOST_CALLS = 5_000_000  # of operators in functions, added up
LONGEST = 200  # letters of a name that are reported
MOST_OPSETS = 20
OWN_DOMAINS = ("", "ai.onnx")
READ = (1, 2, 3, 7)  # the kinds of attributes that are read: a number, a string, a list of integers
Key = tuple[str, str, int, str]
Counts = dict[Key, int]
BITS = {"UNDEFINED": 0, "STRING": 0, "COMPLEX128": 128, "COMPLEX64": 64, "BOOL": 8}


def report(path: str) -> dict[str, Any]:
    """Read the file and report its content; raises BadInput for a file that is not a complete ONNX model."""
    try:
        return _report(path, read(Path(path)))
    except UnicodeDecodeError:  # protobuf decodes a string only when it is read
        raise BadInput("it is damaged: a name or text in it is not UTF-8, as ONNX's are") from None
    except RecursionError:
        raise BadInput("its graphs or functions are nested too deeply") from None


def _report(path: str, model: onnx.ModelProto) -> dict[str, Any]:
    tensors = list(_tensors(model.graph))
    for tensor in tensors:
        _check(tensor, Path(path))
    shapes = known_shapes(model)
    weights = [tensor for tensor in tensors if _is_float(tensor)]
    written = f"{_text(model.producer_name)} {_text(model.producer_version)}".strip()
    opsets = (f"{_text(item.domain) or 'ai.onnx'} {item.version}" for item in model.opset_import[:MOST_OPSETS])
    return {
        "nodes": Nodes(model, shapes).as_json(model.graph.node),
        "costs": {
            "parameters": sum(prod(tensor.dims) for tensor in weights),
            "parameter_bytes": sum(prod(tensor.dims) * _bits(tensor) // 8 for tensor in weights),
            "flops": flops(model, shapes),
            "activation_bytes": None,
        },
        "inputs": " and ".join(_inputs(model)) or "no inputs",
        "versions": {"onnx opset": ", ".join(opsets), **({"written by": written} if written else {})},
    }


def read(path: Path) -> onnx.ModelProto:
    """Read the model without the tensors in other files; raises BadInput."""
    try:
        content = read_bytes(path, LARGEST)
    except FileNotFoundError:
        raise BadInput("there is no such file") from None
    except OSError as error:
        raise BadInput(f"it cannot be read: {error.strerror}") from None
    try:
        with _bounded(len(content)):
            model = onnx.load_model_from_string(content)
    except Exception:  # protobuf's DecodeError, whose package is not imported for this alone
        raise BadInput(
            "it is no ONNX file, or a damaged one: its protobuf does not end where it should, or takes far more "
            "memory than a file of its size needs"
        ) from None
    if not model.opset_import or not model.HasField("graph"):
        raise BadInput("it is no ONNX file: it has neither the versions of its operators (opset_import) nor a graph")
    if not model.graph.node:
        raise BadInput("its graph has no nodes")
    return model


@contextmanager
def _bounded(size: int) -> Iterator[None]:
    """Limit this process to the additional memory that a file of this size needs, since two empty bytes may be a node.

    Only while protobuf parses, which then raises an error; later copies are of the file's size.
    """
    try:
        import resource

        held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        before = resource.getrlimit(resource.RLIMIT_AS)
        most = held + FREE + TIMES * size
        resource.setrlimit(resource.RLIMIT_AS, (min(most, before[0]) if before[0] > 0 else most, before[1]))
    except (ImportError, OSError, ValueError):  # a system that cannot do this
        yield
        return
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


class Nodes:
    """Counts the nodes of a graph, including those inside branches of other nodes and inside functions of the file.

    A function is counted only once and its counts are reused: a few that call each other twice are any number of nodes.
    """

    def __init__(self, model: onnx.ModelProto, shapes: dict[str, list[int] | None]) -> None:
        self.functions = {(function.domain, function.name): function for function in model.functions}
        self.counted: dict[tuple[str, str], Counts] = {}  # the nodes in one call of a function
        self.shapes = shapes
        self.distinct: dict[Key, dict[str, Any]] = {}
        self.places: dict[Key, list[str]] = {}
        self.added = 0

    def as_json(self, nodes: Any) -> list[dict[str, Any]]:
        """Every distinct node of a graph, with its count and places; raises BadInput."""
        counts = self._count(nodes, "", ())
        return [
            {**self.distinct[key], "calls": calls, "places": self.places.get(key, [])} for key, calls in counts.items()
        ]

    def _count(self, nodes: Any, place: str, within: tuple[tuple[str, str], ...]) -> Counts:
        if len(nodes) > MOST_NODES:
            raise BadInput(f"it has more than {MOST_NODES:,} nodes")
        found: Counts = {}
        for node in nodes:
            name = "/".join(part for part in (place, _text(node.name or node.op_type)) if part)[-5 * LONGEST :]
            inner = self._called(node, within) if (node.domain, node.op_type) in self.functions else self._own(node)
            for attribute in node.attribute:
                for graph in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                    for key, calls in self._count(graph.node, name, within).items():
                        inner[key] = inner.get(key, 0) + calls
            self.added += len(inner)
            if self.added > MOST_CALLS:
                raise BadInput(f"its functions call more than {MOST_CALLS:,} operators")
            for key, calls in inner.items():
                found[key] = found.get(key, 0) + calls
                if not within and len(self.places.setdefault(key, [])) < MOST_PLACES:
                    self.places[key].append(name)
        return found

    def _called(self, node: Any, within: tuple[tuple[str, str], ...]) -> Counts:
        key = (node.domain, node.op_type)
        if key in within:
            raise BadInput(f"its function {_text(node.op_type)} calls itself")
        if key not in self.counted:
            self.counted[key] = self._count(self.functions[key].node, "", (*within, key))
        return dict(self.counted[key])

    def _own(self, node: Any) -> Counts:
        attributes = {_text(item.name): _value(item) for item in node.attribute if item.type in READ}
        axes = self._axes(node, attributes)
        domain = "" if node.domain in OWN_DOMAINS else _text(node.domain)
        reported = {name: value for name, value in attributes.items() if isinstance(value, (str, int))}
        operator = _text(node.op_type)
        key = (domain, operator, axes, repr(sorted(reported.items())))
        self.distinct[key] = {"op": operator, "domain": domain, "axes": axes, "attributes": reported}
        return {key: 1}

    def _axes(self, node: Any, attributes: dict[str, Any]) -> int:
        """The number of axes of the node's image (or sequence), 0 where it is unknown."""
        kernel = attributes.get("kernel_shape")
        if isinstance(kernel, list):
            return len(kernel) + 2
        shapes = [self.shapes.get(name) for name in node.input[:2]]
        shape = shapes[0] if shapes and shapes[0] is not None else None
        if node.op_type in ("Conv", "ConvTranspose") and len(shapes) > 1 and shapes[1] is not None:
            shape = shapes[1]
        return len(shape) if shape is not None else 0


def _text(found: str | bytes, most: int = LONGEST) -> str:
    """A name as it is reported; protobuf gives bytes where it is not UTF-8."""
    return (found if isinstance(found, str) else found.decode(errors="backslashreplace"))[:most]


def _value(attribute: Any) -> Any:
    value = onnx.helper.get_attribute_value(attribute)
    return value.decode(errors="replace")[:100] if isinstance(value, bytes) else value


def _tensors(graph: Any) -> Iterator[Any]:
    """All tensors that are stored in a graph, and in the branches of its nodes."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                yield from _tensors(inner)


def _bits(tensor: Any) -> int:
    name = onnx.TensorProto.DataType.Name(tensor.data_type)
    if name in BITS:
        return BITS[name]
    digits = "".join(letter for letter in name.partition("E")[0] if letter.isdigit())
    return {"FLOAT": 32, "DOUBLE": 64}.get(name, int(digits or 0))


def _is_float(tensor: Any) -> bool:
    name = onnx.TensorProto.DataType.Name(tensor.data_type)
    return name.startswith(("FLOAT", "DOUBLE", "BFLOAT", "COMPLEX"))


def _check(tensor: Any, path: Path) -> None:
    """Raise BadInput for a tensor whose values are incomplete."""
    if len(tensor.dims) > MAX_RANK:
        raise BadInput(
            f"its tensor {_text(tensor.name)!r} has {len(tensor.dims):,} dimensions, more than the possible {MAX_RANK}"
        )
    if tensor.data_type not in onnx.TensorProto.DataType.values() or any(size < 0 for size in tensor.dims):
        raise BadInput(f"its tensor {_text(tensor.name)!r} has no known dtype, or a negative size")
    if prod(tensor.dims) >= MAX_DIM:
        raise BadInput(f"its tensor {_text(tensor.name)!r} has an impossible shape")
    expected = -(-prod(tensor.dims) * _bits(tensor) // 8)
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        _check_external(tensor, path, expected)
    elif tensor.raw_data and _bits(tensor) and len(tensor.raw_data) != expected:
        raise BadInput(f"its tensor {_text(tensor.name)!r} needs {expected:,} bytes and has {len(tensor.raw_data):,}")


def _check_external(tensor: Any, path: Path, expected: int) -> None:
    own = f"its tensor {_text(tensor.name)!r}"
    fields = {_text(entry.key): _text(entry.value, 1000) for entry in tensor.external_data}
    location = PurePosixPath(fields.get("location", ""))
    if not location.parts or location.is_absolute() or ".." in location.parts:
        raise BadInput(f"{own} points to {_text(str(location))!r}, outside the file's folder")
    try:
        start, length = int(fields.get("offset") or 0), int(fields.get("length") or expected)
        if max(start, length) >= MAX_DIM:
            raise ValueError
    except ValueError:
        raise BadInput(f"{own} has an offset or a length that is not a valid number of bytes") from None
    file = path.parent / location
    if unreadable(file) is not None:
        raise BadInput(f"{own} is in {_text(str(location))}, which is not there; put it next to the file")
    if start < 0 or length != expected or file.stat().st_size < start + length:
        raise BadInput(f"{own} is not complete in {_text(str(location))}: {expected:,} bytes from {start:,}")


def _inputs(model: onnx.ModelProto) -> Iterator[str]:
    stored = {tensor.name for tensor in model.graph.initializer}
    for value in model.graph.input:
        if value.name not in stored:
            sizes = value.type.tensor_type.shape.dim[:MAX_RANK]
            shape = "×".join(_text(size.dim_param) or str(size.dim_value) for size in sizes)
            yield f"{_text(value.name)} {shape}".strip()[:100]


if __name__ == "__main__":
    serve(report)
