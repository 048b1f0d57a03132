"""The REST application over real sockets, with a net that only doubles: MindSpore Serving's form, bad input, limits,
batches of concurrent requests, and a stop that answers what it has begun."""

from __future__ import annotations

import base64
import http.client
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import uvicorn
from msmigrate.deploy.serving import rest_app
from msmigrate.deploy.serving.batching import Batches, Split
from msmigrate.deploy.serving.rest_app import Connection, Method, application, array_of, bytes_of, instances_of, plain
from msmigrate.errors import BadInput

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

    def __init__(
        self, most_waiting: int = 64, take: Callable[[int], int] = lambda count: count, large: int = 1
    ) -> None:
        self.net = Doubling()
        run, workers = self.pools = ThreadPoolExecutor(1), ThreadPoolExecutor(2)
        self.batches = Batches(self.net, run, size=4, wait=0.05, most=most_waiting, take=take)
        methods = {"predict": Method(["x"], ["y"], lambda v: array_of(v[0], SHAPE, "float32"), lambda made: [made])}
        methods["large"] = Method(["x"], ["y"], methods["predict"].ready, lambda made: [np.zeros(large)])
        app = application("double", methods, self.batches, workers, MOST)
        self.socket = socket.socket()
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        config = uvicorn.Config(
            app, http=Connection, ws="none", log_level="critical", timeout_graceful_shutdown=10, access_log=False
        )
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
        for pool in self.pools:
            pool.shutdown()


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
    assert (status, health["status"], health["methods"], health["instances"]) == (200, "ok", ["predict", "large"], 4)


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
    "other method": ("POST", "/model/double:train", {"instances": [{}]}, 404, "it has predict, large"),
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
    "huge": (
        {"x": {"b64": "AAAA", "type": "int8", "shape": [10**9] * 3}},
        "shape [1000000000, 1000000000, 1000000000]",
    ),
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


# Connections that do not ask, or take their time


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.setattr(Connection, "patience", 0.5)
    monkeypatch.setattr(rest_app, "LOOK", 0.05)
    made = Service(large=2_000_000)
    yield made
    made.net.hold.set()
    made.stop()


def connected(service: Service) -> socket.socket:
    return socket.create_connection(("127.0.0.1", service.port), timeout=10)


def seconds_open(client: socket.socket, piece: bytes = b"") -> float:
    """How long until the server closes a connection on which such a piece comes ten times a second."""
    began = time.monotonic()
    client.settimeout(0.1)
    while time.monotonic() - began < 10:
        try:
            client.sendall(piece)
            if client.recv(1 << 16) == b"":
                break
        except TimeoutError:
            continue
        except OSError:
            break
    client.close()
    return time.monotonic() - began


HEAD = b"POST /model/double:predict HTTP/1.1\r\nHost: x\r\n"
SLOW: dict[str, tuple[bytes, bytes]] = {
    "says nothing": (b"", b""),
    "half a head": (HEAD, b""),
    "a head, slowly": (HEAD, b"X"),
    "no body": (HEAD + b"Content-Length: 9999\r\n\r\n", b""),
    "a body, slowly": (HEAD + b"Content-Length: 9999\r\n\r\n", b" "),
    "chunks, slowly": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    "half of the next": (HEAD.replace(b"POST", b"GET") + b"\r\n" + HEAD, b""),
}


@pytest.mark.parametrize("case", SLOW)
def test_a_connection_that_does_not_ask_is_closed(impatient: Service, case: str) -> None:
    start, piece = SLOW[case]
    client = connected(impatient)
    client.sendall(start)
    assert 0.4 < seconds_open(client, piece) < 5
    assert impatient.predict(1)[0] == 200


def test_an_answer_that_is_not_taken_is_dropped(impatient: Service) -> None:
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", impatient.port))
    body = json.dumps({"instances": [{"x": [[1, 0], [0, 1]]}]}).encode()
    client.sendall(b"POST /model/double:large HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    assert impatient.net.begun.wait(10)
    connections = impatient.server.server_state.connections
    deadline = time.monotonic() + 10
    while connections and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not connections
    client.close()


def test_who_asks_and_waits_is_not_cut_off(impatient: Service) -> None:
    """One that asks again and again, and one whose answer takes longer than that."""
    client = http.client.HTTPConnection("127.0.0.1", impatient.port, timeout=20)
    body = json.dumps({"instances": [{"x": [[1, 0], [0, 1]]}]}).encode()
    for _ in range(15):
        client.request("POST", "/model/double:predict", body)
        assert client.getresponse().read().startswith(b'{"instances"')
        time.sleep(0.1)
    impatient.net.hold.clear()
    client.request("POST", "/model/double:predict", body)
    time.sleep(1.5)
    impatient.net.hold.set()
    assert client.getresponse().read().startswith(b'{"instances"')
    client.request("POST", "/model/double:large", body)  # taken, though not at once
    answer = client.getresponse()
    parts = [answer.read(1 << 20)]
    while parts[-1]:
        time.sleep(0.1)
        parts.append(answer.read(1 << 20))
    assert len(b"".join(parts)) > 8_000_000
    client.close()


def test_one_that_is_waited_for_makes_room_for_another(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Connection, "most", 5)
    service.net.hold.clear()
    with ThreadPoolExecutor(4) as clients:
        asked = [clients.submit(service.predict, 1)]
        assert service.net.begun.wait(20)
        idle = [connected(service) for _ in range(40)]
        time.sleep(0.2)
        assert len(service.server.server_state.connections) <= 5
        asked += [clients.submit(service.predict, n) for n in range(2, 4)]
        time.sleep(0.2)
        service.net.hold.set()
        assert [each.result()[0] for each in asked] == [200] * 3
    for each in idle:
        each.close()


FEW_DESCRIPTORS = """if True:
    import resource, sys
    import uvicorn
    from msmigrate.deploy.serving.rest_app import Connection, most_connections
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
    async def app(scope, receive, send):
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
            await send({"type": "http.response.body", "body": b"ok"})
    Connection.most = most_connections()
    class Server(uvicorn.Server):
        async def startup(self, sockets=None):
            await super().startup(sockets)
            print(Connection.most, self.servers[0].sockets[0].getsockname()[1], flush=True)
    config = uvicorn.Config(app, port=0, http=Connection, ws="none", lifespan="off", backlog=64, log_level="critical")
    Server(config).run()
"""


def test_connections_do_not_use_up_the_descriptors() -> None:
    with subprocess.Popen([sys.executable, "-c", FEW_DESCRIPTORS], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        most, port = map(int, server.stdout.readline().split())
        assert 50 < most < 128
        idle = [socket.create_connection(("127.0.0.1", port), timeout=20) for _ in range(400)]
        for _ in range(3):
            client = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            client.request("GET", "/")
            assert client.getresponse().read() == b"ok"
            client.close()
        for each in idle:
            each.close()
        server.terminate()
        assert server.wait(20) in (0, -15)


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
