"""The options of export and serve: each is declared here, for the command line and for the library."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from ..errors import BadInput
from ..option_fields import SHAPES, Option
from ..training.options import NetOptions

FORMS = ("mindir", "onnx", "lite", "serving", "air")
ENC_MODES = ("AES-GCM", "AES-CBC", "SM4-CBC")


@dataclass(frozen=True, kw_only=True)
class NetChoice(NetOptions):
    """Which net, and the inputs that it takes; the checkpoint may be a MindIR."""

    torch: Annotated[
        str | None,
        Option("The torch model of a FILE.py:FUNCTION, to compare with.", metavar="SPEC", reads="torch model"),
    ] = None
    shapes: Annotated[tuple[str, ...], SHAPES] = ()
    classes: Annotated[
        Path | None,
        Option("Class names: one a line, or a tree of class folders.", metavar="FILE|DIR", reads="file or folder"),
    ] = None
    key_file: Annotated[
        Path | None, Option("Encrypt the MindIR with the key in this file.", metavar="FILE", reads="key")
    ] = None
    enc_mode: Annotated[str | None, Option("[default: AES-GCM]", choices=ENC_MODES)] = None

    @property
    def encryption(self) -> str:
        """The mode of encryption of a MindIR with a key."""
        return self.enc_mode or ENC_MODES[0]


@dataclass(frozen=True, kw_only=True)
class ExportOptions(NetChoice):
    """What is exported, and as what. Raises BadInput for options that do not fit together."""

    out: Path
    form: Annotated[str, Option("The file format.", flag="format", choices=FORMS)] = FORMS[0]
    batch: Annotated[int | None, Option("Examples at a time.  [default: 1, or as --input has it]", least=1)] = None
    dynamic: Annotated[bool, Option("Any size of batch; refused where two sizes do not run.")] = False
    images: Annotated[
        Path | None,
        Option("Compare on these images.  [default: random numbers]", metavar="DIR|FILE", reads="file or folder"),
    ] = None
    from_onnx: Annotated[bool, Option("Make the lite model from ONNX instead of MindIR.")] = False
    json_file: Annotated[Path | None, Option("What was found", flag="json", stdout=True)] = None
    force: Annotated[bool, Option("Replace FILE when it exists.")] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.key_file is None:
            if self.enc_mode is not None:
                raise BadInput("--enc-mode says how a MindIR is encrypted, and --key-file with which key: give both")
        elif self.form != "mindir":
            raise BadInput(f"--key-file encrypts MindIR; --format {self.form} has no encryption")
        if self.classes is not None and self.form != "serving":
            raise BadInput("--classes names the classes of --format serving")
        if self.from_onnx and self.form != "lite":
            raise BadInput("--from-onnx says what --format lite is made from")
        if self.dynamic and self.form in ("lite", "serving"):
            raise BadInput(f"--dynamic is for --format mindir and onnx; {self.form} takes batches of --batch N")

    @property
    def net_form(self) -> str:
        """What MindSpore writes: mindir or onnx, of which the other forms are made."""
        return "onnx" if self.form == "onnx" or self.from_onnx else "mindir"


@dataclass(frozen=True, kw_only=True)
class ServeOptions(NetChoice):
    """What is served, where, and how requests are gathered into batches. Raises BadInput."""

    name: Annotated[str | None, Option("The model's name in requests.  [default: the name of the file]")] = None
    host: Annotated[str, Option("The address to listen on.")] = "127.0.0.1"
    port: Annotated[int, Option("The port to listen on; 0: any free one.", least=0, most=65535)] = 1500
    batch: Annotated[int, Option("Most instances run at once.", least=1, most=1024)] = 8
    wait: Annotated[float, Option("Milliseconds to wait for a batch to fill.", least=0)] = 2.0
    max_request: Annotated[float, Option("Largest request, in MB.", least=0.001, most=2000)] = 16.0
    max_waiting: Annotated[int, Option("Most instances that may wait.", least=1)] = 256
