"""What reading finds in a script: which calls, of what, on which lines, and how surely they run."""

from __future__ import annotations

import ast
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from msmigrate.migrate.analyze.script_analysis import analyze_script
from script_uses import lines_of, names_of, use_of

Write = Callable[..., Path]


def test_every_call_of_the_big_script_is_listed(scripts: dict[str, Path]) -> None:
    analysis = analyze_script(scripts["imagenet"])
    found = names_of(analysis)
    assert {
        *("torch.optim.SGD", "torch.optim.RMSprop", "torch.optim.AdamW", "torch.nn.CrossEntropyLoss"),
        *("torch.optim.lr_scheduler.SequentialLR", "torch.optim.lr_scheduler.LinearLR", "torch.cuda.amp.GradScaler"),
        *("torch.cuda.amp.autocast", "torch.cuda.amp.GradScaler.scale", "torch.cuda.amp.GradScaler.unscale_"),
        *("torch.nn.utils.clip_grad_norm_", "torch.nn.parallel.DistributedDataParallel", "torch.utils.data.DataLoader"),
        *("torch.nn.SyncBatchNorm.convert_sync_batchnorm", "torch.optim.swa_utils.AveragedModel", "torch.save"),
        *("torch.load", "torchvision.datasets.ImageFolder", "torchvision.models.get_model", "torch.Tensor.backward"),
        *("torch.optim.Optimizer.step", "torch.optim.lr_scheduler.LRScheduler.step", "torch.Tensor.to"),
        *("torch.nn.Module.train", "torch.nn.Module.eval", "torch.nn.Module.state_dict", "torch.distributed.barrier"),
        *("torchvision.transforms.v2.RandomResizedCrop", "torchvision.transforms.v2.MixUp", "torch.inference_mode"),
        *("torch.optim.Optimizer.load_state_dict", "torch.utils.data.distributed.DistributedSampler.set_epoch"),
    } <= found
    assert analysis.files == ("train.py", "presets.py", "utils.py")
    assert not analysis.not_there and not analysis.unreadable


def test_every_attribute_of_torch_that_is_called_is_listed(scripts: dict[str, Path]) -> None:
    """Whatever stands in the text as a call of torch has to be in the list: nothing is lost on the way."""
    for script in scripts.values():
        analysis = analyze_script(script)
        for file in script.parent.glob("*.py"):
            tree = ast.parse(file.read_text(encoding="utf-8"))
            for node in ast.walk(tree):
                text = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
                if text.startswith(
                    ("torch.", "nn.", "F.", "optim.", "v2.", "transforms.", "datasets.", "autoaugment.")
                ):
                    assert any(use.file == file.name and use.line == node.lineno for use in analysis.uses), text


def test_branches_are_read_on_both_sides(scripts: dict[str, Path]) -> None:
    analysis = analyze_script(scripts["imagenet"])
    assert use_of(analysis, "torch.optim.SGD").certainty == "default"
    assert use_of(analysis, "torch.optim.AdamW").certainty == "option"
    assert use_of(analysis, "torch.optim.AdamW").condition == (
        'not (opt_name.startswith("sgd")) and opt_name == "adamw"'
    )
    assert use_of(analysis, "torch.nn.parallel.DistributedDataParallel").certainty == "perhaps"
    assert use_of(analysis, "torch.cuda.amp.GradScaler.scale").certainty == "option"  # None by default, and yet known
    assert use_of(analysis, "torchvision.transforms.v2.MixUp").certainty == "default"


@pytest.mark.parametrize(
    ("head", "call"),
    [
        ("import torch", "torch.nn.Conv2d"),
        ("import torch as t", "t.nn.Conv2d"),
        ("import torch.nn as nn", "nn.Conv2d"),
        ("from torch import nn", "nn.Conv2d"),
        ("from torch.nn import Conv2d", "Conv2d"),
        ("from torch.nn import Conv2d as C", "C"),
        ("from torch.nn import *", "Conv2d"),
        ("from torch.nn.modules.conv import Conv2d", "Conv2d"),
        ("import torch\nC = torch.nn.Conv2d", "C"),
        ("import torch\nlayers = {'conv': torch.nn.Conv2d}", "layers['conv']"),
        ("import torch\nlayers = dict(a=1)\nlayers['conv'] = torch.nn.Conv2d", "layers['conv']"),
        ("import torch\nkind = 'Conv2d'", "getattr(torch.nn, kind)"),
        ("import torch\nkind = 'Conv2d'", "torch.nn.__dict__[kind]"),
        ("def make():\n    import torch.nn as nn\n    return nn\nnn = make()", "nn.Conv2d"),
        ("try:\n    import torch\nexcept ImportError:\n    torch = None", "torch.nn.Conv2d"),
    ],
)
def test_names_are_followed_to_where_they_come_from(head: str, call: str, write: Write) -> None:
    analysis = analyze_script(write(f"{head}\nlayer = {call}(3, 8, 3)\n"))
    use = use_of(analysis, "torch.nn.Conv2d")
    assert use.row == "torch.nn.Conv2d"
    assert use.rewritten is not None and "in_channels=3, out_channels=8, kernel_size=3" in use.rewritten


@pytest.mark.parametrize(
    ("code", "line", "name"),
    [
        ("o = torch.optim.SGD(m.parameters(), lr=1)\no.step()", 3, "torch.optim.Optimizer.step"),
        ("def make(m):\n    return torch.optim.SGD(m)\nmake(m).zero_grad()", 4, "torch.optim.Optimizer.zero_grad"),
        ("s = torch.optim.lr_scheduler.StepLR(0, 1)\ns.step()", 3, "torch.optim.lr_scheduler.LRScheduler.step"),
        ("net = torch.nn.Linear(1, 2)\nnet(0).backward()", 3, "torch.Tensor.backward"),
        ("x = torch.zeros(3)\n(x * 2 + 1)[0].sum().backward()", 3, "torch.Tensor.backward"),
        ("a, b = torch.zeros(3), 2\na.backward()", 3, "torch.Tensor.backward"),
        ("def f(x: torch.Tensor):\n    x.backward()", 3, "torch.Tensor.backward"),
        ("def f(o: torch.optim.Optimizer):\n    o.step()", 3, "torch.optim.Optimizer.step"),
        ("class N(torch.nn.Module):\n    def forward(self, x):\n        return x.view(1, 2)", 4, "torch.Tensor.view"),
        ("class N(torch.nn.Module):\n    pass\nN().train()", 4, "torch.nn.Module.train"),
        ("class A(torch.nn.Module):\n    pass\nclass B(A):\n    pass\nB().eval()", 6, "torch.nn.Module.eval"),
        ("l = torch.utils.data.DataLoader([])\nfor x, y in l:\n    x.cuda()", 4, "torch.Tensor.cuda"),
        (
            "l = torch.utils.data.DataLoader([])\nfor i, (x, y) in enumerate(tqdm(l)):\n    y.to(0)",
            4,
            "torch.Tensor.to",
        ),
        ("m = torch.nn.Linear(1, 2)\nm = torch.nn.DataParallel(m)\nm.module.train()", 4, "torch.nn.Module.train"),
        (
            "class T:\n    def __init__(self):\n        self.o = torch.optim.SGD([])\n    def go(self):\n"
            "        self.o.step()",
            6,
            "torch.optim.Optimizer.step",
        ),
        ("o = torch.optim.SGD([])\ntorch.backends.cudnn.benchmark = True", 3, "torch.backends.cudnn.benchmark"),
        ("@torch.no_grad()\ndef f():\n    pass", 2, "torch.no_grad"),
        ("for epoch in range(3):\n    with torch.autocast('cuda'):\n        pass", 3, "torch.autocast"),
    ],
)
def test_what_an_object_is_is_inferred(code: str, line: int, name: str, write: Write) -> None:
    analysis = analyze_script(write(f"import torch\n{code}\n"))
    assert line in lines_of(analysis, name), [(use.torch, use.line) for use in analysis.uses]


@pytest.mark.parametrize(
    "code",
    [
        "texts = []\ntexts.append('a'.split())\n','.join(texts)",
        "values = load()\nvalues.mean().item()",  # a NumPy array has these, too
        "import logging\nlogging.getLogger().info('x')",
        "class A:\n    def step(self):\n        pass\nA().step()",
        "class N(torch.nn.Module):\n    def forward(self, x):\n        return x\nN().forward",
    ],
)
def test_what_is_no_call_of_torch_is_not_listed(code: str, write: Write) -> None:
    analysis = analyze_script(write(f"import torch\n{code}\n"))
    assert {use.torch for use in analysis.uses} <= {"torch.nn.Module"}


def test_files_of_the_folder_are_followed_and_others_are_named(write: Write) -> None:
    text = "import helpers\nimport numpy as np\nfrom gone import x\nhelpers.make()\n"
    path = write(text, helpers="import torch\ndef make():\n    return torch.nn.ReLU6()\n")
    analysis = analyze_script(path)
    assert analysis.files == ("train.py", "helpers.py")
    assert [(use.torch, use.place, use.certainty) for use in analysis.uses] == [
        ("torch.nn.ReLU6", "helpers.py:3", "default")
    ]
    assert analysis.not_there == (("numpy", "train.py", 2), ("gone", "train.py", 3))


def test_the_functions_of_torchvision_that_make_models_are_get_model(write: Write) -> None:
    analysis = analyze_script(write("from torchvision import models\nmodels.resnet18().eval()\nmodels.list_models()\n"))
    assert [(use.row, use.line) for use in analysis.uses] == [
        ("torchvision.models.get_model", 2),
        ("torch.nn.Module.eval", 2),
        (None, 3),
    ]


def test_packages_relative_imports_and_cycles(write: Write, tmp_path: Path) -> None:
    package = tmp_path / "parts"
    package.mkdir()
    (package / "__init__.py").write_text("from .net import make\n")
    (package / "net.py").write_text("from . import deep\nfrom .. import train\ndef make():\n    return deep.f()\n")
    (package / "deep.py").write_text("import torch\nimport parts.net\ndef f():\n    return torch.nn.ReLU6()\n")
    analysis = analyze_script(write("import parts\nparts.make()\n"))
    assert ("torch.nn.ReLU6", "parts/deep.py:4") in [(use.torch, use.place) for use in analysis.uses]


def test_a_helper_that_is_not_python_is_told_and_the_rest_is_read(write: Write) -> None:
    analysis = analyze_script(write("import torch\nimport helper\ntorch.nn.ReLU6()\n", helper="def f(:\n"))
    assert analysis.unreadable == ("helper.py:1: not Python: invalid syntax",)
    assert names_of(analysis) == {"torch.nn.ReLU6"}


def test_functions_that_nothing_calls_are_read(write: Write) -> None:
    analysis = analyze_script(
        write("import torch\ndef f(model):\n    return torch.optim.SGD(model.parameters(), lr=0.1)\n")
    )
    assert use_of(analysis, "torch.optim.SGD").certainty == "uncalled"


def test_nothing_is_run_and_reading_is_quick(scripts: dict[str, Path], write: Write, tmp_path: Path) -> None:
    analyze_script(write(f"import torch\nopen({str(tmp_path / 'ran')!r}, 'w')\nraise SystemExit\n"))
    assert not (tmp_path / "ran").exists()
    start = time.process_time()
    analyze_script(scripts["imagenet"])
    assert time.process_time() - start < 3  # the table is read by now


def test_recursion_and_growth_end(write: Write) -> None:
    code = """
import torch
def f(n):
    return f(n + 1) + f(n - 1)
def g(*a):
    return [g(*a, x) for x in a]
text = "a"
for _ in range(100):
    text = text + text
    number = 10 ** 10 ** 10
    words = [text] * 10 ** 9
    shift = 1 << 10 ** 9
    padded = "%999999999d" % 1
while True:
    f(1)
    g(1, 2, 3)
torch.nn.ReLU6()
"""
    start = time.process_time()
    assert "torch.nn.ReLU6" in names_of(analyze_script(write(code)))
    assert time.process_time() - start < 5
