"""Several conversions to one name, full disks, folders that cannot be written, and a source that is the destination."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from msmigrate import atomic_files
from msmigrate.errors import BadDestination
from msmigrate.migrate.checkpoint import convert
from tiny_checkpoints import SMALL, floats, save

SCRIPT = Path(__file__).parent / "told_conversion.py"
NAMES = ("x.ckpt", "x.safetensors", "x.pth", "x/")
WAYS = [*((name, ()) for name in NAMES), *((name, ("named",)) for name in NAMES[:3])]
Listing = dict[str, bytes]


def held(path: Path) -> Listing:
    """The file, or all files of the folder."""
    if path.is_dir():
        return {file.name: file.read_bytes() for file in path.iterdir()}
    return {"": path.read_bytes()}


def large(path: Path, start: float) -> Path:
    return save(path, {f"own.{number}": floats(100_000, start=start + number) for number in range(20)})


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("sources")
    return [large(folder / str(number), number) for number in range(4)]


@pytest.fixture(scope="module")
def wanted(sources: list[Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Listing]]:
    """What each source becomes, by the name of the destination."""
    folder = tmp_path_factory.mktemp("wanted")
    found: dict[str, list[Listing]] = {}
    for name in NAMES:
        for source in sources:
            shard = 4_000_000 if name == "x/" else None
            convert.convert(source, f"{folder}/{name}", force=True, max_shard_size=shard)
            found.setdefault(name, []).append(held(folder / name))
    return found


def at_once(sources: list[Path], target: str, *flags: str) -> list[tuple[int | None, str]]:
    """Convert all of them to one name at the same time; exit code and stderr of each."""
    started = [
        subprocess.Popen(
            [sys.executable, str(SCRIPT), str(source), target, "wait", *flags],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for source in sources
    ]
    for process in started:
        assert process.stdout is not None and process.stdout.readline() == "start\n"
    for process in started:
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
    said = [process.communicate()[1] for process in started]
    return [(process.returncode, text) for process, text in zip(started, said, strict=True)]


@pytest.mark.parametrize("before", [pytest.param("nothing", marks=pytest.mark.full), "an old one"])
@pytest.mark.parametrize(("name", "flags"), WAYS)
def test_with_force_all_succeed_and_one_of_them_stays(
    sources: list[Path],
    wanted: dict[str, list[Listing]],
    tmp_path: Path,
    name: str,
    flags: tuple[str, ...],
    before: str,
) -> None:
    target = f"{tmp_path}/{name}"
    if before == "an old one":
        convert.convert(sources[0], target)
    assert at_once(sources, target, "force", *flags) == [(0, "")] * 4
    assert held(tmp_path / name) in wanted[name]
    assert [path.name for path in tmp_path.iterdir()] == [name.rstrip("/")]


def test_a_folder_that_appears_at_the_last_moment_is_replaced_with_force(
    sources: list[Path], wanted: dict[str, list[Listing]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process has it ready between the look whether it is there and the rename."""
    convert.convert(sources[1], f"{tmp_path}/rival/")
    real = atomic_files._renameat2

    def late(old: Path, new: Path, flag: int) -> bool:
        if not new.exists():
            (tmp_path / "rival").rename(new)
        return real(old, new, flag)

    monkeypatch.setattr(atomic_files, "_renameat2", late)
    convert.convert(sources[0], f"{tmp_path}/x/", force=True, max_shard_size=4_000_000)
    assert held(tmp_path / "x") == wanted["x/"][0]
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize(("name", "flags"), WAYS)
def test_without_force_exactly_one_succeeds(
    sources: list[Path], wanted: dict[str, list[Listing]], tmp_path: Path, name: str, flags: tuple[str, ...]
) -> None:
    done = at_once(sources, f"{tmp_path}/{name}", *flags)
    assert sorted(code or 0 for code, _ in done) == [0, 2, 2, 2]
    winner = next(number for number, (code, _) in enumerate(done) if code == 0)
    for code, text in done:
        assert code == 0 or (text.count("\n") == 1 and ("exists; pass" in text or "appeared while" in text)), text
    assert held(tmp_path / name) == wanted[name][winner]
    assert [path.name for path in tmp_path.iterdir()] == [name.rstrip("/")]


# Where nothing can be written -------------------------------------------------------------------------------------


def limit_files() -> None:
    """No file of this process may have more than 3 MB; Python has the signal ignored, and gets an error instead."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, 3_000_000))


@pytest.mark.parametrize("flags", [("force",), ("force", "no-fallocate"), ("force", "no-fallocate", "named")])
@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_a_disk_that_is_full_midway(
    sources: list[Path], tmp_path: Path, name: str, old: bool, flags: tuple[str, ...]
) -> None:
    (tmp_path / "out").mkdir()
    target = f"{tmp_path}/out/{name}"
    if old:
        convert.convert(save(tmp_path / "other", SMALL), target)
    before = {path.name: held(path) for path in (tmp_path / "out").iterdir()}
    line = [sys.executable, str(SCRIPT), str(sources[0]), target, *flags]
    done = subprocess.run(line, capture_output=True, text=True, check=False, preexec_fn=limit_files)
    assert done.returncode == 2, done
    assert done.stderr.count("\n") == 1
    assert "cannot write" in done.stderr and "File too large" in done.stderr
    assert ("is unchanged" if old else "nothing was left behind") in done.stderr
    assert {path.name: held(path) for path in (tmp_path / "out").iterdir()} == before


def test_the_command_says_so_too(sources: list[Path], tmp_path: Path) -> None:
    line = [sys.executable, "-m", "msmigrate", "convert-ckpt", str(sources[0]), str(tmp_path / "x.ckpt")]
    done = subprocess.run(line, capture_output=True, text=True, check=False, preexec_fn=limit_files)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "File too large" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def read_only() -> Iterator[Path]:
    """A folder that everybody may look into and nobody but root may write, with a source in it."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        save(folder / "x.pth", SMALL)
        (folder / "out").mkdir()
        for path in (folder / "x.pth", folder / "out", folder):
            path.chmod(0o555)
        yield folder
        folder.chmod(0o755)


AS_NOBODY = """
import os, sys
from msmigrate.errors import MsmigrateError
from msmigrate.migrate.checkpoint import convert
# before the change of user, who may not read where this is installed
from msmigrate import atomic_files
from msmigrate.migrate.checkpoint.formats import ckpt, pth_reader, pth_writer, safetensors_file, sharded
if os.geteuid() == 0:  # whom no mode stops
    os.setgid(65534)
    os.setuid(65534)
for name in sys.argv[2:]:
    try:
        convert.convert(f"{sys.argv[1]}/x.pth", f"{sys.argv[1]}/out/{name}")
        print(name, "was written")
    except MsmigrateError as error:
        print(type(error).__name__, error)
"""


def test_a_folder_that_may_not_be_written(read_only: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", AS_NOBODY, str(read_only), *NAMES], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == len(NAMES)
    assert all(line.startswith("BadDestination cannot write") and "no permission" in line for line in lines), lines
    assert list((read_only / "out").iterdir()) == []


# The source itself ------------------------------------------------------------------------------------------------


def alias(how: str, source: Path, other: Path) -> Path:
    """The source by another way."""
    if how == "the same name":
        return source
    if how == "a roundabout name":
        return source.parent / ".." / source.parent.name / source.name
    if how == "a symbolic link":
        other.symlink_to(source)
    elif how == "a link to a link":
        (other.parent / "link").symlink_to(source)
        other.symlink_to(other.parent / "link")
    else:
        os.link(source, other)
    return other


LINKS = ["the same name", "a roundabout name", "a symbolic link", "a link to a link", "a hard link"]


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("how", LINKS)
@pytest.mark.parametrize("suffix", [".pth", ".safetensors", ".ckpt"])
def test_a_file_is_not_replaced_by_its_own_conversion(tmp_path: Path, suffix: str, how: str, force: bool) -> None:
    first = save(tmp_path / "first", SMALL)
    side = "mindspore" if suffix == ".ckpt" else "torch"
    source = tmp_path / f"x{suffix}"
    convert.convert(first, source, to=side)
    before = source.read_bytes()
    target = alias(how, source, tmp_path / f"y{suffix}")
    with pytest.raises(BadDestination, match="is the source itself"):
        convert.convert(source, target, to=side, dtype="float16", force=force)
    if how != "the same name":
        with pytest.raises(BadDestination, match="is the source itself"):
            convert.convert(target, source, to=side, dtype="float16", force=force)
    assert source.read_bytes() == before
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("how", LINKS[:-1])  # folders have no hard links
def test_a_folder_is_not_replaced_by_its_own_conversion(tmp_path: Path, how: str) -> None:
    convert.convert(save(tmp_path / "first", SMALL), f"{tmp_path}/x/", to="torch", max_shard_size=100)
    before = held(tmp_path / "x")
    target = alias(how, tmp_path / "x", tmp_path / "y")
    (index,) = [path for path in (tmp_path / "x").iterdir() if path.suffix == ".json"]
    for source in (tmp_path / "x", index, target, target / index.name):
        for force in (False, True):
            with pytest.raises(BadDestination, match="is the source itself"):
                convert.convert(source, f"{target}/", to="torch", dtype="float16", force=force)
    assert held(tmp_path / "x") == before


def test_a_file_of_the_source_is_not_replaced(tmp_path: Path) -> None:
    convert.convert(save(tmp_path / "first", SMALL), f"{tmp_path}/x/", to="torch", max_shard_size=100)
    before = held(tmp_path / "x")
    shard = next(path for path in (tmp_path / "x").iterdir() if path.suffix == ".safetensors")
    (tmp_path / "y.safetensors").symlink_to(shard)
    for target in (shard, tmp_path / "y.safetensors"):
        with pytest.raises(BadDestination, match="which is read"):
            convert.convert(tmp_path / "x", target, to="torch", force=True)
    os.link(shard, tmp_path / "z.safetensors")  # another name of the same file: it is replaced, and the file stays
    convert.convert(tmp_path / "x", tmp_path / "z.safetensors", to="torch", force=True)
    assert held(tmp_path / "x") == before


def test_files_of_other_checkpoints_are_left_alone(tmp_path: Path) -> None:
    """A stray file of another target, or of this one and a living process, is not removed."""
    source = save(tmp_path / "x.pth", SMALL)
    kept = [
        *(f".y.ckpt.{2**22 + 1}-00000000.tmp", f".x.ckpt.{os.getpid()}-00000000.tmp", ".x.ckpt.1-00000000.tmp"),
        *(".x.ckpt.tmp", f".x.ckpt.{2**22 + 1}-0.tmp", f"x.ckpt.{2**22 + 1}-00000000.tmp"),
    ]
    for name in kept:
        (tmp_path / name).touch()
    (tmp_path / f".x.ckpt.{2**22 + 1}-00000001.tmp").symlink_to(source)
    (tmp_path / f".x.ckpt.{2**22 + 1}-00000002.tmp").mkdir()
    (tmp_path / f".x.ckpt.{2**22 + 1}-00000002.tmp" / "mine").touch()
    before = {path.name for path in tmp_path.iterdir()}
    gone = tmp_path / f".x.ckpt.{2**22 + 1}-00000003.tmp"
    gone.touch()
    convert.convert(source, tmp_path / "x.ckpt")
    assert {path.name for path in tmp_path.iterdir()} == {*before, "x.ckpt"}
    assert not gone.exists()
