"""The commands convert-ckpt and inspect."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import click

from .inputs import MINDSPORE_MODEL, NAME_MAP, OPTIMIZER, TORCH_MODEL
from .options import Size, command, json_option, mappings_option

FILE = click.Path(path_type=Path)


@command("convert-ckpt")
@click.argument("source", metavar="SRC")
@click.argument("destination", metavar="DST", required=False)
@click.option("--to", type=click.Choice(["torch", "mindspore"]), help="DST's framework.  [default: the other one]")
@click.option("--key", metavar="NAME", help="The key of the state_dict in the file, when several could be it.")
@click.option(
    "--model", metavar="SPEC", type=TORCH_MODEL, help="The torch model, to learn the class that owns each tensor."
)
@click.option(
    "--into",
    metavar="SPEC",
    type=MINDSPORE_MODEL,
    help="A MindSpore net that must be filled: every parameter, nothing left over.",
)
@click.option("--map", "name_map", metavar="FILE", type=NAME_MAP, help="Names of modules in MindSpore (YAML).")
@click.option("--write-map", metavar="FILE", type=FILE, help="Write a first --map for the net of --into, and no DST.")
@mappings_option
@click.option("--dtype", metavar="DTYPE", help="Cast floating-point tensors to float64, float32, float16 or bfloat16.")
@click.option("--training", is_flag=True, help="Convert optimizer, schedule, loss scale and moving average too.")
@click.option(
    "--optimizer",
    metavar="SPEC",
    type=OPTIMIZER,
    help="With --training: the optimizer's class in torch, as torch.optim.AdamW, where the file fits several; or a "
    "function that returns (model, optimizer), where the order of its parameters is not clear.",
)
@click.option("--max-shard-size", metavar="SIZE", type=Size(), help="Largest file in a folder.  [default: 5GB]")
@click.option("--dry-run", is_flag=True, help="Print what would happen to every tensor, and write nothing.")
@json_option("The plan, or the result")
@click.option("--force", is_flag=True, help="Replace DST when it exists.")
@click.option("--no-crc", "crc", is_flag=True, default=True, flag_value=False, help="Do not compare SRC's checksums.")
def convert_ckpt(source: str, destination: str | None, **options: Any) -> None:
    """Convert a checkpoint from torch to MindSpore, or back, every tensor accounted for.

    The format of SRC is recognized by its content, that of DST by its name: .ckpt is MindSpore's; .pth, .pt and .bin
    are torch's; .safetensors may be for either, and a name that ends with a slash is a folder of such files. By default
    a checkpoint of one framework becomes one of the other; with --to it may stay, in another format or --dtype.

    A tensor's new name depends on the class of the layer that owns it, as `msmigrate mappings` lists them. A .ckpt
    also stores what only torch has, so that converting back is complete; for one that MindSpore saved, names and
    shapes decide, or --model. Neither framework is loaded, and nothing in the checkpoint is run.

    A net whose modules have other names needs a --map: pairs of a pattern over torch's module paths and the path in
    MindSpore, which parity-step takes and writes too. --write-map guesses one by order and shapes; check it.

    Where SRC has checksums, as torch's zip has of every storage, they are compared with what is copied: a single bit
    that differs is bad input, unless you take the bytes as they are, with --no-crc.

    SPEC is torchvision:NAME (--model), msmigrate:NAME (--into), FILE.py:FUNCTION or MODULE:FUNCTION, with constant
    arguments if need be: 'torchvision:resnet50(num_classes=10)'. Naming a function runs it, in a process of its own.

    Exit code: 0 converted, 2 bad input; the destination is then as it was before.
    """
    gc.disable()  # collecting garbage would take a tenth of a process this short

    if destination is None and not options["dry_run"] and options["write_map"] is None:
        raise click.UsageError("Missing argument 'DST' (only --dry-run goes without).")
    from ..workflows.convert_ckpt import run_convert

    run_convert(source, destination, **options)
    gc.freeze()  # nor on the way out


@command("inspect")
@click.argument("path", metavar="FILE")
@click.option("--key", metavar="NAME", help="The key of the state_dict in the file, when several could be it.")
@mappings_option
@click.option("--crc", is_flag=True, help="Read all of FILE and compare its checksums.")
@click.option("--all", "whole", is_flag=True, help="List all tensors, not the first twenty.")
@json_option("All tensors")
def inspect(path: str, **options: Any) -> None:
    """Show what a checkpoint holds: its tensors, their layers, and everything else, without loading or running it.

    FILE is any that convert-ckpt reads: of torch, of MindSpore, safetensors, or a folder of files with an index.

    For a checkpoint of `msmigrate train` whose recipe names a source file, it shows that file, whether it has changed
    since, and the --trust-source option with which predict, eval, export and serve import it.

    Exit code: 0 printed, 2 a file that cannot be read, or that does not match its checksums.
    """
    gc.disable()

    from ..workflows.convert_ckpt import run_inspect

    run_inspect(path, **options)
    gc.freeze()
