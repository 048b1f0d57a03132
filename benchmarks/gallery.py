"""Make the pictures of docs/gallery.md anew: pages as a browser shows them, and the plots of a run.

    python benchmarks/gallery.py [NAME …] [--chromium PROGRAM] [--run FOLDER]

Pages are those of docs/examples, and what `msmigrate analyze` writes; a headless Chromium renders them. Each picture
shows one part of a page: the other parts are hidden in a copy of it. The plots are those that `msmigrate train
benchmarks/gallery.yaml` and `eval` leave; --run names the folder of such a run, with `eval --out` in it under
`evaluation`, so that it is not made again. Exit code 1 where a picture is larger than 300 KB.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

CHECKOUT = Path(__file__).parent.parent
FIGURES = CHECKOUT / "docs" / "figures"
EXAMPLES = CHECKOUT / "docs" / "examples"
SCRIPT = "tests/migrate/training_scripts/mnist/main.py.txt"  # a training script as people write it
WIDTH, LONGEST = 1200, 6000  # pixels of the window
MARGIN = 24  # of what is left below the last thing on a picture
LARGEST = 300_000  # bytes
COLOURS = 128  # of a picture: text and a few hues
POLICY = re.compile(r"<meta http-equiv=\"Content-Security-Policy\"[^>]*>")  # it forbids what is added to the copy


@dataclass(frozen=True)
class Shot:
    """A picture of a page. page: a file of docs/examples, or the words after `msmigrate analyze` that make it.

    hide: a CSS selector of what is not shown. height: of the picture at most.
    """

    page: str | tuple[str, ...]
    hide: str = ""
    height: int = LONGEST


SHOTS = {
    "parity_clean": Shot("clean-resnet50.html", "#findings, #environment, #reading, footer"),
    "parity_causes": Shot("faulty-net.html", "section:not(#causes), footer"),
    "parity_first_screen": Shot("faulty-net.html", "section:not(#causes), footer", height=774),  # of the README
    "parity_model": Shot("faulty-net.html", "section:not(#model), header, nav, footer"),
    "parity_tensors": Shot("faulty-net.html", "section:not(#tensors), header, nav, #findings, footer"),
    "analyze_model": Shot(("torchvision:convnext_tiny",), height=1500),
    "analyze_script": Shot((SCRIPT,), height=1500),
}
PLOTS = {"run_training": "training.png", "run_confusion": "evaluation/confusion.png"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join([*SHOTS, *PLOTS])}; without one, all")
    parser.add_argument("--chromium", default=shutil.which("chromium") or "google-chrome", help="the browser")
    parser.add_argument("--run", type=Path, help="the folder of a run that is there already")
    given = parser.parse_args()
    unknown = [name for name in given.names if name not in (*SHOTS, *PLOTS)]
    if unknown:
        parser.error(f"no picture is called {unknown[0]}: there are {', '.join([*SHOTS, *PLOTS])}")
    names = given.names or [*SHOTS, *PLOTS]
    FIGURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="msmigrate-gallery-") as temporary:
        work = Path(temporary)
        for name in (name for name in names if name in SHOTS):
            save(name, taken(SHOTS[name], given.chromium, work))
        if any(name in PLOTS for name in names):
            folder = given.run or trained(work / "run")
            for name in (name for name in names if name in PLOTS):
                save(name, Image.open(folder / PLOTS[name]).convert("RGB"))
    large = [name for name in names if (FIGURES / f"{name}.png").stat().st_size > LARGEST]
    sys.exit(f"larger than {LARGEST // 1000} KB: {', '.join(large)}" if large else 0)


def taken(shot: Shot, chromium: str, work: Path) -> Image.Image:
    """The picture, without the empty part at its end."""
    if isinstance(shot.page, str):
        page = (EXAMPLES / shot.page).read_text(encoding="utf-8")
    else:
        made = work / "analysis.html"
        call(["analyze", *(readable(word, work) for word in shot.page), "--html", str(made)], allowed=(0, 1))
        page = made.read_text(encoding="utf-8")
    style = f"<style>{shot.hide} {{ display: none !important }}</style>" if shot.hide else ""
    copy, picture = work / "page.html", work / "picture.png"
    copy.write_text(POLICY.sub("", page).replace("</head>", f"{style}</head>"), encoding="utf-8")
    options = (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        f"--user-data-dir={work / 'profile'}",
    )
    window = (f"--window-size={WIDTH},{shot.height}", f"--screenshot={picture}", "--virtual-time-budget=5000")
    subprocess.run([chromium, *options, *window, copy.as_uri()], check=True, capture_output=True, timeout=300)
    return trimmed(Image.open(picture).convert("RGB"))


def readable(word: str, work: Path) -> str:
    """A script of the tests, which are kept as text, under the name that it would have."""
    if not word.endswith(".py.txt"):
        return word
    script = work / Path(word).stem
    shutil.copy(CHECKOUT / word, script)
    return str(script)


def trimmed(picture: Image.Image) -> Image.Image:
    """The picture up to a little below its last row that is not like the row at its very end."""
    pixels = np.asarray(picture)
    differ = np.flatnonzero((pixels != pixels[-1]).any(axis=(1, 2)))
    end = pixels.shape[0] if not differ.size else min(int(differ[-1]) + MARGIN, pixels.shape[0])
    return picture.crop((0, 0, picture.width, end))


def trained(folder: Path) -> Path:
    """A run of gallery.yaml, evaluated."""
    call(["train", "benchmarks/gallery.yaml", "--out", str(folder)])
    call(["eval", str(folder / "checkpoints" / "best.ckpt"), "--out", str(folder / "evaluation")])
    return folder


def call(words: Sequence[str], allowed: Sequence[int] = (0,)) -> None:
    done = subprocess.run([sys.executable, "-m", "msmigrate", *words], cwd=CHECKOUT, check=False)
    if done.returncode not in allowed:
        sys.exit(f"msmigrate {' '.join(words)} ended with {done.returncode}")


def save(name: str, picture: Image.Image) -> None:
    """Write a picture with few colours, which a page of text does not need more of."""
    few = picture.quantize(COLOURS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    few.save(FIGURES / f"{name}.png", optimize=True)
    print(f"{name}.png  {picture.width}×{picture.height}  {(FIGURES / f'{name}.png').stat().st_size // 1000} KB")


if __name__ == "__main__":
    main()
