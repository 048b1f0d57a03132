"""Ask a running `msmigrate serve` what it sees in images.

python ask.py http://127.0.0.1:1500/model/lenet5:classify_top5 digit.png …
"""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from urllib.request import Request, urlopen


def main(url: str, *paths: str) -> None:
    instances = [{"image": {"b64": base64.b64encode(Path(path).read_bytes()).decode()}} for path in paths]
    request = Request(url, json.dumps({"instances": instances}).encode(), {"Content-Type": "application/json"})
    with urlopen(request, timeout=60) as answer:
        for path, found in zip(paths, json.load(answer)["instances"], strict=True):
            print(path, found)


if __name__ == "__main__":
    main(*sys.argv[1:])
