"""The rewritten calls: every argument written out, literals translated, expressions kept."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from msmigrate.mappings import table
from msmigrate.mappings.verbs import VERBS
from msmigrate.migrate.analyze.script_analysis import Use, analyze_script
from script_uses import use_of

Write = Callable[..., Path]


def rewritten(code: str, name: str, write: Write) -> Use:
    """The use of one thing in a few lines."""
    return use_of(analyze_script(write(f"import torch\nimport torch.nn.functional as F\n{code}\n")), name)


@pytest.mark.parametrize(
    ("code", "name", "args", "positional"),
    [
        ("torch.nn.Conv2d(3, 8, 3, 2, 1, bias=False)", "torch.nn.Conv2d", {"bias": False}, (3, 8, 3, 2, 1)),
        ("torch.nn.BatchNorm2d(8, momentum=0.1)", "torch.nn.BatchNorm2d", {"momentum": 0.1}, (8,)),
        ("torch.nn.CrossEntropyLoss(label_smoothing=0.1)", "torch.nn.CrossEntropyLoss", {"label_smoothing": 0.1}, ()),
    ],
)
def test_literals_are_translated_by_the_table(
    code: str, name: str, args: dict, positional: tuple, write: Write
) -> None:
    use = rewritten(code, name, write)
    call = table.translate(name, args, positional)
    words = ", ".join(f"{key}={value!r}" for key, value in call.kwargs.items())
    assert use.rewritten == f"{call.target}({words})"


@pytest.mark.parametrize(
    ("code", "name", "said"),
    [
        ("torch.nn.BatchNorm2d(n, momentum=m)", "torch.nn.BatchNorm2d", "num_features=n, eps=1e-05, momentum=1 - m"),
        ("torch.nn.BatchNorm2d(n, momentum=a + b)", "torch.nn.BatchNorm2d", "momentum=1 - (a + b)"),
        ("torch.nn.Conv2d(a, b, k, padding=p)", "torch.nn.Conv2d", "pad_mode='pad', padding=(p, p, p, p)"),
        ("torch.nn.Conv2d(a, 4 * b, 3)", "torch.nn.Conv2d", "in_channels=a, out_channels=4 * b, kernel_size=3"),
        ("torch.nn.MaxPool2d(k)", "torch.nn.MaxPool2d", "kernel_size=k, stride=k"),
        ("x = torch.zeros(2)\nx.view(x.size(0), -1)", "torch.Tensor.view", "-1)"),
        ("F.relu(F.max_pool2d(x, 2))", "torch.nn.functional.relu", "input=mindspore.ops.max_pool2d("),
        ("o = torch.optim.SGD(p, lr=0.1 * s)\n", "torch.optim.SGD", "SGD(p, lr=0.1 * s, momentum=0, "),
        ("torch.optim.SGD(p, lr=0.1, differentiable=d)", "torch.optim.SGD", "SGD(p, lr=0.1"),
        ("torch.zeros(y.shape)", "torch.zeros", "size=y.shape, "),
        ("torch.ones(y.shape[1:])", "torch.ones", "shape=y.shape[1:], "),
        ("torch.zeros(n, y.shape[0])", "torch.zeros", "size=(n, y.shape[0]), "),
        ("torch.zeros(y.shape[0])", "torch.zeros", "size=(y.shape[0],), "),
        ("torch.zeros(tuple(s))", "torch.zeros", "size=tuple(s), "),
        ("torch.zeros(tuple(s)[0])", "torch.zeros", "size=(tuple(s)[0],), "),
        ("torch.nn.Sequential()", "torch.nn.Sequential", "SequentialCell()"),
        (
            "torch.nn.Sequential(torch.nn.ReLU(), net)",
            "torch.nn.Sequential",
            "SequentialCell(mindspore.nn.ReLU(), net)",
        ),
    ],
)
def test_expressions_stay(code: str, name: str, said: str, write: Write) -> None:
    use = rewritten(code, name, write)
    assert use.rewritten is not None and said in use.rewritten, (use.rewritten, use.notes)


def test_schedules_inside_a_schedule_are_translated_too(write: Write) -> None:
    code = """
S = torch.optim.lr_scheduler
opt = torch.optim.SGD([], lr=0.1)
a = S.LinearLR(opt, start_factor=0.1, total_iters=w)
b = S.CosineAnnealingLR(opt, T_max=90)
S.SequentialLR(opt, schedulers=[a, b], milestones=[w])
"""
    use = rewritten(code, "torch.optim.lr_scheduler.SequentialLR", write)
    assert use.rewritten is not None
    assert "LinearLR', {'start_factor': 0.1, 'end_factor': 1.0, 'total_iters': w})" in use.rewritten
    assert "milestones=[w]" in use.rewritten


@pytest.mark.parametrize(
    ("code", "name", "way", "said"),
    [
        ("torch.nn.Conv2d(3, 8, kernel=3)", "torch.nn.Conv2d", "by hand", "did you mean 'kernel_size'?"),
        ("torch.nn.Conv2d(3, 8)", "torch.nn.Conv2d", "by hand", "needs the argument 'kernel_size'"),
        ("torch.optim.SGD(p, lr=1, momemtum=0)", "torch.optim.SGD", "by hand", "did you mean 'momentum'?"),
        ("torch.optim.SGD(p, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)", "torch.optim.SGD", "by hand", "by position"),
        ("torch.optim.SGD(p, differentiable=True)", "torch.optim.SGD", "missing", "differentiable=True has no"),
        ("torch.optim.SGD(p, differentiable=d)", "torch.optim.SGD", "composed", "only False has a counterpart"),
        ("torch.nn.Conv2d(*sizes)", "torch.nn.Conv2d", "direct", "are unpacked from *sizes: write them out"),
        ("torch.nn.Conv2d(3, 8, 3, padding=p)", "torch.nn.Conv2d", "direct", "written here for a number other than 0"),
        (
            "import torchvision\ntorchvision.transforms.Normalize(0.5, 0.5)",
            "torchvision.transforms.Normalize",
            "missing",
            "[0.5, 0.5, 0.5]",
        ),
        ("torch.frobnicate(1)", "torch.frobnicate", "no row", ""),
    ],
)
def test_what_does_not_cross_is_told(code: str, name: str, way: str, said: str, write: Write) -> None:
    use = rewritten(code, name, write)
    assert use.way == way
    assert any(said in note for note in use.notes) or not said, use.notes


def test_devices_are_left_out_and_methods_stay_methods(write: Write) -> None:
    code = "x = torch.zeros(2)\ndevice = torch.device('cuda')\ny = x.to(device, non_blocking=True)\n"
    use = rewritten(code, "torch.Tensor.to", write)
    assert (use.rewritten, use.notes) == ("x", ("Leave .to(device) out.",))
    assert rewritten("torch.abs(torch.zeros(2).cuda())\n", "torch.abs", write).rewritten.count("cuda") == 0  # type: ignore[union-attr]
    assert (
        rewritten("net = torch.nn.ReLU().to('cuda')\n", "torch.nn.Module.to", write).rewritten == "mindspore.nn.ReLU()"
    )
    assert rewritten("net = torch.nn.ReLU()\nnet.to(torch.float16)\n", "torch.nn.Module.to", write).rewritten is None
    use = rewritten("x = torch.zeros(2)\nx.to(torch.float16)\n", "torch.Tensor.to", write)
    assert use.rewritten == "mindspore.ops.cast(input=x, dtype=mindspore.float16)"
    assert rewritten("x = torch.zeros(2)\nx.sum().item()\n", "torch.Tensor.item", write).rewritten is not None


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("torch.nn.parallel.DistributedDataParallel(net, device_ids=[0])", "torch.nn.parallel.DistributedDataParallel"),
        ("torch.nn.parallel.DistributedDataParallel(module=net)", "torch.nn.parallel.DistributedDataParallel"),
        ("torch.nn.DataParallel(net)", "torch.nn.DataParallel"),
        ("torch.nn.SyncBatchNorm.convert_sync_batchnorm(net)", "torch.nn.SyncBatchNorm.convert_sync_batchnorm"),
    ],
)
def test_what_is_in_a_wrapper_stays(call: str, name: str, write: Write) -> None:
    use = rewritten(f"net = torch.nn.Linear(1, 2)\nnet = {call}", name, write)
    assert use.rewritten == "net"
    assert use.way == "by hand"
    assert use.rewrite is not None


def test_a_wrapper_that_asks_for_what_there_is_not_is_refused(write: Write) -> None:
    code = "net = torch.nn.Linear(1, 2)\ntorch.nn.parallel.DistributedDataParallel(net, dim=1)"
    use = rewritten(code, "torch.nn.parallel.DistributedDataParallel", write)
    assert use.rewritten is None
    assert any("dim=1" in note for note in use.notes)


def test_a_name_of_torch_can_be_a_value(write: Write) -> None:
    use = rewritten("torch.nn.Linear(1, 2, dtype=torch.float32)", "torch.nn.Linear", write)
    assert use.rewritten is not None and "dtype=mindspore.float32" in use.rewritten
    code = "from torchvision.transforms import InterpolationMode as M, Resize\nResize(9, M.BICUBIC)"
    use = rewritten(code, "torchvision.transforms.Resize", write)
    assert use.rewritten is not None and use.rewritten.endswith("interpolation=mindspore.dataset.vision.Inter.BICUBIC)")


def test_arguments_out_of_a_dict_of_the_script_are_known(write: Write) -> None:
    code = "settings = {'lr': 0.1}\nsettings.update(momentum=0.9)\ntorch.optim.SGD(p, **settings)"
    use = rewritten(code, "torch.optim.SGD", write)
    assert use.rewritten is not None and "lr=0.1" in use.rewritten


def test_every_rewritten_call_is_python_that_gives_every_argument(scripts: dict[str, Path]) -> None:
    count = 0
    for script in scripts.values():
        for use in analyze_script(script).uses:
            if use.rewritten is None:
                continue
            assert use.row is not None
            if use.kind == "initializer":
                assert f"{use.mindspore}(" in use.rewritten and ".set_data(" in use.rewritten
                continue
            call = ast.parse(use.rewritten, mode="eval").body
            if use.mindspore is None or use.mindspore.startswith("mindspore.Tensor.") or not isinstance(call, ast.Call):
                continue  # a method there too, or x where torch has x.to(device)
            assert ast.unparse(call.func) == use.mindspore
            row = table.row(use.row)
            written = {keyword.arg for keyword in call.keywords}
            missing = {name for argument in row.arguments for name in argument.to} - written
            assert {name for name in missing if not name.startswith("*")} == set(), use.rewritten
            assert {item.mindspore for item in row.written} <= written
            count += 1
    assert count > 50


@pytest.mark.parametrize("mode", ["pynative", "graph"])
def test_statuses_are_those_of_the_mode_and_the_target(mode: str, scripts: dict[str, Path]) -> None:
    for target in ("CPU", "Ascend"):
        for use in analyze_script(scripts["imagenet"], mode=mode, target=target).uses:
            if use.row is not None and use.mindspore is not None:
                assert use.status == table.row(use.row).status["ascend" if target == "Ascend" else mode]


def test_source_text_is_as_written(write: Write) -> None:
    use = rewritten("x = 'é'; torch.nn.Conv2d( 3,\n   8,3 ) ; torch.nn.ReLU6( )", "torch.nn.ReLU6", write)
    assert use.source == "torch.nn.ReLU6( )"
    assert not re.search(r"\n", rewritten("torch.nn.Conv2d(\n3,\n8,\n3)", "torch.nn.Conv2d", write).source)


def test_a_verbs_description_decides_nothing(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every argument that crosses by a verb, as an expression: only what quotes the description changes with it."""
    lines = ["import torch, torchvision, timm"]
    for row in table.rows():
        args = next((case.args for case in row.cases if not case.raises), {})
        others = [(key, value) for key, value in args.items() if key.isidentifier()]
        for argument in row.arguments:
            words = [f"{key}={value!r}" for key, value in others if key != argument.torch]
            if argument.verb:
                lines += [
                    f"{row.torch}({', '.join([*words, f'{argument.torch}={given}'])})" for given in ("e", "e + g")
                ]
    script = write("\n".join(lines))
    before = [(use.torch, use.way, use.rewritten, use.notes) for use in analyze_script(script).uses]
    assert len(before) > 100
    descriptions = {}
    for name, verb in list(VERBS.items()):
        descriptions[f"<verb {name}>"] = verb.description
        monkeypatch.setitem(VERBS, name, verb._replace(description=f"<verb {name}>"))
    after = [(use.torch, use.way, use.rewritten, use.notes) for use in analyze_script(script).uses]
    for label, description in descriptions.items():
        after = [(*use, tuple(note.replace(label, description) for note in notes)) for *use, notes in after]
    assert after == before


@pytest.mark.parametrize(
    ("line", "name", "expected"),
    [
        ("torch.zeros((n, 1))", "torch.zeros", "mindspore.ops.zeros(size=(n, 1), dtype=None)"),
        ("torch.empty([3, n])", "torch.empty", "mindspore.ops.zeros(size=(3, n), dtype=None)"),
        ("torch.zeros(n, 1)", "torch.zeros", "mindspore.ops.zeros(size=(n, 1), dtype=None)"),
        ("(torch.ones(2) / n).cpu().numpy()", "torch.Tensor.numpy", "(mindspore.ops.ones(shape=(2,), dtype=None) / n)"),
        ("torch.ones(2).to(DEVICE)", "torch.Tensor.to", "mindspore.ops.ones(shape=(2,), dtype=None)"),
    ],
)
def test_sizes_brackets_and_devices(line: str, name: str, expected: str, write: Write) -> None:
    """Sizes stood in another tuple, a quotient lost its brackets, and a device was a dtype."""
    text = rewritten(f"import torch\n{line}", name, write).rewritten
    assert text is not None and text.startswith(expected), text


@pytest.mark.parametrize(
    ("code", "name", "expected"),
    [
        (
            "def made(k):\n    layers = [nn.ReLU()]\n    for i in range(k):\n        layers.append(nn.Tanh())\n"
            "    return nn.Sequential(*layers)\nmade(1), made(3)",
            "torch.nn.Sequential",
            "mindspore.nn.SequentialCell(*layers)",
        ),
        (
            "nn.ModuleDict([(str(i), nn.ReLU()) for i in range(k)])",
            "torch.nn.ModuleDict",
            "mindspore.nn.CellDict([(str(i), mindspore.nn.ReLU()) for i in range(k)])",
        ),
        ("nn.ModuleList(parts)", "torch.nn.ModuleList", "mindspore.nn.CellList(parts)"),
        ("torch.zeros(2, dtype=torch.long)", "torch.zeros", "mindspore.ops.zeros(size=(2,), dtype=mindspore.int64)"),
        ("torch.reshape(torch.ones(6), shape)", "torch.reshape", "mindspore.ops.reshape(input=mindspore.ops.ones("),
        (
            "x = torch.ones(2, 2)\nx.addmm_(1, -2, a, b)",
            "torch.Tensor.addmm_",
            "mindspore.ops.addmm(input=x, mat1=a, mat2=b, beta=1, alpha=-2)",
        ),
        (
            "x = torch.ones(2)\nx.addcmul_(0.5, a, b)",
            "torch.Tensor.addcmul_",
            "mindspore.ops.addcmul(input=x, tensor1=a, tensor2=b, value=0.5)",
        ),
    ],
)
def test_nothing_is_dropped_of_a_call(code: str, name: str, expected: str, write: Write) -> None:
    """Modules out of a list, the elements of a dictionary of modules, and numbers before the tensors of a method."""
    found = rewritten(f"import torch\nfrom torch import nn\n{code}", name, write)
    assert found.rewritten is not None and found.rewritten.startswith(expected), found.rewritten


DRAWN = {  # after randint -> its bounds and its size
    "(n - k, (b,))": "low=0, high=n - k, size=(b,)",
    "(10, size=(2, 3))": "low=0, high=10, size=(2, 3)",
    "(3, 9, (2,))": "low=3, high=9, size=(2,)",
    "(high=5, size=(2,))": "low=0, high=5, size=(2,)",
    "(2, high=5, size=(2,))": "low=2, high=5, size=(2,)",
}


@pytest.mark.parametrize("given", DRAWN)
def test_one_number_before_a_size_is_the_upper_bound(given: str, write: Write) -> None:
    """`torch.randint needs the argument 'size'`, it said of torch.randint(n, (b,)), and wrote nothing."""
    text = rewritten(f"import torch\ntorch.randint{given}", "torch.randint", write).rewritten
    assert text is not None and text.startswith(f"msmigrate.nn.functional.randint({DRAWN[given]}"), text


def test_a_list_of_sizes_is_not_put_into_another_tuple(write: Write) -> None:
    text = rewritten("import torch\ntorch.reshape(torch.ones(6), shape)", "torch.reshape", write).rewritten
    assert text is not None and text.endswith("shape=shape)")
    (note,) = rewritten("import torch\ntorch.zeros(size)", "torch.zeros", write).notes
    assert note == "size=(size,): as for a number; where it is a list or a tuple, write it unchanged"


def test_options_that_are_unpacked_are_not_guessed(write: Write) -> None:
    """A loader's options out of a dictionary were torch's defaults, or the dictionary itself, in what is to write."""
    loader = "from torch.utils.data import DataLoader\ncfg = {'train': {'batch_size': 104}}\nDataLoader(data, **%s)"
    known = rewritten(loader % "cfg['train']", "torch.utils.data.DataLoader", write).rewrite
    unknown = rewritten(loader % "other['train']", "torch.utils.data.DataLoader", write).rewrite
    assert known is not None and "batch(cfg['train']['batch_size'], drop_remainder=False)" in known
    assert unknown is not None and "batch(BATCH_SIZE, drop_remainder=DROP_LAST)" in unknown


def test_what_is_not_known_to_be_a_tensor_lacks_no_row_of_one(write: Write) -> None:
    """An image's resize and a dict's get were listed as methods of tensors that nobody had looked at."""
    code = """
def f(image, batch, labels, label):
    image.convert("RGB").resize((3, 4)), batch["image"].get("a")
    torch.ones(2).mine()
    labels.new([1])
    label.state_dict()
"""
    uses = analyze_script(write("import torch" + code)).uses
    assert [(use.torch, use.way) for use in uses if use.torch != "torch.ones"] == [
        ("torch.Tensor.mine", "no row"),
        ("torch.Tensor.new", "no row"),
        ("torch.nn.Module.state_dict", "by hand"),
    ]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("p.size()", "msmigrate.nn.functional.size(input=p, dim=None)"),
        ("p.size(0)", "msmigrate.nn.functional.size(input=p, dim=0)"),
        ("p.grad.size(dim=-1)", "msmigrate.nn.functional.size(input=p.grad, dim=-1)"),
        ("p['x'].to(self.device, non_blocking=True)", "p['x']"),
        ("p.size(n)", None),
        ("sys.size(0)", None),
        ("p.to(place)", None),
    ],
)
def test_methods_of_what_is_not_known_that_are_tensors_by_their_form(call: str, text: str | None, write: Write) -> None:
    """size() stayed a call, and is a property in MindSpore."""
    uses = analyze_script(write(f"import torch, sys\nfor p in things():\n    {call}\n")).uses
    assert [use.rewritten for use in uses] == ([text] if text else [])
    defined = (
        f"import torch, sys\nclass A:\n    def size(self): ...\n    def to(self): ...\nfor p in things():\n    {call}\n"
    )
    assert not analyze_script(write(defined)).uses


def test_a_text_is_no_tensor(write: Write) -> None:
    script = write("import torch\ndef made(size):\n    label = str(size)\n    return label.split('_'), label.split(3)")
    assert [use.source for use in analyze_script(script).uses if use.torch == "torch.Tensor.split"] == [
        "label.split(3)"
    ]


@pytest.mark.parametrize("made", ["tqdm.tqdm(loader)", "loader"])
@pytest.mark.parametrize("method", ["set_postfix(loss=3)", "set_description('x')", "finish()"])
def test_a_loader_lacks_no_row_of_a_bars_method(made: str, method: str, write: Write) -> None:
    """`DataLoader.set_postfix` was listed as without a row: it is the progress bar's."""
    code = "import torch, tqdm\nfrom torch.utils.data import DataLoader\nloader = DataLoader(data, batch_size=4)\n"
    found = analyze_script(write(f"{code}bar = {made}\nfor x in bar:\n    bar.{method}\n"))
    assert {use.torch for use in found.uses} == {"torch.utils.data.DataLoader"}
