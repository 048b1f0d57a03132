"""Load `msmigrate serve`: requests per second, and how long they take, with so many clients at once.

    python benchmarks/serve_load.py MODEL [--clients 1 --clients 16] [--seconds 10] [-- options of serve]

MODEL is a MindIR or a checkpoint. Each client asks for one drawn instance after another, on a connection that it keeps;
every tenth request is bad, and has to be refused without touching the others. Prints markdown: good answers a second,
the median and the 99th percentile of their time, and how many instances a batch had.
"""

from __future__ import annotations

import argparse
import base64
import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any
from urllib.parse import urlsplit

import numpy as np

BAD_EVERY = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--shape", default="3x224x224", help="of one instance")
    parser.add_argument("--clients", type=int, action="append")
    parser.add_argument("--seconds", type=float, default=10.0)
    words = sys.argv[1:]
    split = words.index("--") if "--" in words else len(words)
    given, options = parser.parse_args(words[:split]), words[split + 1 :]
    shape = [int(size) for size in given.shape.split("x")]
    command = [sys.executable, "-m", "msmigrate", "serve", given.model, "--port", "0", *options]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert server.stdout is not None
    line = server.stdout.readline()
    if not line.startswith("POST "):
        sys.exit(f"the server did not start: {line}")
    address = urlsplit(line.split()[1])
    print(
        "| clients | answers a second | median | 99 % | instances a batch | refused |",
        "|---|---|---|---|---|---|",
        sep="\n",
    )
    for count in given.clients or [1, 16]:
        print(row(count, address, shape, given.seconds), flush=True)
    server.send_signal(signal.SIGTERM)
    print(f"\n{server.stdout.read().splitlines()[-1]} Exit code {server.wait(60)}.")


def row(count: int, address: Any, shape: list[int], seconds: float) -> str:
    """Let so many clients ask for so long."""
    times: list[float] = []
    refused: list[int] = []
    before, until = health(address), time.monotonic() + seconds
    threads = [threading.Thread(target=client, args=(i, address, shape, until, times, refused)) for i in range(count)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took, after = time.monotonic() - began, health(address)
    each = (after["instances"] - before["instances"]) / max(1, after["batches"] - before["batches"])
    middle, late = np.percentile(times, [50, 99]) * 1000
    return f"| {count} | {len(times) / took:.1f} | {middle:.0f} ms | {late:.0f} ms | {each:.1f} | {len(refused)} |"


def client(seed: int, address: Any, shape: list[int], until: float, times: list[float], refused: list[int]) -> None:
    """Ask one request after another; a good one has to be answered, a bad one refused."""
    drawn = np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)
    packed = {"b64": base64.b64encode(drawn.tobytes()).decode(), "type": "float32", "shape": shape}
    good, bad = json.dumps({"instances": [{"x": packed}]}), '{"instances": [{"x": [1, 2, "three"]}]}'
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=300)
    turn = 0
    while time.monotonic() < until:
        turn += 1
        wrong = turn % BAD_EVERY == 0
        began = time.monotonic()
        connection.request("POST", address.path, bad if wrong else good)
        found = json.loads(connection.getresponse().read())["instances"][0]
        if ("error_msg" in found) is not wrong:
            raise SystemExit(f"unexpected answer: {str(found)[:200]}")
        if wrong:
            refused.append(turn)
        else:
            times.append(time.monotonic() - began)
    connection.close()


def health(address: Any) -> dict[str, Any]:
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=300)
    connection.request("GET", "/health")
    return dict(json.loads(connection.getresponse().read()))


if __name__ == "__main__":
    main()
