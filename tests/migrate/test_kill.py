"""A conversion that is killed, whenever that is, leaves the old file, or the new one whole; the next one tidies up."""

from __future__ import annotations

import collections
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tiny_checkpoints import floats, save

SCRIPT = Path(__file__).parent / "told_conversion.py"
KILLS = 1  # of each way to convert; in the full suite KILLS_IN_FULL
KILLS_IN_FULL = 15
STAGES = ("write 0", "write 2", "write 4", "write 6", "write 8", "write 10", "sync", "name")
Listing = dict[str, bytes]

# How it is written: the name of the new file or folder, and whether one stands there already.
WAYS = [
    (name, *flags)
    for name in ("x.ckpt", "x.safetensors", "x.pth", "x/")
    for flags in ((), ("force",), ("named",), ("force", "named"))
] + [("x/", "two-steps"), ("x/", "force", "two-steps")]
WAYS = [way for way in WAYS if not (way[0] == "x/" and "named" in way)]


def source(path: Path, start: float) -> Path:
    """Many small tensors and some large ones, 25 MB in all."""
    small = {f"own.{number}.a": floats(256, start=start + number) for number in range(600)}
    large = {f"own.large{number}": floats(250_000, start=start + number) for number in range(24)}
    return save(path, {**small, **large})


def held(path: Path) -> Listing | None:
    """The file, or all files of the folder; None where there is nothing."""
    if path.is_dir():
        return {file.name: file.read_bytes() for file in path.iterdir()}
    return {"": path.read_bytes()} if path.exists() else None


def command(folder: Path, name: str, *flags: str) -> list[str]:
    return [sys.executable, str(SCRIPT), str(folder / "in"), f"{folder}/out/{name}", *flags]


class Place:
    """A source, the conversion of it and of another one to each format, and how long the former takes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.new: dict[str, Listing | None] = {}
        self.old: dict[str, Listing | None] = {}
        self.stages: collections.Counter[str] = collections.Counter()
        for number, found in enumerate((self.old, self.new)):
            source(folder / "in", 1 - number)
            for name in ("x.ckpt", "x.safetensors", "x.pth", "x/"):
                self.empty()
                subprocess.run(command(folder, name), check=True, stdout=subprocess.DEVNULL)
                found[name] = held(folder / "out" / name)

    def empty(self) -> None:
        shutil.rmtree(self.folder / "out", ignore_errors=True)
        (self.folder / "out").mkdir()

    def put_old(self, name: str) -> None:
        """Let the old file or folder stand there, and no new one."""
        target = self.folder / "out" / name
        if target.is_dir():
            shutil.rmtree(target)
        if name.endswith("/"):
            target.mkdir()
        for file, content in (self.old[name] or {}).items():
            (target / file if file else target).write_bytes(content)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    made = Place(tmp_path_factory.mktemp("kill"))
    yield made
    told = ", ".join(f"{stage} {count}" for stage, count in sorted(made.stages.items()))
    print(f"\nkilled while it was at: {told}")


def seconds(place: Place, way: tuple[str, ...]) -> float:
    """How long a conversion takes from its start to its end."""
    with subprocess.Popen(command(place.folder, *way), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        started = time.perf_counter()
        process.stdout.read()
    assert process.returncode == 0
    return time.perf_counter() - started


def killed(place: Place, way: tuple[str, ...], stage: str, delay: float) -> str:
    """Start to convert and kill it some seconds after it has said this; returns the last thing that it said."""
    with subprocess.Popen(command(place.folder, *way), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = ""
        while not said.endswith((f"{stage}\n", "done\n")):
            said += process.stdout.readline()
        time.sleep(delay)
        process.kill()
        lines = (said + process.stdout.read()).split("\n")
    return lines[-2]  # what is behind the last line break was cut off


def kill_often(place: Place, way: tuple[str, ...], kills: int) -> None:
    name = way[0]
    out = place.folder / "out"
    old = place.old[name] if "force" in way else None
    new = place.new[name]
    assert new != place.old[name]
    place.empty()
    if old:
        place.put_old(name)
    longest = seconds(place, way)
    rng = random.Random(f"{way}")
    for number in range(kills):
        if held(out / name) != old:  # a killed process had finished
            if old:
                place.put_old(name)
            else:
                for path in (out / name).iterdir() if name == "x/" else [out / name]:
                    path.unlink()
                (out / name).rmdir() if name == "x/" else None
        assert held(out / name) == old
        if number % 2:  # at any time, or soon after something that passes quickly
            stage = killed(place, way, "start", longest * (number + rng.random()) / kills)
        else:
            stage = killed(place, way, rng.choice(STAGES), rng.choice((0, 0.0005, 0.002, 0.005)) * rng.random())
        place.stages[stage] += 1
        found = held(out / name)
        if found is None and "two-steps" in way and old:
            (kept,) = [path for path in out.iterdir() if path.suffix == ".old"]
            assert held(kept) == old
            kept.rename(out / name)
        else:
            assert found in (old, new), f"after {stage!r}"
    subprocess.run(command(place.folder, name, "force", *way[1:]), check=True, stdout=subprocess.DEVNULL)
    assert held(out / name) == new
    assert [path.name for path in out.iterdir()] == [name.rstrip("/")]


@pytest.mark.parametrize("way", WAYS, ids=" ".join)
def test_a_killed_conversion_leaves_the_old_or_the_new(place: Place, way: tuple[str, ...]) -> None:
    kill_often(place, way, KILLS)


@pytest.mark.full
@pytest.mark.parametrize("way", WAYS, ids=" ".join)
def test_many_killed_conversions_leave_the_old_or_the_new(place: Place, way: tuple[str, ...]) -> None:
    kill_often(place, way, KILLS_IN_FULL)
