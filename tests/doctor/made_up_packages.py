"""Made-up packages: metadata as pip leaves them, and no code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from msmigrate import __version__

EXTENSION = ".cpython-311-x86_64-linux-gnu.so"
HALVES = [
    'mindspore<2.11,>=2.10; extra == "mindspore"',
    'torch>=2.6; extra == "torch"',
    'torchvision>=0.21; extra == "torch"',
    'onnx>=1.16; extra == "export"',
]
SOUND = {
    "msmigrate": (__version__, ["numpy<2,>=1.26", *HALVES]),
    "numpy": ("1.26.4", []),
    "mindspore": ("2.10.0", ["numpy>=1.25.0", "psutil>=5"]),
    "torch": ("2.15.0", []),
    "torchvision": ("0.29.2", ["torch>=2.14.0", 'scipy; extra == "scipy"']),
    "onnx": ("1.23.2", []),
    "psutil": ("7.2", []),
}
OPTIONAL = ['timm>=1.0; extra == "timm"', 'ruff>=0.8; extra == "test"']

Install = Callable[..., list[str]]


def write(folder: Path, name: str, version: str, requires: list[str], python: str = ">=3.10,<3.13") -> None:
    """The metadata of one package."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", f"Requires-Python: {python}"]
    extras = {line.partition('extra == "')[2].rstrip('"') for line in requires if "extra ==" in line}
    lines += [f"Provides-Extra: {extra}" for extra in sorted(extras)] + [f"Requires-Dist: {line}" for line in requires]
    (info / "METADATA").write_text("\n".join(lines) + "\n")
