"""The options of train, eval, predict, export and serve: each is declared here, for command line and library."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from ..errors import BadInput
from ..input_files import unreadable
from ..option_fields import SHAPES, Option, check

TARGETS = ("Ascend", "GPU", "CPU")  # the first that can be used is the default
DEVICE = r"cpu|(cuda|npu)(:\d{1,3})?"  # a device of torch's by name
SEVERAL_MACHINES_PORT = 8118  # msrun's own default; all machines have to name the same


@dataclass(frozen=True)
class Spread:
    """How many processes and machines a job uses; `port` is None for a free one."""

    nproc: Annotated[int, Option("Processes on this machine.", least=1)] = 1
    nnodes: Annotated[int, Option("Machines.", least=1)] = 1
    node_rank: Annotated[int, Option("Which of them this is.", least=0)] = 0
    master_addr: Annotated[str, Option("The first machine's address.")] = "127.0.0.1"
    master_port: Annotated[
        int | None, Option("[default: a free one, 8118 on several machines]", least=1, most=65535)
    ] = None

    def check(self) -> None:
        """Raise BadInput for a spread that cannot be started."""
        if min(self.nproc, self.nnodes) < 1:
            raise BadInput(
                f"--nproc {self.nproc} --nnodes {self.nnodes}: at least one process on one machine is needed"
            )
        if not 0 <= self.node_rank < self.nnodes:
            raise BadInput(
                f"--node-rank {self.node_rank}: with --nnodes {self.nnodes} the machines are numbered 0 to "
                f"{self.nnodes - 1}"
            )
        if self.nnodes > 1 and self.master_addr in ("127.0.0.1", "localhost", "::1"):
            raise BadInput(
                f"--master-addr {self.master_addr} is a different machine on each of the {self.nnodes}: give the "
                "address under which the others reach the first one"
            )

    @property
    def processes(self) -> int:
        """The number of processes on all machines together."""
        return self.nproc * self.nnodes

    @property
    def ranks(self) -> range:
        """The ranks of the processes on this machine."""
        return range(self.node_rank * self.nproc, (self.node_rank + 1) * self.nproc)

    @property
    def port(self) -> int:
        """The port of the scheduler: the one given, else a free one, or 8118 where other machines have to know it."""
        if self.master_port is not None:
            return self.master_port
        if self.nnodes > 1:
            return SEVERAL_MACHINES_PORT
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            return int(free.getsockname()[1])


ALONE = Spread()


@dataclass(frozen=True, kw_only=True)
class TrainOptions(Spread):
    """The options of train. Raises BadInput for a value out of range, and for two options that exclude each other."""

    recipe: Path | None = None
    out: Annotated[Path | None, Option("Where the run's files go.  [default: runs/RECIPE]", metavar="DIR")] = None
    target: Annotated[
        str | None,
        Option(
            "The device to train on.  [default: the recipe's, else what is there]",
            choices=TARGETS,
            any_case=True,
        ),
    ] = None
    mode: Annotated[
        Literal["graph", "pynative"] | None,
        Option("[default: the recipe's, else graph]", choices=("graph", "pynative")),
    ] = None
    device_id: Annotated[int | None, Option("The first device of this machine.  [default: 0]", least=0)] = None
    seed: Annotated[int | None, Option("Instead of the recipe's seed.", least=0, most=2**31 - 1)] = None
    epochs: Annotated[int | None, Option("Instead of the recipe's train.epochs.", least=1)] = None
    amp: Annotated[str | None, Option("Mixed precision instead of the recipe's.", choices=("O0", "O1", "O2", "O3"))] = (
        None
    )
    amp_dtype: Annotated[
        str | None, Option("The dtype of --amp.  [default: float16]", choices=("float16", "bfloat16"))
    ] = None
    max_steps: Annotated[int | None, Option("Stop after this many optimizer steps.", least=1)] = None
    resume: Annotated[
        bool, Option("Continue from the newest undamaged checkpoint in --out; without one start anew.")
    ] = False
    continue_from: Annotated[
        Path | None, Option("A torch training checkpoint to begin a run with.", metavar="CKPT", reads="checkpoint")
    ] = None
    parity_report: Annotated[
        Path | None,
        Option("A passing report of the same recipe opens the gate.", metavar="FILE", reads="parity report"),
    ] = None
    skip_parity: Annotated[bool, Option("Train on an unproven step; the run's log will say so.")] = False
    dry_run: Annotated[bool, Option("Print the whole plan and start nothing.")] = False
    json_file: Annotated[Path | None, Option("The plan or the summary", flag="json", stdout=True)] = None

    def __post_init__(self) -> None:
        if self.parity_report is not None and self.skip_parity:
            raise BadInput("--parity-report gives a proof and --skip-parity does without one: leave one out")
        if self.continue_from is not None and (why := unreadable(self.continue_from)) is not None:
            raise BadInput(f"--continue-from: {why}")
        if self.amp_dtype is not None and self.amp is None:
            raise BadInput("--amp-dtype is the dtype of --amp: give both, or set amp.dtype in the recipe")
        self.check()
        check(self)

    @property
    def spread(self) -> Spread:
        """How many processes and machines the run uses."""
        return Spread(self.nproc, self.nnodes, self.node_rank, self.master_addr, self.master_port)


@dataclass(frozen=True, kw_only=True)
class NetOptions:
    """Which net: a checkpoint, and the model that it is of. Raises BadInput for a value of another type.

    model: one that a recipe may name, `torchvision:NAME(…)`, or `FILE.py:FUNCTION` that makes a MindSpore Cell.
    trust_source: `FILE@sha256:DIGEST` of a source that the checkpoint names.
    """

    checkpoint: Path
    model: Annotated[
        str | None,
        Option("The net of CKPT, see below.  [default: what CKPT says]", metavar="MODEL", reads="exported model"),
    ] = None
    recipe: Annotated[
        Path | None, Option("Model and transforms, instead of --model.", metavar="RECIPE", reads="recipe")
    ] = None
    trust_source: Annotated[
        str | None, Option("Import the source that CKPT names; inspect shows it.", metavar="FILE@sha256:…")
    ] = None
    ema: Annotated[bool, Option("The moving average in the checkpoint instead of its weights.")] = False

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True, kw_only=True)
class InferenceOptions(NetOptions):
    """How a net is run on images."""

    batch: Annotated[int | None, Option("[default: the recipe's eval_batch]", least=1)] = None
    target: Annotated[str | None, Option("[default: what is there]", choices=TARGETS, any_case=True)] = None

    @property
    def device(self) -> str | None:
        """The target as MindSpore writes it."""
        return next((each for each in TARGETS if each.lower() == (self.target or "").lower()), None)


@dataclass(frozen=True, kw_only=True)
class EvalOptions(InferenceOptions):
    """What is evaluated; data: a folder of images, or a source that recipes name."""

    data: str | None = None
    out: Annotated[Path | None, Option("Write report.json, predictions.json, confusion.png here.", metavar="DIR")] = (
        None
    )
    json_file: Annotated[Path | None, Option("The report", flag="json", stdout=True)] = None


@dataclass(frozen=True, kw_only=True)
class PredictOptions(InferenceOptions):
    """What is predicted; images: files, and folders of files, or a file of arrays for a net that takes those."""

    images: tuple[str, ...]
    classes: Annotated[
        Path | None,
        Option("Class names: one a line, or a tree of class folders.", metavar="FILE|DIR", reads="file or folder"),
    ] = None
    top: Annotated[int, Option("How many classes to list.", least=1)] = 5
    out: Annotated[Path | None, Option("For arrays: where the outputs go, as .npz.", metavar="FILE")] = None
    json_file: Annotated[Path | None, Option("The predictions", flag="json", stdout=True)] = None


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
