"""What `msmigrate serve` does around the server: what is served, where it listens, and the stop."""

from __future__ import annotations

import os
import re
import signal
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..deploy.export import Worker, job_of, module, subject_of
from ..deploy.hostile_mindir import refuse_code
from ..deploy.job import FILE, Job, ServeJob, read_key, shape_of
from ..deploy.options import ServeOptions
from ..errors import BadInput, WorkerFailed
from ..input_files import open_regular, unreadable
from ..printable import echo
from ..processes import ENDING, interrupt, signals_to
from ..temporary import temporary_folder
from ..training.inference import Request, class_file, own_mode, preparation
from ..training.recipe import reader as recipes
from ..training.recipe.schema import Data, Model, Optimizer, Recipe
from ..workers.messages import Event, Message
from ..workers.parent import call

STOPPED = 30.0  # seconds within which the server has stopped after a signal, or is killed
VERSION_FIRST = b"\n"  # a MindIR is a message of protobuf, whose first field is the text of its version
ANY = Recipe(model=Model(name="a MindIR"), data=Data(), optimizer=Optimizer(name="SGD", args={"lr": 0.1}))


def run(model_file: Path, worker: Worker = module, **options: Any) -> int:
    """Serve a model until SIGINT, SIGTERM or SIGHUP; returns the exit code.

    options: those of ServeOptions. Raises BadInput, BadCheckpoint and others before anything listens, and what the
    server raises.
    """
    chosen = ServeOptions(checkpoint=model_file, **options)
    name = chosen.name or re.sub(r"\W", "_", model_file.stem) or "model"
    if not name.isidentifier():
        raise BadInput(f"--name {name}: a model is asked for by letters, digits and _: give it another --name")
    for text in chosen.shapes:
        shape_of(text)
    names = None if chosen.classes is None else class_file(chosen.classes)
    if chosen.key_file is not None:
        read_key(chosen.key_file, chosen.encryption)
    with temporary_folder("serve") as folder:
        job, known, images = _job(chosen, folder)
        served = ServeJob(
            name=name,
            job=job,
            mindir=model_file if _is_mindir(model_file) else None,
            images=images,
            classes=names or known,
            host=chosen.host,
            port=chosen.port,
            batch=chosen.batch,
            wait=chosen.wait,
            most_bytes=int(chosen.max_request * 1e6),
            most_waiting=chosen.max_waiting,
        )
        served.write(folder / FILE)
        _follow([*worker("serving.mindspore_server_worker"), str(folder)], folder / "server.log", name, chosen.host)
    return 0


def _is_mindir(file: Path) -> bool:
    return file.suffix.lower() == ".mindir"


def _job(options: ServeOptions, folder: Path) -> tuple[Job, list[str] | None, bool]:
    """The net's job, the names of its classes if the checkpoint knows them, and whether images can be prepared."""
    if not _is_mindir(options.checkpoint):
        if options.key_file is not None:
            raise BadInput("--key-file opens an encrypted MindIR")
        subject = subject_of(options, folder)
        return job_of(options, subject), list(subject.classes) if subject.classes else None, True
    if options.model is not None or options.ema or options.trust_source is not None:
        raise BadInput(
            "a MindIR holds its model: leave --model, --trust-source and --ema out; --recipe says how images are "
            "prepared"
        )
    if (why := unreadable(options.checkpoint)) is not None:
        raise BadInput(why)
    if options.key_file is None:
        with open_regular(options.checkpoint) as file:
            if file.read(1) != VERSION_FIRST:
                raise BadInput(f"{options.checkpoint} is no MindIR, or an encrypted one, whose key --key-file gives")
        refuse_code(options.checkpoint)
    recipe = ANY if options.recipe is None else recipes.load(recipes.find(options.recipe))
    preparation(recipe)  # or refuse it now
    request = Request(
        recipe=recipe, weights=options.checkpoint, shown=str(options.checkpoint), mode=own_mode(recipe), target="CPU"
    )
    key: Any = {"key_file": options.key_file, "enc_mode": options.encryption}
    return Job(request=request, shapes=list(options.shapes), **key), None, options.recipe is not None


def _follow(command: list[str], log: Path, name: str, host: str) -> None:
    """Run the server, say where it listens, and hand on the signals that stop it; one that does not stop is killed.

    Raises WorkerFailed then, and KeyboardInterrupt for a signal that comes before it listens.
    """
    server: list[int] = []
    listening: list[int] = []
    killed: list[int] = []

    def on_message(worker: str, message: Message) -> None:
        if not isinstance(message, Event):
            return
        facts = message.facts
        if message.name == "started":
            server.append(facts["pid"])
        elif message.name == "listening":
            listening.extend(server)
            address = f"http://{f'[{host}]' if ':' in host else host}:{facts['port']}"
            for method in facts["methods"]:
                echo(f"POST {address}/model/{name}:{method}")
            echo(f"GET  {address}/health   (Ctrl-C stops it when its requests are answered)")
        elif message.name == "stopped":
            echo(f"Stopped after {facts['instances']} instances in {facts['batches']} batches.")

    def kill() -> None:
        killed.append(listening[0])
        with suppress(ProcessLookupError):
            os.kill(listening[0], signal.SIGKILL)

    patience = threading.Timer(STOPPED, kill)

    def stop(number: int) -> None:
        if not listening:
            interrupt(number)
        if patience.ident is None:
            patience.start()
        with suppress(ProcessLookupError):
            os.kill(listening[0], signal.SIGTERM)

    try:
        with signals_to(stop, (signal.SIGINT, *ENDING)):
            call("the MindSpore process", command, log, on_message)
    except WorkerFailed:
        if not killed:
            raise
        raise WorkerFailed(f"the server did not stop within {STOPPED:g} s of the signal and was killed") from None
    finally:
        patience.cancel()
