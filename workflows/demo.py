"""demo from start to end: parity-step on a small pair with one wrong line, and again with that line put right."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import BadDestination
from ..printable import echo
from ..temporary import temporary_folder
from . import parity_step

HERE = Path(__file__).parent.parent / "examples" / "demo"
TORCH, MINDSPORE = "torch_net.py", "mindspore_net.py"
RECIPE = "synthetic"
WRONG, RIGHT, FAULT = "momentum=0.1", "momentum=0.9", "bn-momentum-complement"


def run(keep: Path | None) -> int:
    """Show parity-step on the two files; returns 0 where it fails on them as they come and passes once they are mended.

    keep: a folder for the files, which stay there as the last step had them. Raises BadDestination for files that are
    there already, and what parity_step raises.
    """
    with _folder(keep) as folder:
        pair = [folder / name for name in (TORCH, MINDSPORE)]
        for file in pair:
            file.write_text((HERE / file.name).read_text(encoding="utf-8"), encoding="utf-8")
        words = [RECIPE, *(w for file in pair for w in (f"--{file.stem.partition('_')[0]}", f"{file}:build"))]
        line = shlex.join(["msmigrate", "parity-step", *words])
        for file, what in zip(pair, ("A small net in torch", "The same, moved to MindSpore by hand"), strict=True):
            echo(f"{what}, {file}:\n\n{_block(file)}")
        echo("One line of one of the files is not what it should be. Each net takes the same three training steps in a")
        echo("process of its own, and every tensor is compared:")
        echo(f"\n$ {line}")
        red = _compared(pair)
        echo(f"\nThe cause above says where and what: this line of {pair[1].name} is changed,\n")
        echo(_changed(pair[1]))
        echo(f"\nand the same two files are compared again:\n\n$ {line}")
        green = _compared(pair)
    as_expected = bool(green) and any(cause.fault == FAULT for cause in red.report.causes)
    echo(f"\n{'Red, then green.' if as_expected else 'This should have been red, then green, and was not.'}\n")
    if keep is None:
        echo("`msmigrate demo --keep DIR` leaves the two files, to be changed and compared as you like.")
    else:
        echo(f"Change any line of the files in {keep} and run it again; {WRONG} is the fault:\n\n    {line}\n")
    echo("A pair of your own, each side the function that returns its model:\n")
    echo(f"    msmigrate parity-step {RECIPE} --torch FILE.py:FUNCTION --mindspore FILE.py:FUNCTION\n")
    echo(f"{RECIPE} has images of 32x32; a recipe of yours says others, with loss and optimizer, and --batch-file")
    echo("brings your own inputs. Without a MindSpore side yet: msmigrate convert-model FILE.py:FUNCTION -o NEW.py")
    return 0 if as_expected else 1


def _compared(pair: list[Path]) -> parity_step.ParityResult:
    torch, mindspore = (f"{file}:build" for file in pair)
    return parity_step.shown(Path(RECIPE), torch=torch, mindspore=mindspore)


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is None:
        with temporary_folder("demo") as folder:
            yield folder
        return
    for file in (keep / TORCH, keep / MINDSPORE):
        if file.exists():
            raise BadDestination(f"{file} is there already, and may be changed: give --keep another folder")
    try:
        keep.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadDestination(f"--keep: {keep} cannot be made: {error.strerror}") from error
    yield keep


def _block(file: Path) -> str:
    """The lines of the class in which the two differ, indented."""
    text = file.read_text(encoding="utf-8")
    return textwrap.indent(text[text.index("class Block") : text.index("class Net")].rstrip(), "    ") + "\n"


def _changed(file: Path) -> str:
    """Put the wrong line right; how it was and how it is, with its number."""
    lines = file.read_text(encoding="utf-8").splitlines()
    number = next(at for at, text in enumerate(lines) if WRONG in text)
    before, lines[number] = lines[number], lines[number].replace(WRONG, RIGHT)
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return f"{number + 1:>4} - {before.strip()}\n{number + 1:>4} + {lines[number].strip()}"
