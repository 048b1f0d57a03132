"""Requests that a seeded mutator makes, and some that are meant to cost much: each is answered or refused, soon, in
little memory, and never with an error of the server.

The application runs in this process, without sockets. A failure names the number; request(number) makes it again.
"""

from __future__ import annotations

import asyncio
import base64
import gc
import io
import json
import random
import re
import struct
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from msmigrate.deploy.serving.batching import Batches
from msmigrate.deploy.serving.rest_app import Method, application, array_of, image_of
from msmigrate.errors import BadInput
from msmigrate.training.data.sample import alone, in_mode
from PIL import Image

SHAPE, SIZE = (2, 3), (8, 8)
MOST = 16 << 20
SECONDS = 5.0
MEMORY = 500 << 20
QUICK, FULL = 500, 40_000
STATUSES = {200, 400, 404, 405, 413, 503}
EXPECTED = {"instances": [{"y": [[2.0, 4.0, 6.0], [8.0, 10.0, 12.0]]}]}
SOUND = {"instances": [{"x": [[1, 2, 3], [4, 5, 6]]}]}


class Asked(NamedTuple):
    """A request: the body comes in these parts; without the last one's end the client is gone."""

    path: str
    parts: list[bytes]
    method: str = "POST"
    headers: Sequence[tuple[bytes, bytes]] = ()
    gone: bool = False


class Service:
    """The application, and a loop that it runs in."""

    def __init__(self) -> None:
        run, workers = self.pools = ThreadPoolExecutor(1), ThreadPoolExecutor(4)
        self.loop = asyncio.new_event_loop()
        batches = Batches(lambda xs: [x * 2 for x in xs], run, size=8, wait=0.0, most=256)
        tensors = Method(["x"], ["y"], lambda v: array_of(v[0], SHAPE, "float32"), lambda made: [made])
        whole = Method(["x"], ["y"], lambda v: array_of(v[0], SHAPE, "int64"), lambda made: [made])
        images = Method(["image"], ["mean"], lambda v: prepared(v[0]), lambda made: [made.mean()])
        methods = {"predict": tensors, "whole": whole, "classify": images}
        self.app = application("net", methods, batches, workers, MOST)
        self.batches = batches
        self.loop.run_until_complete(self._start())

    async def _start(self) -> None:
        self.batches.start()

    def ask(self, *asked: Asked) -> list[tuple[int, bytes]]:
        """Status and body of each answer; all are asked at once."""
        return self.loop.run_until_complete(self._all(asked))

    async def _all(self, asked: Sequence[Asked]) -> list[tuple[int, bytes]]:
        return await asyncio.gather(*(self._one(each) for each in asked))

    async def _one(self, asked: Asked) -> tuple[int, bytes]:
        parts = list(asked.parts) or [b""]
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            if not parts:
                return {"type": "http.disconnect"}
            part = parts.pop(0)
            return {"type": "http.request", "body": part, "more_body": bool(parts) or asked.gone}

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {"type": "http", "method": asked.method, "path": asked.path, "raw_path": asked.path.encode()}
        scope |= {"query_string": b"", "headers": list(asked.headers), "http_version": "1.1", "root_path": ""}
        await self.app(scope | {"scheme": "http", "asgi": {"version": "3.0"}, "app": self.app}, receive, send)
        return sent[0]["status"], b"".join(each.get("body", b"") for each in sent[1:])

    def close(self) -> None:
        self.loop.run_until_complete(self.batches.stop())
        self.loop.close()
        for pool in self.pools:
            pool.shutdown()


def prepared(value: Any) -> np.ndarray:
    """An image as a recipe with a Resize prepares it."""
    image = image_of(value)
    try:
        with alone(image):
            return np.asarray(in_mode(image, "RGB").resize(SIZE), np.float32)
    except Exception as error:
        raise BadInput(f"the image cannot be prepared: {error}") from None


@pytest.fixture
def service() -> Any:
    made = Service()
    yield made
    made.close()


# The mutator


def encoded(form: str, side: int = 9, **options: Any) -> bytes:
    file = io.BytesIO()
    Image.linear_gradient("L").resize((side, side)).convert("RGB").save(file, form, **options)
    return file.getvalue()


def b64(content: bytes) -> str:
    return base64.b64encode(content).decode()


IMAGES = [encoded(form) for form in ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "PPM")]
IMAGES.append(encoded("JPEG", 40, progressive=True))
TENSOR = np.arange(6, dtype="<f4").tobytes()
SEEDS: list[tuple[str, Any]] = [
    ("predict", SOUND),
    ("predict", {"instances": {"x": [[1.5, -2e3, 3], [4, 5, 6]]}}),
    ("predict", {"instances": [{"x": {"b64": b64(TENSOR), "type": "float32", "shape": [2, 3]}}]}),
    ("whole", {"instances": [{"x": [[1, 2, 3], [4, 5, 2**62]]}, {"x": {"b64": b64(TENSOR[:6]), "type": "int8"}}]}),
    ("classify", {"instances": [{"image": {"b64": b64(image)}} for image in IMAGES]}),
    *(("classify", {"instances": [{"image": {"b64": b64(image), "type": "bytes"}}]}) for image in IMAGES),
]
SEVENS = int("7" * 4000)
HOSTILE: list[Any] = [
    *(None, True, "", "x" * 5000, "\ud800", "\0", -0.0, 1e308, 10**25, SEVENS, -(2**63) - 1, 2**64),
    *([], {}, [[]], [[1, 2, 3], [4, 5]], [[1, 2, 3], [4, 5, "6"]], [True] * 6, [[[[[[1]]]]]], {"b64": ""}),
    *([0, 2**70], [2**70, 0], [1] * 65, [2, 3, 1], [-2, -3], [2.0, 3], [SEVENS] * 20, ["2", "3"], [6], [2, 3]),
]
TOKENS = [
    *(
        b"NaN",
        b"Infinity",
        b"-Infinity",
        b"1e999",
        b"-0",
        b"01",
        b"\\ud800",
        b'"\\u0000"',
        b"\xff",
        b"\xc3\x28",
        b"\xf0",
    ),
    *(b"[" * 2000, b'{"a":' * 2000, b"[]," * 2000, b"9" * 5000, b"0." + b"9" * 5000, b'"shape":', b'"type":"int64"'),
    *(b'"instances":', b'"b64":', b"null", b"true", b"{}", b"[0,", b"}", b"]", b'"', b",", b":", b"\\", b" " * 2000),
]


def _changed(value: Any, draw: random.Random) -> Any:
    """A value with something in it replaced, left out, or there twice."""
    if isinstance(value, dict) and value and draw.random() < 0.9:
        key = draw.choice(list(value))
        new = {**value, key: _changed(value[key], draw)}
        if draw.random() < 0.1:
            new[draw.choice(["b64", "type", "shape", "x", "\ud800", "a" * 999])] = new.pop(key)
        return new
    if isinstance(value, list) and value and draw.random() < 0.8:
        at = draw.randrange(len(value))
        return [*value[:at], *[_changed(value[at], draw)] * draw.choice([0, 1, 1, 1, 1, 2, 40]), *value[at + 1 :]]
    if isinstance(value, str) and len(value) > 40 and draw.random() < 0.8:
        content = bytearray(base64.b64decode(value))
        for _ in range(draw.randint(1, 4)):
            content[int(len(content) * draw.random() ** 2)] = draw.choice([0, 1, 127, 255, draw.randrange(256)])
        return b64(bytes(content[: draw.choice([None, len(content) // 2])]))
    return draw.choice(HOSTILE)


def _bytes_changed(body: bytes, draw: random.Random) -> bytes:
    at, end = sorted(draw.randrange(len(body) + 1) for _ in range(2))
    return draw.choice(
        [
            lambda: body[:at] + draw.choice(TOKENS) + body[at:],
            lambda: body[:at] + draw.choice(TOKENS) + body[end:],
            lambda: body[:at] + body[end:],
            lambda: body[:at],
            lambda: body[:end] + body[at:],
            lambda: body[:at] + bytes([draw.randrange(256)]) + body[at + 1 :],
        ]
    )()


def request(number: int) -> Asked:
    """The request of this number, always the same."""
    draw = random.Random(number)
    name, content = draw.choice(SEEDS)
    for _ in range(draw.choice([0, 1, 1, 2, 3])):
        content = _changed(content, draw)
    body = json.dumps(content).encode()
    for _ in range(draw.choice([0, 0, 1, 2])):
        body = _bytes_changed(body, draw)
    path = f"/model/net:{name}"
    if draw.random() < 0.05:
        path = draw.choice(["/", "/model/", "/model/net", "/model/net:", f"/model/net/version/{'1' * 4000}:predict"])
        path = draw.choice([path, "/model/" + ":" * 3000 + "/", "/model/\ud800:x".encode(errors="replace").decode()])
    cuts = sorted(draw.randrange(len(body) + 1) for _ in range(draw.choice([0, 0, 1, 3])))
    parts = [body[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    length = draw.choice([str(len(body)), str(len(body)), "0", "-1", "x", "9" * 5000, "١"]).encode()
    method = draw.choice(["POST"] * 30 + ["GET", "HEAD", "PUT", "FOO"])
    return Asked(path, parts, method, [(b"content-length", length)], draw.random() < 0.02)


@contextmanager
def little_memory(most: int = MEMORY) -> Iterator[None]:
    """The process grows by no more than this while the block runs, even for a moment."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted anew
    before = peak()
    yield
    print(f"grown by {(peak() - before) / 1e6:.0f} MB")
    assert peak() - before < most


def peak() -> int:
    """Of this process's resident memory, in bytes."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) << 10


def drive(service: Service, numbers: range, log: Callable[[], str]) -> dict[int, int]:
    """How many requests got which status."""
    counts: dict[int, int] = {}
    with little_memory():
        for number in numbers:
            asked = request(number)
            at = time.monotonic()
            ((status, body),) = service.ask(asked)
            seconds = time.monotonic() - at
            assert status in STATUSES, (number, status, body[:200])
            assert seconds < SECONDS, (number, seconds)
            assert not body or json.loads(body).keys() <= {"instances", "error_msg", "status"}, (number, body[:200])
            counts[status] = counts.get(status, 0) + 1
    assert log() == ""
    assert json.loads(service.ask(Asked("/model/net:predict", [json.dumps(SOUND).encode()]))[0][1]) == EXPECTED
    return counts


def test_mutated_requests(service: Service, capfd: pytest.CaptureFixture[str]) -> None:
    counts = drive(service, range(QUICK), lambda: capfd.readouterr().err)
    assert min(counts.get(status, 0) for status in (200, 400, 404, 405, 413)) > 5, (
        counts
    )  # neither too little nor too much


@pytest.mark.full
def test_many_mutated_requests(service: Service, capfd: pytest.CaptureFixture[str]) -> None:
    drive(service, range(QUICK, FULL), lambda: capfd.readouterr().err)


def filled(start: bytes, piece: bytes, end: bytes, size: int = MOST - 100) -> bytes:
    return start + piece * ((size - len(start) - len(end)) // len(piece)) + end


DEEP = b"[" * 400 + b"]" * 400 + b","
OBJECTS = b'{"":' * 400 + b"1" + b"}" * 400 + b","
COSTLY: dict[str, tuple[bytes, bytes, bytes]] = {
    "a shape of huge integers": (
        b'{"instances":[{"x":{"b64":"","type":"int8","shape":[',
        b"9" * 4000 + b",",
        b"1]}}]}",
    ),
    "one huge integer": (b'{"instances":[{"x":[[1,2,3],[4,5,', b"9", b"]]}]}"),
    "huge integers": (b'{"instances":[{"x":[', b"9" * 4299 + b",", b"1]}]}"),
    "longer integers": (b'{"instances":[{"x":[', b"9" * 9000 + b",", b"1]}]}"),
    "a shape of many dimensions": (b'{"instances":[{"x":{"b64":"","type":"int8","shape":[', b"1,", b"1]}}]}"),
    "empty lists": (b'{"instances":[{"x":[', b"[],", b"1]}]}"),
    "deep lists": (b'{"instances":[{"x":[', DEEP, b"1]}]}"),
    "deep objects": (b'{"instances":[{"x":[', OBJECTS, b"1]}]}"),
    "some deep lists": (b'{"instances":[{"x":[', DEEP + b"1," * 12000, b"1]}]}"),
    "names": (b'{"instances":[{"x":1', b',"%s":0', b"}]}"),
    "texts": (b'{"instances":[{"x":[', b'"ab",', b"1]}]}"),
    "wide texts": (b'{"instances":[{"x":[', '"ā",'.encode(), b"1]}]}"),
    "widest texts": (b'{"instances":[{"y\xf0\x9f\x98\x80":[', b'"ab",', b"1]}]}"),
    "one long text": (b'{"instances":[{"x":[["', b"a", b'",2,3],[4,5,6]]}]}'),
    "numbers": (b'{"instances":[{"x":[', b"1.5,", b"1]}]}"),
    "rows": (b'{"instances":[{"x":[', b"[1.5,2.5,3.5,4.5,5.5,6.5],", b"1]}]}"),
    "blanks": (b'{"instances":[{"x":', b" ", b"1}]}"),
    "escapes": (b'{"instances":[{"x":"', b"\\u0101", b'"}]}'),
    "nothing but brackets": (b"", b"[", b""),
    "an instance of huge names": (b'{"instances":[{"', b"a", b'":1}]}'),
    "no image": (b'{"instances":[{"image":{"b64":"', b"AAAA", b'"}}]}'),
}


def costly(case: str) -> Asked:
    body = filled(*COSTLY[case])
    if case == "names":
        body = b'{"instances":[{"x":1,' + b",".join(b'"%x":0' % number for number in range(MOST // 11)) + b"}]}"
    return Asked("/model/net:classify" if case == "no image" else "/model/net:predict", [body])


@pytest.mark.parametrize("case", COSTLY)
def test_requests_that_are_meant_to_cost_much(service: Service, case: str) -> None:
    """Each has as many bytes as one may have."""
    asked = costly(case)
    with little_memory():
        at = time.process_time()
        ((status, answer),) = service.ask(asked)
        assert time.process_time() - at < SECONDS
    assert status in (200, 400) and b"error_msg" in answer and len(answer) < 2000, (status, answer[:200])


@pytest.mark.parametrize("path", ["/model/" + ":" * 60_000 + "/", "/model/net/version/" + "1" * 60_000 + ":predict"])
def test_a_long_path(service: Service, path: str) -> None:
    at = time.process_time()
    assert service.ask(Asked(path, [b"{}"]))[0][0] == 404
    assert time.process_time() - at < SECONDS


@pytest.mark.parametrize("case", ["some deep lists", pytest.param("texts", marks=pytest.mark.full)])
def test_many_of_them_at_once(service: Service, case: str) -> None:
    """Some are sent away, and others than these are answered meanwhile."""
    asked, sound = costly(case), Asked("/model/net:predict", [json.dumps(SOUND).encode()])
    with little_memory():
        found = service.ask(*[sound] * 3, *[asked] * 6, *[sound] * 3)
    assert {status for status, _ in found[3:9]} == {200, 503}
    assert all(json.loads(answer) == EXPECTED for status, answer in (*found[:3], *found[9:]))


def test_a_bad_instance_of_any_kind_is_its_own(service: Service) -> None:
    """Whatever is wrong with one, the next is answered."""
    shapes = [[0, 2**70], [2**70, 0], [1] * 65, [2**62, 4], [SEVENS], [True, 6], [], {}, None, "2,3", [2, 3, SEVENS]]
    packed = [{"b64": b64(TENSOR), "type": "float32", "shape": shape} for shape in shapes]
    packed += [{"b64": "", "type": "int8", "shape": shape} for shape in shapes]
    instances = [{"x": each} for each in (*packed, *HOSTILE[:-1])]
    text = json.dumps({"instances": [*instances, *SOUND["instances"]]}).replace("7" * 4000, "7" * 5000)
    ((status, body),) = service.ask(Asked("/model/net:predict", [text.encode()]))
    *bad, good = json.loads(body)["instances"]
    assert status == 200 and good == EXPECTED["instances"][0]
    assert len(bad) == len(instances) and all(set(each) == {"error_msg"} for each in bad)
    assert max(len(each["error_msg"]) for each in bad) < 300


def png(width: int, height: int) -> bytes:
    """A PNG that says that it has so many pixels, and holds few."""
    content = encoded("PNG")
    header = b"IHDR" + struct.pack(">II", width, height) + content[24:29]
    return content[:12] + header + struct.pack(">I", zlib.crc32(header)) + content[33:]


def test_large_images(service: Service) -> None:
    """One above the limit is refused before it is decoded, and one at the limit is not; other formats are no images."""
    gif = encoded("GIF")
    large = [
        png(8000, 8001),
        png(2**31 - 1, 2**31 - 1),
        png(20000, 20000),
        gif[:6] + b"\xff" * 4 + gif[10:],
    ]
    other = [encoded(form) for form in ("TIFF", "PPM", "ICO", "TGA", "EPS", "JPEG2000", "PDF")]
    scans = encoded("JPEG", 40, progressive=True).split(b"\xff\xda")
    slow = b"\xff\xda".join([*scans[:-1], *[scans[-1][:-2]] * 100_000, scans[-1]])
    instances = [{"image": {"b64": b64(content)}} for content in (*large, *other, slow)]
    with little_memory(150 << 20):
        ((status, body),) = service.ask(Asked("/model/net:classify", [json.dumps({"instances": instances}).encode()]))
    found = [each["error_msg"] for each in json.loads(body)["instances"]]
    assert status == 200
    assert ["more than 64 megapixels" in each for each in found] == [True] * 4 + [False] * 8, found
    assert all("it is none of BMP, GIF, JPEG, PNG, WEBP" in each for each in found[4:-1])
    assert "more than 64 scans" in found[-1]
    whole = io.BytesIO()
    Image.new("L", (8000, 8000)).save(whole, "PNG", compress_level=1)
    text = json.dumps({"instances": [{"image": {"b64": b64(whole.getvalue())}}] * 3})
    with little_memory():
        ((status, body),) = service.ask(Asked("/model/net:classify", [text.encode()]))
    assert json.loads(body) == {"instances": [{"mean": 0.0}] * 3}
