"""The servable's folder, written from a recipe (templates beside it).

    NAME/servable_config.py    preparing images, the model, naming classes, and the methods
    NAME/1/model.mindir        version 1
    NAME/classes.json          the names of the classes
    NAME/client.py, server.py  examples: requests over REST and gRPC, and starting the server

The layout and the calls are from MindSpore Serving's own documentation (serving_model, release 2.0).
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jinja2

from ...atomic_files import folder_beside, out_of_the_way
from ...errors import BadDestination, BadInput, Unsupported
from ...mappings import table
from ...mappings.rows import Call, Name
from ...training.inference import Mode, names_in, own_mode, preparation
from ...training.recipe.schema import Part
from ...workers.parent import call
from ..export import Exported, Worker
from ..output_files import beside

CONFIG, MODEL, CLASSES = "servable_config.py", "1/model.mindir", "classes.json"
CLIENT, SERVER = "client.py", "server.py"
FILES = (CONFIG, MODEL, CLASSES, CLIENT, SERVER)
TEMPLATES = {CONFIG: "servable_config.py.j2", CLIENT: "serving_client.py.j2", SERVER: "serving_server.py.j2"}
VISION = "mindspore.dataset.vision."
TOP = 5


def check(out: Path, *, force: bool) -> Path:
    """Where the servable goes. Raises BadInput for an invalid name, BadDestination where it cannot be written."""
    target = Path(os.path.realpath(out))
    if not target.name.isidentifier():
        raise BadInput(f"-o {out}: a servable has its folder's name: letters, digits and _, such as -o resnet50")
    if not target.parent.is_dir():
        raise BadDestination(f"the folder of {out} does not exist; create it first")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise BadDestination(f"cannot write {out}: no permission in its folder")
    if target.exists():
        if not force:
            raise BadDestination(f"{out} exists; pass --force to replace it")
        strange = _strange(target)
        if strange is not None:
            raise BadDestination(f"{out} holds {strange}, which no export wrote: --force does not replace it")
    return target


def _strange(folder: Path) -> str | None:
    """What in a folder is not a file of a servable that `write` made; None where all is."""
    if not folder.is_dir() or folder.is_symlink():
        return "something else than a servable"
    if not (folder / CONFIG).exists():
        return f"no {CONFIG}"
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if name not in (*FILES, "1", "__pycache__") and "__pycache__" not in path.parts:
            return name
    return None


def write(
    folder: Path,
    name: str,
    mindir: Path,
    parts: Sequence[Part],
    mode: Mode,
    classes: Sequence[str],
    facts: dict[str, Any],
) -> None:
    """Write all files into an empty folder.

    parts: the transforms, translated by the mapping table. facts: of the export. Raises Unsupported for a transform
    that has no translation, and BadInput for a net that is no classifier of images.
    """
    if len(facts["shapes"]) != 1 or len(facts["outputs"]) != 1 or len(facts["outputs"][0]) != 1:
        raise BadInput("--format serving is for nets of one image that give logits; --format mindir takes any")
    count = facts["outputs"][0][0]
    if count != len(classes):
        raise BadInput(f"the net gives {count} logits and there are names for {len(classes)} classes: --classes FILE")
    calls = [table.translate(part.name, part.args) for part in parts]
    decode = ["vision.Decode(to_pil=True)"] + ["vision.Grayscale(num_output_channels=1)"] * (mode == "L")
    operators = [*decode, *map(written, calls)]
    values = {
        "name": name,
        "recipe": f"a recipe with {', '.join(part.name for part in parts)}",
        "operators": operators,
        "imports": sorted({call.target.rpartition(".")[0] for call in calls if not call.target.startswith(VISION)}),
        "batch": facts["batch"],
        "shape": "(" + ", ".join(map(str, facts["shapes"][0][1:])) + ")",
        "top": min(TOP, count),
    }
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,
    )
    (folder / MODEL).parent.mkdir()
    shutil.copyfile(mindir, folder / MODEL)
    (folder / CLASSES).write_text(json.dumps(list(classes), ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
    for file, template in TEMPLATES.items():
        (folder / file).write_text(environment.get_template(template).render(values), encoding="utf-8")


def written(value: Any) -> str:
    """A translated call, or a value in one, as Python; names of mindspore.dataset.vision begin with `vision.`."""
    if isinstance(value, Call):
        given = [f"{key}={written(item)}" for key, item in value.kwargs.items() if not key.startswith("*")]
        rest = [written(item) for key, items in value.kwargs.items() if key.startswith("*") for item in items]
        return f"{_short(value.target)}({', '.join([*rest, *given])})"
    if isinstance(value, Name):
        return _short(value)
    if isinstance(value, (list, tuple)):
        inner = ", ".join(map(written, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    return repr(value)


def _short(target: str) -> str:
    if target.startswith(VISION):
        return f"vision.{target.removeprefix(VISION)}"
    return target.replace("numpy.", "np.", 1) if target.startswith("numpy.") else str(target)


@contextmanager
def new_folder(target: Path, *, force: bool) -> Iterator[Path]:
    """An empty folder beside the target, which takes its place when the block ends well; else nothing is left."""
    try:
        with folder_beside(target) as temporary:
            folder = temporary / target.name
            folder.mkdir()
            yield folder
            if target.exists() and not force:
                raise BadDestination(f"{target} appeared while it was being written; pass --force to replace it")
            with out_of_the_way(target):
                folder.rename(target)
    except OSError as error:
        raise BadDestination(f"cannot write {target}: {error.strerror or error}") from error


def place_servable(
    exported: Exported,
    target: Path,
    classes: Path | None,
    folder: Path,
    add_line: Callable[[str], None],
    worker: Worker,
    *,
    force: bool,
) -> dict[str, Any]:
    """Write the servable, run it, and put it in place; returns what the JSON reports about it.

    Raises BadInput for a net that is no classifier, Unsupported for one too large, and WorkerFailed where the servable
    does not do what the net does.
    """
    if beside(exported.file).exists():
        raise Unsupported(
            "a MindIR of more than 1 GB has its numbers in a folder beside it, for which MindSpore Serving's "
            "documentation knows no place: --format mindir writes it, and `msmigrate serve` serves it"
        )
    subject = exported.net.subject
    names = subject.names(None if classes is None else names_in(classes, subject))
    parts, mode = preparation(subject.recipe), own_mode(subject.recipe)
    with new_folder(target, force=force) as new:
        write(new, target.name, exported.file, parts, mode, names, exported.facts)
        words = [*worker("serving.mindspore_servable_worker"), str(folder), str(new)]
        call("the MindSpore process", words, folder / "servable.log")
    add_line(f"Its {CONFIG} was run without MindSpore Serving, which is not here: its methods agree with the net.")
    if subject.classes is None and classes is None:
        add_line("Note: the checkpoint names no classes, so they are called class 0, 1, …; --classes FILE names them.")
    add_line(f"Written to {target.name}/: {', '.join(FILES)}.")
    return {"files": [str(target / name) for name in FILES]}
