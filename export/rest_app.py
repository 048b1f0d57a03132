"""The web application: MindSpore Serving's REST paths, answers and errors, and /health."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from ..errors import BadInput
from .batching import Batches, TooMany
from .rest_instances import instances_of, plain, values_of
from .serve_job import VERSION

AGAIN = 1  # seconds after which a client that was sent away may ask again


@dataclass(frozen=True)
class Method:
    """What can be asked: the names of inputs and outputs, and what is done before and after the net.

    ready: values of one instance -> the net's inputs, raises BadInput. finish: the net's outputs for it -> as many
    values as there are outputs.
    """

    inputs: Sequence[str]
    outputs: Sequence[str]
    ready: Callable[[list[Any]], Any]
    finish: Callable[[Any], Sequence[Any]]


def answer(content: dict[str, Any], status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A response in JSON."""
    body = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Response(body, status, headers, "application/json")


def failure(message: str, status: int, headers: dict[str, str] | None = None) -> Response:
    """A response to a request that failed as a whole."""
    return answer({"error_msg": message}, status, headers)


def application(
    name: str, methods: dict[str, Method], batches: Batches, workers: Executor, most_bytes: int
) -> Starlette:
    """The application for one model. workers: threads that prepare instances."""

    async def ask(request: Request) -> Response:
        method = _method(request, name, methods)
        try:
            body = await _body(request, most_bytes)
            instances = await run_in_threadpool(instances_of, body)
        except BadInput as error:
            return failure(str(error), 400)
        loop = asyncio.get_running_loop()
        prepared = [loop.run_in_executor(workers, partial(_prepared, method, each)) for each in instances]
        ready = await asyncio.gather(*prepared)
        good = [each for each in ready if not isinstance(each, BadInput)]
        try:
            futures = iter(batches.submit(good))
        except TooMany:
            return failure("too many requests are waiting", 503, {"Retry-After": str(AGAIN)})
        found = [each if isinstance(each, BadInput) else next(futures) for each in ready]
        return answer({"instances": [await _result(method, each) for each in found]})

    async def health(request: Request) -> Response:
        counts = {"batches": batches.batches, "instances": batches.instances, "waiting": batches.waiting}
        return answer({"status": "ok", "model": name, "version": VERSION, "methods": [*methods], **counts})

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        batches.start()
        yield
        await batches.stop()

    routes = [
        Route("/model/{name}/version/{version}:{method}", ask, methods=["POST"]),
        Route("/model/{name}:{method}", ask, methods=["POST"]),
        Route("/health", health, methods=["GET"]),
    ]
    handlers: Any = {HTTPException: _said, Exception: _failed}
    return Starlette(routes=routes, lifespan=lifespan, exception_handlers=handlers)


def _method(request: Request, name: str, methods: dict[str, Method]) -> Method:
    """The method that a path names. Raises HTTPException 404."""
    asked = request.path_params
    if asked["name"] != name:
        raise HTTPException(404, f"there is no model of that name here; this is {name}")
    if asked.get("version", str(VERSION)) != str(VERSION):
        raise HTTPException(404, f"there is no version of that number; this is {VERSION}")
    if asked["method"] not in methods:
        raise HTTPException(404, f"{name} has no method of that name; it has {', '.join(methods)}")
    return methods[asked["method"]]


async def _body(request: Request, most: int) -> bytes:
    """The whole body. Raises HTTPException 413 as soon as it is known to be too large."""
    length = request.headers.get("content-length", "0")
    parts, size = [], 0
    too_large = HTTPException(413, f"a request may have {most} bytes", {"Connection": "close"})
    if length.isascii() and length.isdigit() and int(length[:20]) > most:
        raise too_large
    try:
        async for part in request.stream():
            size += len(part)
            if size > most:
                raise too_large
            parts.append(part)
    except ClientDisconnect:
        raise BadInput("the client is gone") from None
    return b"".join(parts)


def _prepared(method: Method, instance: Any) -> Any:
    try:
        return method.ready(values_of(instance, method.inputs))
    except BadInput as error:
        return error


async def _result(method: Method, found: Any) -> dict[str, Any]:
    """An instance's outputs, or why there are none."""
    try:
        if isinstance(found, BadInput):
            raise found
        outputs = method.finish(await found)
        return {key: plain(value) for key, value in zip(method.outputs, outputs, strict=True)}
    except BadInput as error:
        return {"error_msg": str(error)}


async def _said(request: Request, error: HTTPException) -> Response:
    return failure(str(error.detail), error.status_code, dict(error.headers or {}))


async def _failed(request: Request, error: Exception) -> Response:
    print(f"{type(error).__name__}: {error}", file=sys.stderr)
    return failure("the model failed; the server's log says why", 500)
