"""The REST application over real sockets, with a net that only doubles: MindSpore Serving's form, bad input, limits,
batches of concurrent requests, and a stop that answers what it has begun."""

from __future__ import annotations

import base64
import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import uvicorn
from msmigrate.errors import BadInput
from msmigrate.export.batch_sizes import Split
from msmigrate.export.batching import Batches
from msmigrate.export.rest_app import Method, application
from msmigrate.export.rest_instances import array_of, bytes_of, instances_of, plain

SHAPE, MOST = (2, 2), 20_000


class Doubling:
    """A net: twice its input; `hold` keeps it from running, `begun` says that it was asked to, `sizes` are those of its
    batches."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.hold = threading.Event()
        self.hold.set()
        self.begun = threading.Event()

    def __call__(self, instances: Sequence[Any]) -> list[Any]:
        self.begun.set()
        self.hold.wait(60)
        self.sizes.append(len(instances))
        if any(x[0, 0] == 666 for x in instances):
            raise RuntimeError("the secret of the net")
        return [x * 2 for x in instances]


class Service:
    """A server in a thread."""

    def __init__(self, most_waiting: int = 64, take: Callable[[int], int] = lambda count: count) -> None:
        self.net = Doubling()
        self.batches = Batches(self.net, ThreadPoolExecutor(1), size=4, wait=0.05, most=most_waiting, take=take)
        methods = {"predict": Method(["x"], ["y"], lambda v: array_of(v[0], SHAPE, "float32"), lambda made: [made])}
        app = application("double", methods, self.batches, ThreadPoolExecutor(2), MOST)
        self.socket = socket.socket()
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        config = uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=10, access_log=False)
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=lambda: self.server.run(sockets=[self.socket]))
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)

    def ask(self, path: str, body: Any = None, method: str = "POST") -> tuple[int, Any]:
        """Status and JSON of the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        try:
            connection.request(method, path, data)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read() or b"null")
        finally:
            connection.close()

    def predict(self, *numbers: float) -> tuple[int, Any]:
        return self.ask("/model/double:predict", {"instances": [{"x": [[n, 0], [0, 1]]} for n in numbers]})

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join(20)
        self.socket.close()


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service()
    yield made
    made.net.hold.set()
    made.stop()


def test_answers_have_mindspore_servings_form(service: Service) -> None:
    expected = {"instances": [{"y": [[2.0, 0.0], [0.0, 2.0]]}, {"y": [[6.0, 0.0], [0.0, 2.0]]}]}
    assert service.predict(1, 3) == (200, expected)
    single = {"instances": {"x": [[1, 0], [0, 1]]}}
    assert service.ask("/model/double/version/1:predict", single) == (200, {"instances": expected["instances"][:1]})
    content = base64.b64encode(np.array([[1, 0], [0, 1]], "<i2").tobytes()).decode()
    packed = {"instances": [{"x": {"b64": content, "type": "int16", "shape": [2, 2]}}]}
    assert service.ask("/model/double:predict", packed) == (200, {"instances": expected["instances"][:1]})
    status, health = service.ask("/health", method="GET")
    assert (status, health["status"], health["methods"], health["instances"]) == (200, "ok", ["predict"], 4)


BAD: dict[str, tuple[str, str, Any, int, str]] = {
    "no JSON": ("POST", "/model/double:predict", b"{", 400, "no JSON"),
    "not text": ("POST", "/model/double:predict", b"\xff\xfe\x00", 400, "no JSON"),
    "deep": ("POST", "/model/double:predict", b"[" * 9000, 400, "no JSON"),
    "NaN": ("POST", "/model/double:predict", b'{"instances": [{"x": NaN}]}', 400, "NaN is no number"),
    "no instances": ("POST", "/model/double:predict", {"x": 1}, 400, "at least one instance"),
    "none": ("POST", "/model/double:predict", {"instances": []}, 400, "at least one instance"),
    "too many": ("POST", "/model/double:predict", {"instances": [{}] * 1025}, 400, "at most 1024"),
    "too large": ("POST", "/model/double:predict", b" " * (MOST + 1), 413, "may have 20000 bytes"),
    "other model": ("POST", "/model/other:predict", {"instances": [{}]}, 404, "this is double"),
    "other version": ("POST", "/model/double/version/2:predict", {"instances": [{}]}, 404, "this is 1"),
    "other method": ("POST", "/model/double:train", {"instances": [{}]}, 404, "it has predict"),
    "other path": ("GET", "/", None, 404, "Not Found"),
    "GET": ("GET", "/model/double:predict", None, 405, "Method Not Allowed"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_request_that_cannot_be_read_is_refused_whole(service: Service, case: str) -> None:
    method, path, body, status, words = BAD[case]
    got, found = service.ask(path, body, method)
    assert got == status and found.keys() == {"error_msg"} and words in found["error_msg"]
    assert service.predict(1)[0] == 200  # and the server is as before


def test_a_body_without_a_length_is_limited_too(service: Service) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=20)
    connection.putrequest("POST", "/model/double:predict")
    connection.putheader("Transfer-Encoding", "chunked")
    connection.endheaders()
    connection.send(b"%x\r\n" % (MOST + 1) + b" " * (MOST + 1) + b"\r\n0\r\n\r\n")
    assert connection.getresponse().status == 413
    connection.close()


WRONG: dict[str, tuple[Any, str]] = {
    "a number": (1, "has to be an object"),
    "no input": ({}, "has no input 'x'"),
    "two inputs": ({"x": 1, "z": 1}, "has 'z'"),
    "shape": ({"x": [1, 2]}, "shape [2]; expected [2, 2]"),
    "ragged": ({"x": [[1, 2], [3]]}, "lists of equal length"),
    "texts": ({"x": [["a", "b"], ["c", "d"]]}, "has to be numbers"),
    "booleans": ({"x": [[True, False], [True, False]]}, "has to be numbers"),
    "too large": ({"x": [[1e300, 0], [0, 0]]}, "not finite"),
    "no base64": ({"x": {"b64": "%", "type": "int8", "shape": [2, 2]}}, "not a text in base64"),
    "no type": ({"x": {"b64": "AAAA", "type": "float8", "shape": [2, 2]}}, "has a type"),
    "short": ({"x": {"b64": "AAAA", "type": "float32", "shape": [2, 2]}}, "has 3 bytes"),
    "huge": ({"x": {"b64": "AAAA", "type": "int8", "shape": [10**9, 10**9, 10**9]}}, "has 3 bytes"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_bad_instance_does_not_touch_the_others(service: Service, case: str) -> None:
    instance, words = WRONG[case]
    body = {"instances": [instance, {"x": [[1, 0], [0, 0]]}]}
    status, found = service.ask("/model/double:predict", body)
    bad, good = found["instances"]
    assert status == 200 and words in bad["error_msg"] and good == {"y": [[2.0, 0.0], [0.0, 0.0]]}


def test_concurrent_requests_run_in_one_batch(service: Service) -> None:
    service.net.hold.clear()
    with ThreadPoolExecutor(9) as clients:
        asked = [clients.submit(service.predict, n) for n in range(9)]
        while service.batches.waiting < 5:  # one batch has begun
            time.sleep(0.01)
        service.net.hold.set()
        for number, each in enumerate(asked):
            assert each.result()[1]["instances"][0]["y"][0][0] == 2.0 * number
    assert max(service.net.sizes) == 4 and sum(service.net.sizes) == 9


def test_what_a_batch_leaves_is_the_first_of_the_next() -> None:
    """In order, whole, and without waiting for more."""
    service = Service(take=Split({1: 1.0, 2: 1.5, 4: 4.0}))
    service.net.hold.clear()
    with ThreadPoolExecutor(8) as clients:
        asked = [clients.submit(service.predict, 0)]
        assert service.net.begun.wait(20)
        asked += [clients.submit(service.predict, n) for n in range(1, 8)]
        while service.batches.waiting < 7:
            time.sleep(0.01)
        service.net.hold.set()
        answers = [each.result()[1]["instances"][0]["y"][0][0] for each in asked]
    waiting = service.batches.waiting
    service.stop()
    assert answers == [2.0 * n for n in range(8)]
    assert service.net.sizes == [1, 2, 2, 2, 1] and waiting == 0


def test_a_net_that_fails_says_nothing_of_itself(service: Service, capfd: pytest.CaptureFixture[str]) -> None:
    status, found = service.predict(666)
    assert status == 500 and found == {"error_msg": "the model failed; the server's log says why"}
    assert "the secret of the net" in capfd.readouterr().err
    assert service.predict(1)[0] == 200


def test_who_cannot_wait_is_sent_away() -> None:
    service = Service(most_waiting=2)
    assert service.predict(1, 2, 3)[0] == 503
    assert service.predict(1, 2)[0] == 200
    service.stop()


def test_the_stop_answers_what_it_has_begun() -> None:
    service = Service()
    service.net.hold.clear()
    with ThreadPoolExecutor(1) as client:
        asked = client.submit(service.predict, 7)
        assert service.net.begun.wait(20)
        service.server.should_exit = True
        time.sleep(0.2)
        service.net.hold.set()
        assert asked.result()[1] == {"instances": [{"y": [[14.0, 0.0], [0.0, 2.0]]}]}
    service.stop()
    with pytest.raises(OSError):
        service.ask("/health", method="GET")


def test_values() -> None:
    assert bytes_of({"b64": "AAEC"}) == b"\0\1\2" == bytes_of({"b64": "AAEC", "type": "bytes"})
    for wrong in ("AAEC", {"b64": 1}, {"b64": "AAEC", "type": "int8"}, {"b64": "AAEC", "shape": [3]}):
        with pytest.raises(BadInput):
            bytes_of(wrong)
    with pytest.raises(BadInput, match="cannot hold"):
        array_of([2**40], (1,), "int32")
    with pytest.raises(BadInput, match="expected int64"):
        array_of([1.5], (1,), "int64")
    with pytest.raises(BadInput, match="not finite"):
        plain(np.array([np.inf]))
    assert instances_of(b'{"instances": {"x": 1}}') == [{"x": 1}]
