"""The commands export and serve."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from .inputs import EXPORTED_MODEL, FILE_OR_FOLDER, NET, READ_FIRST, READABLE, TORCH_MODEL
from .options import mappings_option

FILE = click.Path(path_type=Path)


@click.command("export")
@click.argument("checkpoint", metavar="CKPT", type=NET)
@click.option("-o", "--out", metavar="FILE", type=FILE, required=True, help="The new file; of serving the new folder.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["mindir", "onnx", "lite", "serving", "air"]),
    default="mindir",
    show_default=True,
    help="What is written.",
)
@click.option(
    "--model", metavar="MODEL", type=EXPORTED_MODEL, help="Which net CKPT is of, see below.  [default: what CKPT says]"
)
@click.option("--recipe", type=READABLE, help="Model and transforms, instead of --model.")
@click.option("--trust-source", metavar="FILE@sha256:…", help="Import the source that CKPT names; inspect shows it.")
@click.option(
    "--torch", metavar="SPEC", type=TORCH_MODEL, help="The torch model of a FILE.py:FUNCTION, to be held against."
)
@click.option("--ema", is_flag=True, help="The moving average in the checkpoint instead of its weights.")
@click.option("--input", "shapes", metavar="SHAPE", multiple=True, help="1x3x224x224 or 1x16:int64, for each input.")
@click.option("--batch", type=click.IntRange(1), help="Examples at a time.  [default: 1, or as --input has it]")
@click.option("--dynamic", is_flag=True, help="Any size of batch; refused where two sizes do not run.")
@click.option(
    "--images", metavar="DIR|FILE", type=FILE_OR_FOLDER, help="Compare on these images.  [default: drawn numbers]"
)
@click.option("--key-file", metavar="FILE", type=READ_FIRST, help="Encrypt the MindIR with the key in this file.")
@click.option("--enc-mode", type=click.Choice(["AES-GCM", "AES-CBC", "SM4-CBC"]), help="[default: AES-GCM]")
@click.option("--from-onnx", is_flag=True, help="Make the lite model from ONNX instead of MindIR.")
@click.option(
    "--classes", metavar="FILE|DIR", type=FILE_OR_FOLDER, help="Class names for serving.  [default: what CKPT knows]"
)
@mappings_option
@click.option("--json", "as_json_", is_flag=True, help="Print what was found as JSON.")
@click.option("--force", is_flag=True, help="Replace FILE when it exists.")
def export(**options: Any) -> None:
    """Write CKPT as MindIR, as ONNX, for MindSpore Lite or MindSpore Serving, and run what was written.

    CKPT is a torch checkpoint, a MindSpore one, or safetensors. MODEL is one of these; a checkpoint of `msmigrate
    train` needs none:

    \b
      resnet50, resnet18(num_classes=10), …                    those that a recipe may name
      torchvision:convnext_tiny, timm:NAME                     converted first, as by convert-model
      FILE.py:FUNCTION, MODULE:FUNCTION                        a function that returns a MindSpore Cell

    CKPT may come from anyone. A file of source that it names is imported only with --trust-source, and arguments of
    its model that are more than sizes, rates and switches are taken only from --model or --recipe.

    The net is exported in evaluation mode, and the file is loaded in a process of its own and run, MindIR in MindSpore,
    ONNX in onnxruntime. It is there only if it computes what the net computes, and the net what the torch model does,
    within the rounding that was measured. Layers that MindSpore's ONNX exporter cannot write are written in an equal
    form.

    Exit code: 0 written, 1 it does not compute the same (nothing is written), 2 bad input or what cannot be exported.
    """
    from ..workflows.export import run

    sys.exit(run(**options))


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
    from ..workflows.serve import run

    sys.exit(run(**options))
