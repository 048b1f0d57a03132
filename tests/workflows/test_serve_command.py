"""`msmigrate serve` as a user runs it: a trained checkpoint answers as torch does, and SIGTERM stops it."""

from __future__ import annotations

import base64
import io
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msmigrate.errors import BadCheckpoint, BadInput, WorkerFailed
from msmigrate.workflows.export import serve
from PIL import Image
from trained_digits import RECIPE, WORDS, Trained

COMMAND = (sys.executable, "-m", "msmigrate", "serve")


def ask(address: str, instances: list[Any]) -> list[Any]:
    request = urllib.request.Request(address, json.dumps({"instances": instances}).encode())
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)["instances"]


@pytest.mark.full
def test_a_checkpoint_answers_as_torch_does(trained: Trained) -> None:
    server = subprocess.Popen(
        [*COMMAND, trained.own, "--name", "digits", "--port", "0", "--batch", "4"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert server.stdout is not None
        lines = [server.stdout.readline() for _ in range(4)]
        address = lines[0].split()[1].removesuffix(":predict")
        assert address.endswith("/model/digits") and lines[3].split()[1].endswith("/health")
        files = sorted(trained.tree.rglob("*.png"), key=lambda file: file.stem)[:6]
        images = [{"image": {"b64": base64.b64encode(file.read_bytes()).decode()}} for file in files]
        answers = ask(f"{address}:classify_top5", [*images, {"image": {"b64": "AAAA"}}])
        for answer, logits in zip(answers[:6], trained.logits[:6], strict=True):
            order = np.argsort(-logits)[:5]
            assert answer["label"].split(";") == [WORDS[i] for i in order]
            shares = np.exp(logits.astype(np.float64) - logits.max())
            np.testing.assert_allclose(answer["score"], (shares / shares.sum())[order], atol=1e-5)
        assert "cannot be prepared" in answers[6]["error_msg"]
        labels = [answer["label"] for answer in ask(f"{address}:classify_top1", images)]
        assert labels == [WORDS[i] for i in trained.logits[:6].argmax(1)]
        server.send_signal(signal.SIGTERM)
        said = server.stdout.read()
        assert server.wait(60) == 0 and said.startswith("Stopped after 12 instances"), said
    finally:
        server.kill()
        server.wait()
        if server.stdout is not None:
            server.stdout.close()


@pytest.mark.full
def test_hostile_clients_do_not_stop_it(trained: Trained) -> None:
    """With few descriptors: idle connections, a request that cost minutes, images that are none, and then the stop."""
    server = subprocess.Popen(
        [*COMMAND, trained.own, "--name", "digits", "--port", "0", "--batch", "2"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256)),
    )
    idle: list[socket.socket] = []
    try:
        assert server.stdout is not None
        address = server.stdout.readline().split()[1].removesuffix(":predict")
        port = int(address.split(":")[2].partition("/")[0])
        idle += [socket.create_connection(("127.0.0.1", port), timeout=20) for _ in range(300)]
        shape = [int("7" * 4000)] * 250
        instances = [{"x": {"b64": "", "type": "int8", "shape": shape}}, {"x": np.zeros((3, 32, 32)).tolist()}]
        began = time.monotonic()
        bad, good = ask(f"{address}:predict", instances)
        assert time.monotonic() - began < 10
        assert "a tensor has shape of 250 dimensions" in bad["error_msg"]
        assert len(good["logits"]) == 10, good
        file = io.BytesIO()
        Image.new("L", (9000, 9000)).save(file, "PNG")
        tiff = io.BytesIO()
        Image.new("L", (8, 8)).save(tiff, "TIFF")
        images = [{"image": {"b64": base64.b64encode(content.getvalue()).decode()}} for content in (file, tiff)]
        large, other = ask(f"{address}:classify_top1", images)
        assert "megapixels" in large["error_msg"] and "it is none of BMP, GIF, JPEG" in other["error_msg"]
        idle.append(socket.create_connection(("127.0.0.1", port)))
        idle[-1].sendall(b"POST /model/digits:predict HTTP/1.1\r\nHost: x\r\nContent-Length: 999\r\n\r\n")
        began = time.monotonic()
        server.send_signal(signal.SIGTERM)
        assert server.wait(30) == 0 and time.monotonic() - began < 15
    finally:
        for each in idle:
            each.close()
        server.kill()
        server.wait()
        if server.stdout is not None:
            server.stdout.close()


BUSY = """
import json, os, signal, time
print(json.dumps({"kind": "event", "name": "started", "facts": {"pid": os.getpid()}}), flush=True)
time.sleep(0.5)
os.kill(os.getppid(), signal.SIGTERM)
time.sleep(60)
"""


def test_a_stop_before_it_serves_is_an_interruption(trained: Trained) -> None:
    """And not a MindSpore process that died of a signal."""
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        serve(trained.own, worker=lambda name: (sys.executable, "-c", BUSY))
    assert time.monotonic() - began < 50


REFUSED: dict[str, tuple[Any, dict[str, Any], type[Exception], str]] = {
    "no file": ("none.ckpt", {}, BadCheckpoint, "there is no file none.ckpt"),
    "no MindIR": ("none.mindir", {}, BadInput, "there is no file none.mindir"),
    "model of a MindIR": (RECIPE.with_suffix(".mindir"), {"model": "resnet50"}, BadInput, "holds its model"),
    "odd name": (None, {"name": "a/b"}, BadInput, "letters, digits and _"),
    "odd shape": (None, {"shapes": ("x",)}, BadInput, "--input x"),
    "no classes": (None, {"classes": Path("none.txt")}, BadInput, "cannot be read"),
    "a key": (None, {"key_file": RECIPE.parent / "key"}, BadInput, "cannot be read"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_served_is_refused_before_a_framework_starts(
    trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    place, options, kind, words = REFUSED[case]
    monkeypatch.chdir(tmp_path)
    with pytest.raises(kind) as caught:
        serve(Path(place) if place else trained.own, worker=lambda name: ("false",), **options)
    assert words in str(caught.value) and not isinstance(caught.value, WorkerFailed)
