"""What may stand in a checkpoint's pickle, and what makes it hostile, all of it or but for what --key leads to."""

from __future__ import annotations

import argparse
import array
import collections
import contextlib
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import io
import ipaddress
import itertools
import logging
import math
import pathlib
import pickle
import random
import re
import subprocess
import sys
import time
import types
import typing
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msmigrate.errors import BadCheckpoint
from msmigrate.migrate.checkpoint import convert, inspect_file
from msmigrate.migrate.checkpoint.formats import restricted_pickle
from msmigrate.migrate.checkpoint.formats.pickle_names import is_refused
from picklescan_names import DANGEROUS, NAMES, WHOLE
from tiny_checkpoints import floats, group, integer, mapping, named, rebuilt, text, write
from tiny_legacy import blocks, legacy_tensor, write_legacy

WEIGHT = floats(2)


def file(folder: Path, *entries: tuple[str, bytes], legacy: bool = False) -> Path:
    """A checkpoint whose weights stand under `model`, and beside them these opcodes."""
    tensor = legacy_tensor(WEIGHT, "0") if legacy else rebuilt(WEIGHT, "0")
    body = mapping([("model", mapping([("own.a", tensor)])), *entries])
    if legacy:
        return write_legacy(folder / "x.pth", body, blocks([WEIGHT]))
    return write(folder / "x.pth", body, {"0": WEIGHT.content})


def stacked(module: str, name: str) -> bytes:
    return text(module) + text(name) + b"\x93"


USES: dict[str, Callable[[bytes], bytes]] = {
    "mentioned": lambda name: name,
    "called": lambda name: name + group(text("a"), text("b")) + b"R",
    "made": lambda name: name + b")\x81" + mapping([("a", integer(1))]) + b"b",
}


@pytest.mark.parametrize("use", USES)
def test_what_picklescan_calls_dangerous_is_refused(tmp_path: Path, use: str) -> None:
    assert len(" ".join(DANGEROUS.values()).split()) + len(WHOLE.split()) == 93
    for module, name in NAMES:
        path = file(tmp_path, ("evil", USES[use](stacked(module, name))))
        for reading in (inspect_file.inspect_file, convert.make_plan):
            with pytest.raises(BadCheckpoint) as error:
                reading(path)
            assert "which no checkpoint needs and attacks use" in str(error.value), (module, name)
            assert "--key model reads only what is under that key" in str(error.value)


@pytest.mark.parametrize("legacy", [False, True])
def test_the_key_of_what_does_not_hold_it_gets_past(tmp_path: Path, legacy: bool) -> None:
    evil = named("logging", "FileHandler") + group(text("x")) + b"R"
    path = file(tmp_path, ("evil", evil), ("optimizer", mapping([("state", b"}"), ("hook", evil)])), legacy=legacy)
    result = convert.convert(path, tmp_path / "x.ckpt", key="model")
    assert [entry.name for entry in result.plan.written] == ["own.a"]
    assert "do not load this file in torch" in result.plan.checkpoint.others["logging.FileHandler"]
    assert result.plan.checkpoint.training is None or "optimizer" not in result.plan.checkpoint.training
    facts = inspect_file.inspect_file(path, "model")
    assert facts.checkpoint is not None and list(facts.checkpoint.tensors) == ["own.a"]


EVIL = named("venv", "create") + group(text("x")) + b"R"
HIDDEN = {
    "an entry": mapping([("own.a", rebuilt(WEIGHT, "0")), ("b", EVIL)]),
    "deep in an entry": mapping([("own.a", rebuilt(WEIGHT, "0")), ("b", b"](" + group(EVIL, b"N") + b"e")]),
    "a state that a dict does not keep": mapping([("own.a", rebuilt(WEIGHT, "0"))]) + EVIL + b"b",
    "an item that an object does not keep": mapping(
        [("own.a", rebuilt(WEIGHT, "0")), ("b", named("collections", "deque") + b")R" + EVIL + b"a")]
    ),
    "an entry of an object": mapping(
        [("own.a", rebuilt(WEIGHT, "0")), ("b", named("mypkg", "Config") + b")R" + text("k") + EVIL + b"s")]
    ),
    "what makes the values of a dict": named("collections", "defaultdict")
    + group(named("venv", "create"))
    + b"R"
    + text("own.a")
    + rebuilt(WEIGHT, "0")
    + b"s",
    "the first of two states": mapping(
        [("own.a", rebuilt(WEIGHT, "0")), ("b", named("mypkg", "Config") + b")R" + EVIL + b"bNb")]
    ),
    "a hook of the tensor": mapping(
        [("own.a", rebuilt(WEIGHT, "0").replace(named("collections", "OrderedDict") + b")R", EVIL))]
    ),
    "an argument of a partial": mapping(
        [
            ("own.a", rebuilt(WEIGHT, "0")),
            ("b", named("functools", "partial") + group(named("mypkg", "f")) + b"R" + group(EVIL) + b"b"),
        ]
    ),
}


@pytest.mark.parametrize("place", HIDDEN)
def test_the_key_of_what_holds_it_does_not(tmp_path: Path, place: str) -> None:
    clean = mapping([("own.a", rebuilt(WEIGHT, "0"))])
    path = write(tmp_path / "x.pth", mapping([("model", HIDDEN[place]), ("ema", clean)]), {"0": WEIGHT.content})
    with pytest.raises(BadCheckpoint, match=r"names venv\.create, which no checkpoint needs"):
        convert.make_plan(path, key="model")
    assert len(convert.make_plan(path, key="ema").written) == 1
    with pytest.raises(BadCheckpoint, match=r"names venv\.create, .* --key ema reads only what is under that key"):
        convert.make_plan(path)


def test_the_command_says_it_in_a_line(tmp_path: Path) -> None:
    path = file(tmp_path, ("evil", EVIL))
    for command in (["inspect", path], ["convert-ckpt", path, tmp_path / "x.ckpt"]):
        line = [sys.executable, "-m", "msmigrate", *map(str, command)]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        assert "its pickle names venv.create" in done.stderr
        done = subprocess.run([*line, "--key", "model"], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


# What people keep beside the weights -------------------------------------------------------------------------------


class Color(enum.Enum):
    RED = 1


class Bits(enum.IntFlag):
    ONE = 1
    TWO = 2


@dataclasses.dataclass
class Config:
    rate: float = 0.1
    color: Color = Color.RED
    layers: list[int] = dataclasses.field(default_factory=list)


class Pair(typing.NamedTuple):
    a: int
    b: str


def activation(x: float) -> float:
    return x


class Layer:
    def hook(self) -> None: ...


HONEST: dict[str, Any] = {
    "arguments": argparse.Namespace(lr=0.1, out=pathlib.Path("a/b"), when=datetime.date(2024, 1, 2)),
    "namespaces": types.SimpleNamespace(a=1),
    "configuration": [Config(), Color.RED, Bits.ONE | Bits.TWO, Pair(1, "b")],
    "paths": [pathlib.Path("a"), pathlib.PurePosixPath("b"), pathlib.PureWindowsPath("c")],
    "times": [
        *(datetime.datetime(2024, 1, 2, tzinfo=datetime.timezone.utc), datetime.timedelta(3), datetime.time(4)),
        time.gmtime(0),
    ],
    "numbers": [decimal.Decimal("1.5"), fractions.Fraction(1, 3), 1 + 2j, array.array("f", [1.0])],
    "collections": [
        *(collections.OrderedDict(a=1), collections.defaultdict(list, a=[1]), collections.Counter("aab")),
        *(collections.deque([1, 2], maxlen=3), collections.ChainMap({"a": 1}), collections.UserDict(a=1)),
    ],
    "plain": [
        {1},
        frozenset({2}),
        bytearray(b"a"),
        b"\xff",
        range(3),
        slice(1, 2),
        int,
        type(None),
        ...,
        NotImplemented,
    ],
    "partial": [
        functools.partial(activation, 1),
        functools.partial(Layer),
        functools.partial(functools.partial(Layer)),
    ],
    "functions": [activation, Layer, Layer.hook, Layer().hook, math.sqrt],
    "types": [typing.Any, typing.List[int], typing.Dict[str, typing.Any], typing.Optional[int], list[int]],  # noqa: UP006, UP045
    "text": [re.compile("a+", re.IGNORECASE), io.StringIO("a"), io.BytesIO(b"a"), uuid.UUID(int=1)],
    "others": [logging.getLogger("a"), contextlib.nullcontext(), random.Random(1), itertools.count(3)],
    "addresses": ipaddress.ip_address("127.0.0.1"),
    "numpy": [
        *(
            np.arange(3.0),
            np.float32(1),
            np.int64(2),
            np.bool_(True),
            np.dtype("f4"),
            np.float32,
            np.datetime64("2024"),
        ),
        *(
            np.array(["a"], object),
            np.ma.array([1, 2], mask=[0, 1]),
            np.zeros(1, [("a", "i4")]),
            np.asfortranarray([[1]]),
        ),
    ],
    "random numbers": [np.random.default_rng(1), np.random.RandomState(1), np.random.MT19937(1), random.getstate()],
}


@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize("name", HONEST)
def test_what_people_keep_is_no_attack(name: str, protocol: int) -> None:
    restricted_pickle.load(pickle.dumps(HONEST[name], protocol))


# As they stand in files of torch 2.14, timm 1.0, transformers 5.23, lightning 2.6, omegaconf 2.4, mmengine 0.10,
# ultralytics 8.4 (and 8.2, with dill), torchmetrics 1.9, yacs, easydict, ml_collections and regex.
SEEN = """
torch.FloatStorage torch.storage.UntypedStorage torch.cuda.HalfStorage torch.device torch.float32 torch.Size
torch.bfloat16 torch.strided torch.per_tensor_affine torch._utils._rebuild_tensor_v2 torch._utils._rebuild_parameter
torch._utils._rebuild_qtensor torch._utils._rebuild_sparse_tensor torch._utils._rebuild_meta_tensor_no_storage
torch._tensor._rebuild_from_type_v2 torch.serialization._get_layout torch.nn.parameter.Parameter torch._C.Generator
torch.nn.modules.conv.Conv2d torch.nn.modules.linear.NonDynamicallyQuantizableLinear torch.nn.functional.relu
torch._C._nn.gelu torch._C._special.special_expit torch.functional.einsum torch.nn.init.xavier_uniform_ torch.relu
torch.nn.utils.weight_norm.WeightNorm torch.nn.utils.spectral_norm.SpectralNormStateDictHook
torch.nn.parallel.distributed.DistributedDataParallel torch.optim.adamw.AdamW torch.optim.swa_utils.AveragedModel
torch.optim.lr_scheduler.OneCycleLR torch.optim.lr_scheduler.OneCycleLR._annealing_cos
torch.amp.grad_scaler.GradScaler torch.amp.grad_scaler._refresh_per_optimizer_state
torch.fx.graph_module.reduce_graph_module torch._dynamo.eval_frame.OptimizedModule
torch._dynamo.convert_frame.ConvertFrameAssert torch._dynamo.hooks.Hooks torch._TorchCompileInductorWrapper
torch.utils.data.dataloader.DataLoader torch.utils.data._utils.collate.default_collate
torch.ao.quantization.qconfig.QConfig torch.ao.quantization.fake_quantize.FusedMovingAvgObsFakeQuantize
torch.distributed.fsdp.fully_sharded_data_parallel.FullyShardedDataParallel torch.distributed.tensor.DTensor
torchvision.models.resnet.ResNet torchvision.ops.boxes.box_iou torchvision.transforms.transforms.Compose
timm.models.vision_transformer.VisionTransformer timm.layers.norm_act.BatchNormAct2d
transformers.models.bert.modeling_bert.BertModel transformers.training_args.TrainingArguments
pytorch_lightning.utilities.parsing.AttributeDict lightning.fabric.utilities.data.AttributeDict
omegaconf.dictconfig.DictConfig omegaconf.base.ContainerMetadata omegaconf.nodes.AnyNode
mmengine.config.config.ConfigDict mmengine.logging.history_buffer.HistoryBuffer
mmengine.logging.history_buffer.HistoryBuffer.mean ultralytics.nn.tasks.DetectionModel
ultralytics.utils.IterableSimpleNamespace dill._dill._load_type models.yolo.Model models.common.Conv
utils.autoanchor.AutoAnchor torchmetrics.classification.accuracy.MulticlassAccuracy
torchmetrics.utilities.data.dim_zero_sum yacs.config.CfgNode easydict.EasyDict
ml_collections.config_dict.config_dict.ConfigDict regex._regex.compile pandas.core.frame.DataFrame
pandas.core.internals.managers.BlockManager pandas._libs.internals._unpickle_block
sklearn.preprocessing._data.StandardScaler scipy.sparse._csr.csr_matrix PIL.Image.Image
numpy.core.multiarray._reconstruct numpy._core.multiarray._reconstruct numpy._core.multiarray.scalar numpy.ndarray
numpy._core.numeric._frombuffer numpy.random._pickle.__randomstate_ctor numpy.random._mt19937.MT19937 numpy.mean
numpy.core._multiarray_umath.exp __main__.Net __main__.hook code.net.Model platform.config.Config
"""


@pytest.mark.parametrize("full", SEEN.split())
def test_names_seen_in_files_may_stand(full: str) -> None:
    parts = full.split(".")
    first = next((at for at, part in enumerate(parts) if part.lstrip("_")[:1].isupper() and at), len(parts) - 1)
    first = len(parts) - 1 if full.startswith(("torch._C.", "torch._T")) else first
    assert not is_refused(".".join(parts[:first]), ".".join(parts[first:]))


# What no list of attacks has: of Python's own modules, of torch, of NumPy, of packages that are there to act, and of
# others through what some module has imported.
ACTING = """
wave:open glob:glob shelve:open ast:literal_eval zipapp:create_archive logging:getLogger.manager
logging.handlers:SocketHandler wsgiref.simple_server:make_server xml.etree.ElementTree:parse mailbox:mbox dbm:open
fileinput:input collections:namedtuple pathlib:Path.write_text re:compile asyncio.subprocess:run
concurrent.futures.process:ProcessPoolExecutor typing:get_type_hints enum:Enum._generate_next_value_
dataclasses:make_dataclass contextlib:ExitStack torch:from_file torch:_C.PyTorchFileWriter torch._C:PyTorchFileReader
torch:hub.load torch._C._distributed_c10d:TCPStore torch.distributed:FileStore torch.storage:os.system
torch.utils.tensorboard.writer:SummaryWriter torch.storage:UntypedStorage.from_file
torch.nn.modules.module:torch.load torch.testing._internal.common_utils:run_tests
torch.distributed.elastic.multiprocessing.api:MultiprocessContext torch._utils:_import_dotted_name numpy:fromfile
numpy.core._multiarray_umath:fromfile numpy.lib._datasource:DataSource numpy.core:_ufunc_reconstruct numpy:memmap
numpy:vectorize numpy.ctypeslib:load_library cloudpickle:loads dill._dill:_create_function joblib.numpy_pickle:load
paramiko:Client msmigrate.training.models.mindspore_models:build huggingface_hub:hf_hub_download mypkg.tools:os.system
timm.models:torch.hub.load transformers:subprocess.run
"""


@pytest.mark.parametrize("full", ACTING.split())
def test_what_acts_is_refused_though_no_list_names_it(full: str) -> None:
    assert is_refused(*full.split(":"))
