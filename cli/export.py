"""The commands export and serve."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from ..training.options import ExportOptions, ServeOptions
from .inputs import NET
from .options import command, mappings_option, options_of

FILE = click.Path(path_type=Path)


@command("export")
@click.argument("checkpoint", metavar="CKPT", type=NET)
@click.option("-o", "--out", metavar="FILE", type=FILE, required=True, help="The new file; for serving the new folder.")
@options_of(
    ExportOptions,
    *("form", "model", "recipe", "trust_source", "torch", "ema", "shapes", "batch", "dynamic", "images", "key_file"),
    *("enc_mode", "from_onnx", "classes"),
    classes="Class names for serving.  [default: what CKPT knows]",
)
@mappings_option
@options_of(ExportOptions, "json_file", "force")
def export(**options: Any) -> None:
    """Write CKPT as MindIR, as ONNX, for MindSpore Lite or MindSpore Serving, and run what was written.

    CKPT is a torch checkpoint, a MindSpore one, or safetensors. MODEL is one of these; a checkpoint of `msmigrate
    train` needs none:

    \b
      resnet50, resnet18(num_classes=10), …                    those that a recipe may name
      torchvision:convnext_tiny, timm:NAME                     converted first, as by convert-model
      FILE.py:FUNCTION, MODULE:FUNCTION                        a function that returns a MindSpore Cell

    CKPT may come from anyone. A source file that it names is imported only with --trust-source, and arguments of its
    model that are more than sizes, rates and switches are taken only from --model or --recipe.

    The net is exported in evaluation mode, and the file is loaded in a process of its own and run, MindIR in MindSpore,
    ONNX in onnxruntime. It is kept only if it computes what the net computes, and the net what the torch model does,
    within the rounding that was measured. Layers that MindSpore's ONNX exporter cannot write are written in an
    equivalent form.

    Exit code: 0 written, 1 it does not compute the same (nothing is written), 2 bad input or a model that cannot be
    exported.
    """
    from ..workflows.export import run

    sys.exit(run(**options))


@command("serve")
@click.argument("model_file", metavar="MODEL", type=NET)
@options_of(
    ServeOptions,
    *("model", "recipe", "trust_source", "ema", "shapes", "classes", "name", "host", "port", "batch", "wait"),
    *("max_request", "max_waiting", "key_file", "enc_mode"),
    model="The model of a checkpoint, as for export.  [default: the one that it names]",
    recipe="Model and transforms; for a MindIR only the transforms.",
    trust_source="Import the source that a checkpoint names.",
    key_file="The key of an encrypted MindIR.",
)
@mappings_option
def serve(**options: Any) -> None:
    """Answer REST requests for MODEL, a MindIR or a checkpoint, as MindSpore Serving does, on this machine.

    \b
      POST /model/NAME[/version/1]:predict         {"instances": [{"x": [[…]]}]}           tensors
      POST /model/NAME:classify_top1, :classify_top5   {"instances": [{"image": {"b64": "…"}}]}   image files
      GET  /health

    Images can be sent if a recipe says how they are prepared. Instances of concurrent requests run in one batch. The
    server has no authentication and no encryption: whoever reaches the port can send requests.

    Exit code: 0 stopped by Ctrl-C or SIGTERM, 2 bad input.
    """
    from ..workflows.export import serve as run

    sys.exit(run(**options))
