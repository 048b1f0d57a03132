"""`msmigrate serve`: parse, one library call, exit code."""

from __future__ import annotations

import sys
from typing import Any

import click

from .cli_inputs import EXPORTED_MODEL, FILE_OR_FOLDER, NET, READ_FIRST, READABLE
from .cli_mappings_option import mappings_option


@click.command("serve")
@click.argument("model_file", metavar="MODEL", type=NET)
@click.option(
    "--model",
    metavar="MODEL",
    type=EXPORTED_MODEL,
    help="Which net a checkpoint is of, as for export.  [default: what it says]",
)
@click.option("--recipe", type=READABLE, help="Model and transforms; of a MindIR the transforms.")
@click.option("--trust-source", metavar="FILE@sha256:…", help="Import the source that a checkpoint names.")
@click.option("--ema", is_flag=True, help="The moving average in the checkpoint instead of its weights.")
@click.option("--input", "shapes", metavar="SHAPE", multiple=True, help="1x3x224x224 or 1x16:int64, for each input.")
@click.option(
    "--classes",
    metavar="FILE|DIR",
    type=FILE_OR_FOLDER,
    help="Class names: one a line, or a tree of class folders.",
)
@click.option("--name", help="Under which the model is asked for.  [default: the name of the file]")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=1500, show_default=True, help="0: a free one.")
@click.option("--batch", type=click.IntRange(1, 1024), default=8, show_default=True, help="Most instances run at once.")
@click.option("--wait", type=click.FloatRange(0), default=2.0, show_default=True, help="ms for which a batch may fill.")
@click.option(
    "--max-request", type=click.FloatRange(0.001, 2000), default=16.0, show_default=True, help="Most MB of a request."
)
@click.option(
    "--max-waiting", type=click.IntRange(1), default=256, show_default=True, help="Most instances that may wait."
)
@click.option("--key-file", metavar="FILE", type=READ_FIRST, help="The key of an encrypted MindIR.")
@click.option("--enc-mode", type=click.Choice(["AES-GCM", "AES-CBC", "SM4-CBC"]), help="[default: AES-GCM]")
@mappings_option
def serve(**options: Any) -> None:
    """Answer REST requests for MODEL, a MindIR or a checkpoint, as MindSpore Serving does, on this machine.

    \b
      POST /model/NAME[/version/1]:predict         {"instances": [{"x": [[…]]}]}           tensors
      POST /model/NAME:classify_top1, :classify_top5   {"instances": [{"image": {"b64": "…"}}]}   image files
      GET  /health

    Images can be asked for where a recipe says how they are prepared. Instances of concurrent requests run in one
    batch. The server has no authentication and no encryption: what reaches the port may ask.

    Exit code: 0 stopped by Ctrl-C or SIGTERM, 2 bad input.
    """
    from .reports.serve_command import run

    sys.exit(run(**options))
