"""The web application: MindSpore Serving's REST paths, values, answers and errors, and /health; and its connections.

Values are JSON numbers and nested lists, or binary data as base64 with type and shape (its documentation,
serving_restful, release 2.0). A request may come from anybody: whatever it says, its cost is bounded by its bytes and
by the shapes that the net takes.
Requests are read by threads. Those that wait to be read hold no more than HELD times the bytes of the largest one, and
those that are read at one time no more than the largest one, because their values take many times their bytes.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import math
import os
import re
import resource
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, NoReturn

import numpy as np
from PIL import Image, UnidentifiedImageError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from ...errors import BadInput
from ...training.data.sample import opened
from ..job import VERSION
from .batching import Batches, TooMany

AGAIN = 1  # seconds after which a client that was sent away may ask again
CLOSED = {"Connection": "close"}  # what has been sent of the request is not read
HELD = 4
LONGEST_PATH = 1000  # characters
PATH = re.compile(r"(?P<name>[^/:]+)(?:/version/(?P<version>[^/:]+))?:(?P<method>[^/:]+)")


@dataclass(frozen=True)
class Method:
    """A method of the model: the names of inputs and outputs, and what is done before and after the net.

    ready: values of one instance -> the net's inputs, raises BadInput. finish: the net's outputs for it -> as many
    values as there are outputs.
    """

    inputs: Sequence[str]
    outputs: Sequence[str]
    ready: Callable[[list[Any]], Any]
    finish: Callable[[Any], Sequence[Any]]


def answer(content: dict[str, Any], status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A response in JSON."""
    return respond(written(content), status, headers)


def respond(body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A response with JSON that is already written."""
    return Response(body, status, headers, "application/json")


def written(content: dict[str, Any]) -> bytes:
    """JSON; a lone surrogate, which a client may have sent, becomes its escape."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace")


def failure(message: str, status: int, headers: dict[str, str] | None = None) -> Response:
    """A response to a request that failed as a whole."""
    return answer({"error_msg": message}, status, headers)


def application(
    name: str, methods: dict[str, Method], batches: Batches, workers: Executor, most_bytes: int
) -> Starlette:
    """The application for one model. workers: threads that read requests and prepare instances."""
    held, reading = Room(HELD * most_bytes), Room(most_bytes)

    async def ready_of(body: bytes, method: Method) -> list[Any]:
        """Each instance as the net takes it, or its error. Raises BadInput and TooMany."""
        loop = asyncio.get_running_loop()
        instances = await loop.run_in_executor(workers, instances_of, body)
        batches.check_room(len(instances))
        prepared = [loop.run_in_executor(workers, partial(_prepared, method, each)) for each in instances]
        return await asyncio.gather(*prepared)

    async def ask(request: Request) -> Response:
        method = _method(request, name, methods)
        try:
            async with held.of() as share:
                body = await _body(request, most_bytes, share)
                async with reading.of(len(body)):
                    ready = await ready_of(body, method)
                del body
            futures = iter(batches.submit([each for each in ready if not isinstance(each, BadInput)]))
        except BadInput as error:
            return failure(str(error), 400)
        except TooMany:
            return failure("too many requests are waiting", 503, {"Retry-After": str(AGAIN), **CLOSED})
        found = [each if isinstance(each, BadInput) else await next(futures) for each in ready]
        del ready
        loop = asyncio.get_running_loop()
        texts = [await loop.run_in_executor(workers, partial(_text, method, each)) for each in found]
        return respond(b'{"instances":[' + b",".join(texts) + b"]}")

    async def health(request: Request) -> Response:
        counts = {"batches": batches.batches, "instances": batches.instances, "waiting": batches.waiting}
        return answer({"status": "ok", "model": name, "version": VERSION, "methods": [*methods], **counts})

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        batches.start()
        yield
        await batches.stop()

    routes = [
        Route("/model/{called:path}", ask, methods=["POST"]),
        Route("/health", health, methods=["GET"]),
    ]
    handlers: Any = {HTTPException: _refused, Exception: _failed}
    return Starlette(routes=routes, lifespan=lifespan, exception_handlers=handlers)


def _method(request: Request, name: str, methods: dict[str, Method]) -> Method:
    """The method that a path names. Raises HTTPException 404."""
    path = request.path_params["called"]
    match = PATH.fullmatch(path) if len(path) <= LONGEST_PATH else None
    if match is None:
        raise HTTPException(404)
    parts = {key: text for key, text in match.groupdict().items() if text is not None}
    if parts["name"] != name:
        raise HTTPException(404, f"there is no model of that name here; this is {name}")
    if parts.get("version", str(VERSION)) != str(VERSION):
        raise HTTPException(404, f"there is no version of that number; this is {VERSION}")
    if parts["method"] not in methods:
        raise HTTPException(404, f"{name} has no method of that name; it has {', '.join(methods)}")
    return methods[parts["method"]]


class Room:
    """A number of bytes that all requests share."""

    def __init__(self, size: int) -> None:
        self._left = size
        self._turn, self._freed = asyncio.Lock(), asyncio.Event()

    @asynccontextmanager
    async def of(self, size: int = 0) -> AsyncIterator[Callable[[int], None]]:
        """Hold this many bytes while the block runs; those who have to wait for them get them in turn.

        Yields a function that takes as many more as it is called with, or raises TooMany where they are not left.
        """
        taken = 0

        def take(more: int) -> None:
            nonlocal taken
            if more > self._left:
                raise TooMany
            self._left -= more
            taken += more

        async with self._turn:
            while size > self._left:
                self._freed.clear()
                await self._freed.wait()
            take(size)
        try:
            yield take
        finally:
            self._left += taken
            self._freed.set()


async def _body(request: Request, most: int, take: Callable[[int], None]) -> bytes:
    """The whole body, for each part of which `take` is called with its size. Raises what that raises, and HTTPException
    413 as soon as the body is known to be too large."""
    length = request.headers.get("content-length", "0")
    parts, size = [], 0
    too_large = HTTPException(413, f"a request may have {most} bytes", CLOSED)
    if length.isascii() and length.isdigit() and int(length[:20]) > most:
        raise too_large
    try:
        async for part in request.stream():
            size += len(part)
            if size > most:
                raise too_large
            take(len(part))
            parts.append(part)
    except ClientDisconnect:
        raise BadInput("the client is gone") from None
    return b"".join(parts)


def _prepared(method: Method, instance: Any) -> Any:
    """An instance as the net takes it, or the error, whatever it is, which concerns this instance alone."""
    try:
        return method.ready(values_of(instance, method.inputs))
    except BadInput as error:
        return error
    except Exception as error:
        print(f"an instance failed: {type(error).__name__}: {error}", file=sys.stderr)
        return BadInput("the instance cannot be prepared; the server's log says why")


def _text(method: Method, found: Any) -> bytes:
    """An instance's outputs as JSON, or why there are none."""
    try:
        if isinstance(found, BadInput):
            raise found
        outputs = method.finish(found)
        return written({key: plain(value) for key, value in zip(method.outputs, outputs, strict=True)})
    except BadInput as error:
        return written({"error_msg": str(error)})


async def _refused(request: Request, error: HTTPException) -> Response:
    return failure(str(error.detail), error.status_code, dict(error.headers or {}))


async def _failed(request: Request, error: Exception) -> Response:
    print(f"{type(error).__name__}: {error}", file=sys.stderr)
    return failure("the model failed; the server's log says why", 500)


MOST = 1000
PATIENCE = 20.0  # seconds in which a request has come, and an answer has gone; and more for each …
RATE = 10_000  # … so many bytes of it
LEAVING = 5.0  # the same once the server stops
LOOK = 1.0  # seconds between two looks at a connection


def most_connections() -> int:
    """How many there may be: at most MOST, and half of the descriptors that are left to this process.

    The other half is for those that are accepted before the first of them is looked at, and for everything else.
    """
    try:
        open_now = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 (iterdir holds one more)
    except OSError:
        open_now = 64
    return max(4, min(MOST, (resource.getrlimit(resource.RLIMIT_NOFILE)[0] - open_now) // 2))


class Connection(H11Protocol):
    """uvicorn's connection, with an end to its patience.

    uvicorn closes a connection that stays idle after an answer. This one is also closed if it never sends a request, or
    sends it or takes the answer too slowly; and if there are too many, the one that has been waited for longest.
    """

    most = MOST  # of all connections; the server sets it
    patience = PATIENCE

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request, in the place of another connection where there are too many."""
        super().connection_made(transport)
        self._begin_to_wait()
        self._watch = self.loop.call_later(LOOK, self._look)
        there: list[Any] = [each for each in self.connections if not each.transport.is_closing()]
        if len(there) > self.most:
            waited_for = [each for each in there if each is not self and each.is_waited_for()]
            oldest = min(waited_for, key=lambda each: each.since, default=self)
            oldest.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Part of a request."""
        self._moved += len(data)
        super().data_received(data)

    def on_response_complete(self) -> None:
        """An answer is written."""
        self._begin_to_wait()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop looking."""
        self._watch.cancel()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """The server stops."""
        self.patience = LEAVING
        super().shutdown()

    def is_waited_for(self) -> bool:
        """Whether it is the client's turn: to send a request, to go on with it, or to take its answer."""
        asks = self.cycle is None or self.cycle.response_complete or self.cycle.more_body
        return asks or self.transport.get_write_buffer_size() > 0

    def _begin_to_wait(self) -> None:
        self.since, self._moved = self.loop.time(), 0
        self._to_go = self.transport.get_write_buffer_size()

    def _look(self) -> None:
        left = self.transport.get_write_buffer_size()
        self._moved += max(0, self._to_go - left)
        self._to_go = left
        if not self.is_waited_for():
            self._begin_to_wait()
        elif self.loop.time() - self.since > self.patience + self._moved / RATE:
            self.transport.abort()
            return
        self._watch = self.loop.call_later(LOOK, self._look)


FORMATS = ("BMP", "GIF", "JPEG", "PNG", "WEBP")  # of images
MOST_INSTANCES = 1024  # instances of one request
MOST_PARTS = 500_000  # lists, objects and names in one: each takes up to a hundred times its bytes
LONGEST_SHAPE = 16  # dimensions that an error repeats
NO_TENSOR = "a tensor has to be numbers in lists of equal length"
LONGEST_NUMBER = 20  # digits of an integer that any tensor holds
TYPES = {
    **{name: name for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")},
    "float16": "float16",
    "fp16": "float16",
    "float32": "float32",
    "fp32": "float32",
    "float64": "float64",
    "fp64": "float64",
    "bool": "bool",
}


def instances_of(body: bytes) -> list[Any]:
    """The instances of a request's JSON. Raises BadInput for anything else."""
    parts = body.count(b"[") + body.count(b"{") + body.count(b":")
    if parts > MOST_PARTS:
        raise BadInput(
            f"the request has {parts} lists, objects and names; at most {MOST_PARTS} are taken: send tensors in base64"
        )
    try:
        found = _parsed(body)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"the request is no JSON: {' '.join(str(error).split())[:200]}") from None
    instances = found.get("instances") if isinstance(found, dict) else None
    if isinstance(instances, dict):
        instances = [instances]
    if not isinstance(instances, list) or not instances:
        raise BadInput('the request has to be {"instances": [{…}, …]} with at least one instance')
    if len(instances) > MOST_INSTANCES:
        raise BadInput(f"the request has {len(instances)} instances; at most {MOST_INSTANCES} are taken")
    return instances


def _parsed(body: bytes) -> Any:
    """The JSON of a body, in time that grows as its length does: Python's own integers grow with its square."""
    if getattr(sys, "get_int_max_str_digits", int)():  # Python refuses integers of thousands of digits by itself
        try:
            return json.loads(body, parse_constant=_no_number)
        except json.JSONDecodeError:
            raise
        except ValueError:
            pass
    return json.loads(body, parse_constant=_no_number, parse_int=_integer)


def _integer(digits: str) -> int | float:
    """An integer; one that is too long for any tensor as a float, which no shape and no integer tensor accepts."""
    return int(digits) if len(digits) <= LONGEST_NUMBER else float(digits)


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON")


def values_of(instance: Any, names: Sequence[str]) -> list[Any]:
    """The values of an instance in the order of `names`. Raises BadInput where one is missing or too many."""
    if not isinstance(instance, dict):
        raise BadInput("an instance has to be an object of names and values")
    missing = [name for name in names if name not in instance]
    extra = [name for name in instance if name not in names]
    if missing or extra:
        what = (
            f"has no input {missing[0]!r}" if missing else f"has {str(extra[0])[:50]!r}, which the method does not take"
        )
        raise BadInput(f"an instance {what}; expected {', '.join(map(repr, names))}")
    return [instance[name] for name in names]


def image_of(value: Any) -> Image.Image:
    """An image, of which only the header has been read. Raises BadInput for anything else, and for one too large."""
    content = bytes_of(value)
    try:
        return opened(content, FORMATS)
    except UnidentifiedImageError:
        why = f"it is none of {', '.join(FORMATS)}"
    except Exception as error:  # decoders fail in many ways
        why = " ".join(str(error).split())[:100]
    raise BadInput(f"the image cannot be prepared: {why}")


def bytes_of(value: Any) -> bytes:
    """The bytes of an image. Raises BadInput."""
    if not isinstance(value, Mapping) or value.get("type", "bytes") != "bytes" or not value.keys() <= {"b64", "type"}:
        raise BadInput('an image has to be {"b64": "…"}, the bytes of an image file in base64')
    return _decoded(value)


def _decoded(value: Mapping[str, Any]) -> bytes:
    text = value.get("b64")
    try:
        if not isinstance(text, str):
            raise ValueError
        return base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        raise BadInput("b64 is not a text in base64") from None


def array_of(value: Any, shape: Sequence[int], dtype: str) -> np.ndarray:
    """A tensor of this shape and dtype, without the batch. Raises BadInput for another shape and what is no number."""
    found = _binary(value, shape) if isinstance(value, Mapping) else _listed(value, shape)
    whole = np.dtype(dtype).kind in "iu"
    if found.dtype.kind not in ("iu" if whole else "iuf"):
        raise BadInput(f"a tensor holds {found.dtype}; expected {dtype}")
    if whole and found.size and (found.min() < np.iinfo(dtype).min or found.max() > np.iinfo(dtype).max):
        raise BadInput(f"a tensor holds numbers that {dtype} cannot hold")
    with np.errstate(over="ignore"):
        array = found.astype(dtype)
    if not whole and not np.isfinite(array).all():
        raise BadInput("a tensor holds numbers that are not finite")
    return array


def _listed(value: Any, shape: Sequence[int]) -> np.ndarray:
    """Numbers in nested lists; that these have the shape is checked before NumPy reads what is in them."""
    there, inside = [], value
    while isinstance(inside, list):
        there.append(len(inside))
        inside = inside[0] if inside else None
    _refuse_other(there, shape)
    level = [value]
    for size in shape:
        if any(type(each) is not list or len(each) != size for each in level):
            raise BadInput(NO_TENSOR)
        level = list(chain.from_iterable(level))
    kinds = set(map(type, level))
    if not kinds <= {int, float}:
        raise BadInput(NO_TENSOR)
    try:
        found = np.array(level, dtype=np.float64 if float in kinds else None).reshape(shape)
    except OverflowError:
        found = np.array(None)
    if found.dtype.kind == "O":
        raise BadInput("a tensor holds an integer of more than 64 bits")
    return found


def _binary(value: Mapping[str, Any], shape: Sequence[int]) -> np.ndarray:
    kind, there = value.get("type"), value.get("shape", [1])
    if not isinstance(kind, str) or kind not in TYPES or not value.keys() <= {"b64", "type", "shape"}:
        raise BadInput(f"a tensor in base64 has a type, one of {', '.join(TYPES)}, and a shape")
    if not isinstance(there, list) or any(type(size) is not int for size in there):
        raise BadInput("the shape of a tensor in base64 has to be a list of integers")
    _refuse_other(there, shape)
    content, dtype = _decoded(value), np.dtype(TYPES[kind]).newbyteorder("<")
    if math.prod(shape) * dtype.itemsize != len(content):
        raise BadInput(f"a tensor in base64 has {len(content)} bytes, which are not those of its type and shape")
    return np.frombuffer(content, dtype=dtype).reshape(shape)


def _refuse_other(there: Sequence[int], expected: Sequence[int]) -> None:
    if list(there) != list(expected):
        known = len(there) <= LONGEST_SHAPE and all(abs(size) < 2**63 for size in there)
        shape = list(there) if known else f"of {len(there)} dimensions"
        raise BadInput(f"a tensor has shape {shape}; expected {list(expected)}")


def plain(array: Any) -> Any:
    """An output for JSON: numbers, nested lists, or a text. Raises BadInput for what is not finite."""
    if isinstance(array, str):
        return array
    array = np.asarray(array)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise BadInput("the net's output is not finite")
    return array.tolist()
