"""The code that is printed for what a script does itself: with its own names and values, and so that it runs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from msmigrate.migrate.analyze.script_analysis import Use, analyze_script
from msmigrate.reports.script_analysis import calls
from script_uses import use_of

HERE = Path(__file__).parent
Write = Callable[..., Path]
Run = Callable[[list[str]], None]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs lines in MindSpore."""

    def runs(lines: list[str]) -> None:
        first = 'import mindspore, msmigrate.nn, msmigrate.optim, numpy\nmindspore.set_device("CPU")'
        code = "\n".join([first, *lines, 'print("ran")\n'])
        file = tmp_path / "printed_code.py"
        file.write_text(code, encoding="utf-8")
        command = [sys.executable, str(HERE / "lines_mindspore.py"), str(file)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.stdout.endswith("ran\n"), code + done.stderr[-3000:]

    return runs


def rewritten(code: str, name: str, write: Write) -> Use:
    """The use of one thing in a few lines."""
    return use_of(analyze_script(write(f"import torch\n{code}\n")), name)


def printed(code: str, name: str, write: Write) -> str:
    """All that is printed of one use, its code before its notes."""
    use = rewritten(
        f"from torch import nn, optim\nfrom torch.utils.data import Dataset, DataLoader\n{code}", name, write
    )
    return "\n".join(text for text in (use.rewritten, use.rewrite, *use.notes) if text)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("model.parameters()", "(model.trainable_params(), "),
        ("list(student.parameters())", "(list(student.trainable_params()), "),
        (
            "filter(lambda p: p.requires_grad, m.parameters())",
            "(filter(lambda p: p.requires_grad, m.trainable_params()), ",
        ),
        (
            "[{'params': model.fc.parameters(), 'lr': 0.1}, {'params': self.g.parameters()}]",
            "([{'params': model.fc.trainable_params(), 'lr': 0.1}, {'params': self.g.trainable_params()}], ",
        ),
        (
            "[p for n, p in model.named_parameters() if 'bias' in n]",
            "([p for n, p in [(name, p) for name, p in model.parameters_and_names() if p.requires_grad] if 'bias'",
        ),
        ("chain(a.parameters(), b.parameters())", "(chain(a.trainable_params(), b.trainable_params()), "),
    ],
)
def test_the_parameters_that_an_optimizer_is_given_are_mindspores(given: str, expected: str, write: Write) -> None:
    found = rewritten(f"o = torch.optim.Adam({given}, lr=0.1)", "torch.optim.Adam", write)
    assert found.rewritten is not None and expected in found.rewritten


def test_an_argument_that_the_code_leaves_out_is_said_and_not_lost_in_another_call(write: Write) -> None:
    script = write("import torch\no = torch.optim.Adam(model.parameters(recurse=False))")
    uses = {use.torch: use for use in analyze_script(script).uses}
    assert "recurse=False" in uses["torch.nn.Module.parameters"].notes[0]
    assert uses["torch.optim.Adam"].rewritten is not None
    assert "trainable_params" not in uses["torch.optim.Adam"].rewritten


TWO_MODELS = """
import torch
def step(gen, disc):
    opt_g = torch.optim.Adam(gen.parameters())
    opt_d = torch.optim.Adam(disc.parameters())
    gen.train()
    disc.train(False)
    loss_d = disc(x).mean()
    loss_d.backward()
    opt_d.step()
    loss_g = gen(x).mean()
    loss_g.backward()
    opt_g.step()
"""


def test_two_models_of_a_script_stay_two(write: Write) -> None:
    uses = analyze_script(write(TWO_MODELS)).uses
    lines = {use.line: f"{use.rewritten or ''}{use.rewrite or ''}" for use in uses}
    assert lines[6].startswith("gen.set_train(True)") and lines[7].startswith("disc.set_train(False)")
    assert "loss_d = disc(x).mean()" in lines[9] and "None, opt_d.parameters)\nloss_d, grads" in lines[9]
    assert lines[10] == "opt_d(grads)" and lines[13] == "opt_g(grads)"
    assert "loss_g = gen(x).mean()" in lines[12] and "None, opt_g.parameters)\nloss_g, grads" in lines[12]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("to(device)", "x"),
        ("to('cuda:0', non_blocking=True)", "x"),
        ("to(0)", "x"),
        ("to(args.device)", "x"),
        ("to(other.device)", "x"),
        ("to(device=where)", "x"),
        ("to(device, dtype=torch.float32)", "mindspore.ops.cast(input=x, dtype=mindspore.float32)"),
        ("to(device, torch.long)", "mindspore.ops.cast(input=x, dtype=mindspore.int64)"),
        ("to(where, torch.long)", "mindspore.ops.cast(input=x, dtype=mindspore.int64)"),
        ("to(dtype=torch.half, device=device)", "mindspore.ops.cast(input=x, dtype=mindspore.float16)"),
        ("to(torch.int32, True)", "mindspore.ops.cast(input=x, dtype=mindspore.int32)"),
        ("to(torch.float64, copy=True)", "mindspore.ops.cast(input=x, dtype=mindspore.float64)"),
        ("to(device, copy=True)", "x.copy()"),
        ("to(y)", "mindspore.ops.cast(input=x, dtype=y.dtype)"),
        ("to(other=y)", "mindspore.ops.cast(input=x, dtype=y.dtype)"),
        ("to(y.dtype)", "mindspore.ops.cast(input=x, dtype=y.dtype)"),
        ("to(y.device, y.dtype)", "mindspore.ops.cast(input=x, dtype=y.dtype)"),
        ("to(where)", None),
    ],
)
def test_every_form_of_to(call: str, expected: str | None, write: Write) -> None:
    code = f"x, y = torch.ones(2), torch.ones(2)\nwhere = found()\ndevice = torch.device('cuda')\nx.{call}"
    found = rewritten(code, "torch.Tensor.to", write)
    assert found.rewritten == expected, found.notes
    if expected is None:
        (note,) = found.notes
        assert "leave .to(where) out" in note and "mindspore.ops.cast(input=x, dtype=where)" in note


@pytest.mark.parametrize(
    ("before", "sure"),
    [
        ("opt = torch.optim.Adam(thing.parameters())", True),
        ("thing.eval()", True),
        ("thing = UNet.from_pretrained('x')", True),
        ("thing = Tokenizer.from_pretrained('x')", False),
        ("thing = made()", False),
        ("trainer.train(thing)", False),
    ],
)
def test_what_is_a_module_by_its_use(before: str, sure: bool, write: Write) -> None:
    found = rewritten(f"{before}\nthing.requires_grad_(False)", "torch.nn.Module.requires_grad_", write)
    assert found.rewrite == "for p in msmigrate.nn.parameters(thing):\n    p.requires_grad = False"
    assert any("of a torch.Tensor" in note for note in found.notes) is not sure


def test_a_tensor_s_requires_grad_stays_a_tensor_s(write: Write) -> None:
    found = rewritten("x = torch.ones(2)\nx.requires_grad_()", "torch.Tensor.requires_grad_", write)
    assert found.way == "missing"


@pytest.mark.parametrize(
    ("code", "name", "said"),
    [
        (
            "t = nn.Parameter(torch.randn(1))",
            "torch.nn.Parameter",
            "mindspore.Parameter(msmigrate.nn.functional.randn(",
        ),
        ("torch.Tensor(w).cuda()", "torch.Tensor.cuda", "mindspore.Tensor(w, mindspore.float32)"),
        ("torch.LongTensor([1]).cuda()", "torch.Tensor", "mindspore.Tensor([1], mindspore.int64)"),
        ("torch.Tensor(2, n)", "torch.Tensor", "mindspore.ops.zeros((2, n,), mindspore.float32)"),
        ("t = nn.Parameter(torch.ones(1)).cuda()", "torch.Tensor.cuda", "mindspore.Parameter(mindspore.ops.ones("),
        ("t = nn.Parameter(torch.ones(1)).cuda()", "torch.Tensor.cuda", "torch gives a plain tensor"),
        (
            "x = torch.ones(1)\ntorch.autograd.Variable(x.cuda()).detach()",
            "torch.Tensor.detach",
            "stop_gradient(value=x)",
        ),
        ("x = torch.ones(1)\ny = x.cpu().numpy()", "torch.Tensor.numpy", ".asnumpy().copy()"),
        (
            "self.register_buffer('inv', a / 2)",
            "torch.nn.Module.register_buffer",
            "self.inv = mindspore.Parameter(a / 2, ",
        ),
        ("m.register_buffer('b', None)", "torch.nn.Module.register_buffer", "m.b = None"),
        (
            "m.register_buffer(f'b{i}', v)",
            "torch.nn.Module.register_buffer",
            "setattr(m, f'b{i}', mindspore.Parameter(v",
        ),
        (
            "m.register_parameter('b', nn.Parameter(v))",
            "torch.nn.Module.register_parameter",
            "m.b = mindspore.Parameter(v,",
        ),
        (
            "s = torch.amp.GradScaler()",
            "torch.amp.GradScaler",
            "s = mindspore.amp.DynamicLossScaler(scale_value=65536.0, ",
        ),
        ("nn.MSELoss(reduction='elementwise_mean')", "torch.nn.MSELoss", "MSELoss(reduction='mean')"),
        ("s = torch.amp.GradScaler()", "torch.amp.GradScaler", "scale_factor=2, "),
        ("s = torch.amp.GradScaler(growth_factor=g)", "torch.amp.GradScaler", "scale_factor=int(g), "),
        (
            "s = torch.amp.GradScaler(growth_factor=1.5)",
            "torch.amp.GradScaler",
            "1.5: DynamicLossScaler takes an int only",
        ),
        (
            "s = torch.amp.GradScaler(backoff_factor=0.1)",
            "torch.amp.GradScaler",
            "backoff_factor=0.1: it is not carried",
        ),
        (
            "nn.utils.clip_grad_norm_(m.parameters(), c.clip)",
            "torch.nn.utils.clip_grad_norm_",
            "grads = mindspore.ops.clip_by_norm(grads, c.clip)  # the gradients of m.trainable_params()",
        ),
        ("n = nn.utils.clip_grad_norm_(p, 1.0)", "torch.nn.utils.clip_grad_norm_", "n is the norm before clipping"),
        (
            "nn.utils.clip_grad_norm_(p, 1.0, norm_type=1)",
            "torch.nn.utils.clip_grad_norm_",
            "norm_type=1 has no counterpart",
        ),
        ("nn.utils.clip_grad_value_(p, 0.5)", "torch.nn.utils.clip_grad_value_", "clip_by_value(grads, -0.5, 0.5)"),
        ("val = DataLoader(v, 8)", "torch.utils.data.DataLoader", "for image, label in val_batches:"),
        (
            "from torch.utils.data import Subset\na = DataLoader(Subset(d, i), 4, shuffle=s)",
            "torch.utils.data.DataLoader",
            "GeneratorDataset(d, COLUMNS, sampler=(mindspore.dataset.SubsetRandomSampler if s else ",
        ),
        (
            "from torch.utils.data import Subset\ndef f(d): return Subset(d, [1])\np = f(d)\na = DataLoader(p, 4)",
            "torch.utils.data.DataLoader",
            "p is a Subset, which is no data set here",
        ),
        ("val = DataLoader(v, 8, collate_fn=c)", "torch.utils.data.DataLoader", "collate_fn=c: it is not carried"),
        ("class D(Dataset): pass", "torch.utils.data.Dataset", "return image, label  # of a class: numpy.int32(label)"),
        ("torch.save(m.state_dict(), f'{d}/a.pth')", "torch.save", "save_checkpoint(m, f'{d}/a.ckpt')"),
        ("torch.save(net, 'a_{}.pt'.format(e))", "torch.save", "save_checkpoint(net, 'a_{}.ckpt'.format(e))"),
        ("s = {'e': 1, 'net': m.state_dict()}\ntorch.save(s, 'a.tar')", "torch.save", "save_checkpoint(m, 'a.ckpt')"),
        ("s = {'e': 1, 'net': m.state_dict()}\ntorch.save(s, 'a.tar')", "torch.save", "not carried: 'e'"),
        ("torch.save(m.state_dict(), path)", "torch.save", "path: a str that ends in .ckpt"),
        (
            "class N(nn.Module):\n    @staticmethod\n    def packed(m, e):\n"
            "        return {'net': m.state_dict(), 'e': e}\n"
            "mine = N()\ntorch.save(mine.packed(mine, 1), 'a.pt')",
            "torch.save",
            "save_checkpoint(mine, 'a.ckpt')",
        ),
        (
            "class N(nn.Module):\n    def packed(self):\n        return self.body.state_dict()\n"
            "mine = N()\ntorch.save(mine.packed(), 'a.pt')",
            "torch.save",
            "save_checkpoint(mine.body, 'a.ckpt')",
        ),
        (
            "def packed(m):\n    return m.state_dict()\n"
            "def saved():\n    state = packed(n)\n    torch.save(state, 'a.pt')\nsaved()",
            "torch.save",
            "save_checkpoint(OBJ, 'a.ckpt')\nOBJ: the cell whose m.state_dict() is saved",
        ),
        (
            "import torchvision\nm = torchvision.models.resnet18()",
            "torchvision.models.get_model",
            "convert-model torchvision:resnet18 -o resnet18.py",
        ),
        (
            "from torchvision import models\nm = models.resnet50(weights=None, num_classes=10)",
            "torchvision.models.get_model",
            "convert-model 'torchvision:resnet50(num_classes=10)' -o",
        ),
        (
            "from torchvision.models import vgg16\nm = vgg16(pretrained=True)",
            "torchvision.models.get_model",
            "-o vgg16.py writes it as a Cell\nthe trained weights: ",
        ),
        (
            "import timm\nm = timm.create_model('vit_tiny_patch16_224')",
            "timm.create_model",
            "timm:vit_tiny_patch16_224 -o",
        ),
        ("ck = torch.load('d/a.pth')", "torch.load", "ck = mindspore.load_checkpoint('d/a.ckpt')"),
        ("big = torch.load('a.pth')\nbig.eval()", "torch.load", "the file holds a whole model: make big by its class"),
        (
            "m.load_state_dict(torch.load('a.pth'))",
            "torch.nn.Module.load_state_dict",
            "(m, mindspore.load_checkpoint('a.ckpt'), ",
        ),
        ("m.load_state_dict(ck['model'])", "torch.nn.Module.load_state_dict", "load_param_into_net(m, ck, "),
        (
            "opt.load_state_dict(ck['opt'])",
            "torch.optim.Optimizer.load_state_dict",
            "load_param_into_net(opt, mindspore.load",
        ),
        (
            "import torchvision\nt = torchvision.transforms.Compose([torchvision.transforms.ToTensor()])",
            "torchvision.transforms.Compose",
            "dataset.transforms.Compose([mindspore.dataset.vision.ToTensor(output_type=numpy.float32)])",
        ),
    ],
)
def test_a_row_s_code_has_the_script_s_own_names_and_values(code: str, name: str, said: str, write: Write) -> None:
    assert said in printed(code, name, write)


def test_a_check_that_the_script_does_not_make_is_not_printed(write: Write) -> None:
    name = "torch.nn.Module.load_state_dict"
    assert "assert" in printed("m.load_state_dict(s)", name, write)
    assert "assert" not in printed("m.load_state_dict(s, strict=False)", name, write)


def test_the_columns_are_those_of_the_script_s_own_data_set(write: Write) -> None:
    data = "class D(Dataset):\n    def __len__(self): return 9\n    def __getitem__(self, i):\n        return %s\n"
    three = printed(f"{data % 'image, mask, name'}train = DataLoader(D(), 4)", "torch.utils.data.DataLoader", write)
    assert (
        'GeneratorDataset(D(), ["image", "mask", "name"], ' in three
        and "for image, mask, name in train_batches" in three
    )


def test_a_pitfall_stands_where_the_script_can_have_it(write: Write) -> None:
    """slice-no-alias was at every reshape, and labels of F.cross_entropy, which takes int64, were among label-int64."""
    code = "x = torch.ones(6).reshape(2, 3)\ny['a'] = x\n%s\nloss = F.cross_entropy(x, t, ignore_index=0)\n"
    code += "loss.backward()\n"
    first = "import torch\nimport torch.nn.functional as F\n"
    without, with_it = (analyze_script(write(first + code % line)).pitfalls for line in ("pass", "x[:2] += 1"))
    assert "slice-no-alias" not in without and [use.line for use in with_it["slice-no-alias"]] == [5]
    assert "label-int64" not in without and "ignore-index-sparse" in without and "bn-set-train-missing" in without
    assert "ignore-index-sparse" not in analyze_script(write(first + "F.cross_entropy(x, t)")).pitfalls


def test_labels_are_of_the_type_that_their_loss_takes(write: Write, run: Run) -> None:
    code = "t_label = torch.tensor([1], dtype=torch.long)\nindex = torch.tensor([1], dtype=torch.long)\n%s = %s(x, t)"
    first = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n"
    refusing = analyze_script(write(first + code % ("loss", "nn.CrossEntropyLoss()"))).uses
    taking = analyze_script(write(first + code % ("loss", "F.cross_entropy"))).uses
    assert [[bool(use.notes) for use in uses[:2]] for uses in (refusing, taking)] == [[True, False], [False, False]]
    loss, function = ({use.row: use.rewritten for use in uses if use.rewritten} for uses in (refusing, taking))
    run(
        [
            "x, t = mindspore.ops.ones((1, 3)), mindspore.Tensor([1], mindspore.int64)",
            f"assert {function['torch.nn.functional.cross_entropy']} > 1",
            f"loss = {loss['torch.nn.CrossEntropyLoss']}",
            "assert loss(x, t.astype(mindspore.int32)) > 1",
            "try:\n    loss(x, t)\nexcept TypeError:\n    pass\nelse:\n    raise AssertionError",
        ]
    )


LOADERS = """
import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, Subset, SubsetRandomSampler
class Keyed(Dataset):
    def __len__(self):
        return 6
    def __getitem__(self, i):
        sample = {"image": made(i), "mask": made(2 * i)}
        return self.transform(sample) if self.transform else sample
class Pairs(Dataset):
    def __len__(self):
        return 6
    def __getitem__(self, i):
        return self.same(i) if i % 2 else self.other(i)
    def same(self, i):
        return [made(i), made(i)], 1
    def other(self, i):
        pair = [made(i), made(-i)]
        return pair, 0
class Alone(Dataset):
    def __len__(self):
        return 6
    def __getitem__(self, i):
        image = made(i)
        return image
keyed = DataLoader(Keyed(), batch_size=4, num_workers=int(workers))
pairs = DataLoader(Subset(Pairs(), chosen), 2, shuffle=False, num_workers=0)
alone = DataLoader(Alone(), 2, sampler=SubsetRandomSampler(chosen))
drawn = DataLoader(Alone(), batch_sampler=BatchSampler(order, 4, False))
other = DataLoader(Alone(), batch_sampler=[[1], [0, 3]])
for epoch in range(2):
    for i, batch in enumerate(progress(keyed)):
        batch["image"], batch["mask"]
    for (x, y) in pairs:
        x[0], x[1]
    for image in alone:
        pass
    for image in drawn:
        pass
    for image in other:
        pass
"""


LOADED = """
class Data:
    def __init__(self, give):
        self.give = give
    def __len__(self):
        return 6
    def __getitem__(self, i):
        return self.give(i)
def made(i):
    return numpy.full(3, i, numpy.float32)
def numbers(images):
    return images[:, 0].asnumpy().tolist()
def BatchSampler(order, size, last):
    return [order[at : at + size] for at in range(0, len(order), size)]
Keyed = lambda: Data(lambda i: (made(i), made(2 * i)))
Pairs = lambda: Data(lambda i: (made(i), made(-i), i % 2))
Alone = lambda: Data(made)
EPOCHS, workers, chosen, order = 1, 0, [5, 1, 2], [5, 4, 3, 2, 1, 0]
"""
SEEN = {  # a part of the loader's call -> what each round of its loop adds to `seen`, and what it has then
    "Keyed()": ("numbers(batch['mask'])", "[[0, 2, 4, 6], [8, 10]]"),
    "Subset(": (
        "[numbers(x[0]), numbers(x[1]), y.asnumpy().tolist()]",
        "[[[5, 1], [-5, -1], [1, 1]], [[2], [-2], [0]]]",
    ),
    "sampler=SubsetRandomSampler": ("len(numbers(image))", "[2, 1]"),
    "sampler=BatchSampler": ("numbers(image)", "[[5, 4, 3, 2], [1, 0]]"),
    "sampler=[[": ("numbers(image)", "[[1], [0, 3]]"),
}


def test_the_loop_is_the_script_s_own_and_takes_what_its_data_set_gives(write: Write, run: Run) -> None:
    """It was a loop over images and labels in whatever a data set gave, with batches of one for a batch sampler."""
    uses = [use for use in analyze_script(write(LOADERS)).uses if use.row == "torch.utils.data.DataLoader"]
    of = {part: next(use for use in uses if part in use.source) for part in SEEN}
    assert "return a tuple of the values there" in of["Keyed()"].notes[0]
    assert "return x_0, x_1, y" in of["Subset("].notes[0]
    assert "a list of one" in of["sampler=BatchSampler"].notes[0]
    lines = [LOADED]
    for part, (adds, found) in SEEN.items():
        loop = (of[part].rewrite or "").replace("...", f"seen.append({adds})")
        lines += ["seen = []", loop, f"assert seen == {found}, seen"]
    run(lines)


@pytest.mark.parametrize(
    ("fault", "without", "with_it"),
    [
        ("adamw-as-adam-wd", "torch.optim.Adam(p, lr=0.1)", "torch.optim.Adam(p, lr=0.1, weight_decay=0.1)"),
        ("wd-skips-gamma-beta", "torch.optim.SGD(p, 0.1)", "torch.optim.SGD(p, 0.1, 0.9, 0, 1e-4)"),
        ("momentum-nesterov-ignored", "torch.optim.SGD(p, 0.1)", "torch.optim.SGD(p, **settings)"),
        ("grad-not-accumulated", "loss.backward()", "loss.backward()\nif step % 4 == 0: opt.step()"),
        ("loss-scale-hidden-by-adam", "torch.optim.Adam(p)", "torch.optim.Adam(p)\ns = torch.amp.GradScaler()"),
        ("label-int64", "DataLoader(d, 4)", "DataLoader(d, 4)\nloss = nn.CrossEntropyLoss()"),
    ],
)
def test_a_pitfall_that_the_script_cannot_have_is_not_listed(
    fault: str, without: str, with_it: str, write: Write
) -> None:
    first = "import torch\nfrom torch import nn\nfrom torch.utils.data import DataLoader\n"
    assert fault not in analyze_script(write(first + without)).pitfalls
    assert fault in analyze_script(write(first + with_it)).pitfalls


# a call of torch in which n is 2, s is [2, 3] and x is a tensor of these sizes -> what holds of `y`, which is printed
SIZES = {
    "torch.zeros(size=(n, 1))": "y.shape == (2, 1)",
    "torch.zeros(size=[n, 1])": "y.shape == (2, 1)",
    "torch.randn(size=s)": "y.shape == (2, 3)",
    "torch.ones(size=x.shape)": "y.shape == (2, 3)",
    "torch.nn.Parameter(torch.zeros(size=(n, 1)))": "y.shape == (2, 1)",
    "torch.zeros(*s)": "y.shape == (2, 3)",
    "torch.zeros(*s, dtype=torch.long)": "y.shape == (2, 3) and y.dtype == mindspore.int64",
    "torch.ones((n,) + x.size()[1:])": "y.shape == (2, 3)",
    "torch.ones([n] * 3)": "y.shape == (2, 2, 2)",
    "torch.ones([2 * i for i in s])": "y.shape == (4, 6)",
    "torch.ones(x.size()[0])": "y.shape == (2,)",
    "torch.ones(x.size(1), n)": "y.shape == (3, 2)",
    "torch.full(fill_value=1, size=s[:1])": "y.shape == (2,)",
    "torch.nn.functional.layer_norm(x, x.shape[1:])": "y.shape == (2, 3)",
    "x.new_ones(x.size()[:-1])": "y.shape == (2,)",
    "x.new_zeros(size=x.size()[1:])": "y.shape == (3,)",
    "x.repeat([n, 1])": "y.shape == (4, 3)",
    "x.repeat(*x.shape)": "y.shape == (4, 9)",
    "x.repeat(tuple(s))": "y.shape == (4, 9)",
    "x.view(*x.shape, 1)": "y.shape == (2, 3, 1)",
    "x.view(x.size()[:1] + (3, 1))": "y.shape == (2, 3, 1)",
    "x.expand(x.size()[:])": "y.shape == (2, 3)",
    "x.permute(dims=[1, 0])": "y.shape == (3, 2)",
    "x.type(torch.LongTensor)": "y.dtype == mindspore.int64",
    "x.type('torch.cuda.HalfTensor')": "y.dtype == mindspore.float16",
    "x.type(dtype=torch.bool)": "y.dtype == mindspore.bool_",
}


def test_sizes_are_the_same_however_they_are_given(write: Write, run: Run) -> None:
    """In another tuple they were no sizes: by name, of a part of a shape, as a sum, and unpacked."""
    lines = "\n".join(f"y = {call}" for call in SIZES)
    uses = analyze_script(write(f"import torch\nfrom torch import nn\nx = torch.ones(2, 3)\n{lines}")).uses
    texts = {use.source: use.rewritten or use.rewrite for use in uses}
    checks = [f"y = {texts[call]}\nassert {holds}, y.shape" for call, holds in SIZES.items()]
    run(["n, s, x = 2, [2, 3], mindspore.ops.ones((2, 3))", *checks])


# a call that sets initial values of w, a parameter of (300, 200), or makes some -> what holds then of `y`, the values
INITIAL = {
    "nn.init.xavier_uniform_(w, gain=1.414)": "abs(abs(y).max() - 1.414 * (6 / 500) ** 0.5) < 0.001",
    "nn.init.xavier_normal_(w.data)": "abs(y.std() - (2 / 500) ** 0.5) < 0.001",
    "nn.init.kaiming_uniform_(w, mode='fan_out', nonlinearity='relu')": "abs(abs(y).max() - (6 / 300) ** 0.5) < 0.001",
    "nn.init.kaiming_normal_(w, nonlinearity='relu')": "abs(y.std() - (2 / 200) ** 0.5) < 0.001",
    "nn.init.normal_(w, 1, 0.02)": "abs(y.mean() - 1) < 0.001 and abs(y.std() - 0.02) < 0.001",
    "nn.init.trunc_normal_(tensor=w, std=0.02)": "abs(y.std() - 0.02) < 0.001",
    "nn.init.uniform_(w, -0.1, 0.1)": "abs(abs(y).max() - 0.1) < 0.001 and abs(y.std() - 0.1 / 3 ** 0.5) < 0.001",
    "nn.init.uniform_(w, -k / 2, k / 2)": "abs(abs(y).max() - 0.05) < 0.001",
    "nn.init.uniform_(w, b=k, a=-k)": "abs(abs(y).max() - 0.1) < 0.001",
    "nn.init.orthogonal_(w)": "abs(y.T @ y - numpy.eye(200)).max() < 1e-4",
    "nn.init.constant_(val=7, tensor=w)": "(y == 7).all()",
    "nn.init.zeros_(w.detach())": "(y == 0).all()",
    "nn.init.ones_(w.data[100:])": "(y[:100] == 0).all() and (y[100:] == 1).all()",
    "w = nn.init.eye_(torch.zeros(3, 3))": "(y == numpy.eye(3)).all()",
    "w = nn.Parameter(nn.init.normal_(torch.empty(99, 99), std=0.5))": "abs(y.std() - 0.5) < 0.02",
    "x = nn.init.constant_(torch.empty(2), 3) + 1": "True",
    "t = torch.zeros(9); nn.init.ones_(t)": "(t.asnumpy() == 1).all()",
}


def test_what_an_initializer_makes_is_given_to_its_tensor(write: Write, run: Run) -> None:
    """An initializer was made and given to nothing, so that the parameter stayed as it was."""
    lines = "\n".join(["for w in weights:", *(f"    {call}" for call in INITIAL)])
    analysis = analyze_script(write(f"import torch\nfrom torch import nn\n{lines}"))
    texts = {use.source: use.rewritten or use.rewrite or "" for use in analysis.uses}
    code = ["w, k = mindspore.Parameter(mindspore.ops.zeros((300, 200))), 0.1", "mindspore.set_seed(0)"]
    for line, holds in INITIAL.items():
        for call in line.split("; "):
            name, _, of = call.partition(" = ") if " = " in call else ("", "", call)
            text = texts[of.removesuffix(" + 1")] + of[len(of.removesuffix(" + 1")) :]
            code += [f"{name} = {text}" if name else text, "y = w.asnumpy()"]
        code += [f"assert {holds}, {line!r}"]
    run([*code, "assert (x.asnumpy() == 4).all()"])


@pytest.mark.parametrize(
    ("code", "name", "way", "said"),
    [
        (
            "nn.Sequential(torchaudio.transforms.Loud(3), nn.ReLU())",
            "torch.nn.Sequential",
            "by hand",
            "torchaudio.transforms.Loud",
        ),
        ("torch.cat([torch.ones(2), torchaudio.made(2)]).sum()", "torch.sum", "by hand", "torchaudio.made"),
        ("nn.ModuleList([nn.ReLU(), nn.Mine(3)])", "torch.nn.ModuleList", "by hand", "torch.nn.Mine"),
        ("nn.ModuleList([nn.ReLU(), mine(3)])", "torch.nn.ModuleList", "direct", ""),
        ("torch.abs(torch.ones(2).to(torch.device('cuda')))", "torch.abs", "direct", ""),
    ],
)
def test_a_call_that_holds_what_has_no_counterpart_is_not_equal(
    code: str, name: str, way: str, said: str, write: Write
) -> None:
    found = rewritten(f"import torchaudio\nfrom torch import nn\n{code}", name, write)
    assert found.way == way
    assert (f"left as the script has it: {said}" if said else "") in "\n".join([*found.notes, ""])
    assert bool(found.notes) is bool(said)


# a call of torch on `net`, a BatchNorm2d of 3 after a ReLU -> what holds of `y`, which is printed
OF_MODULES = {
    "net.forward(x)": "(y == net(x)).all()",
    "net.buffers()": "[one.shape for one in y] == [(3,), (3,)]",
    "net.named_buffers()": "[name for name, one in y] == ['1.moving_mean', '1.moving_variance']",
    "net.modules()": "[type(one).__name__ for one in y] == ['SequentialCell', 'ReLU', 'BatchNorm2d']",
    "net.named_modules()": "[name for name, one in y] == ['', '0', '1']",
    "net.children()": "[type(one).__name__ for one in y] == ['ReLU', 'BatchNorm2d']",
    "net.named_children()": "[name for name, one in y] == ['0', '1']",
    "net.parameters()": "len(y) == 2",
    "net.bfloat16()": "y is net",  # which computes in it where the device has it: the CPU has no ReLU of it
    "torch.device('cuda')": "y.device_target == 'CPU'",
}


def test_each_name_of_a_row_has_code_of_its_own(write: Write, run: Run) -> None:
    """buffers() gave pairs, as named_buffers() does, and set_device gave None."""
    lines = "\n".join(f"y = {call}" for call in OF_MODULES)
    uses = analyze_script(write(f"import torch\nfrom torch import nn\nnet = nn.Sequential()\n{lines}\ny.type")).uses
    texts = {use.source: (use.rewrite or "") for use in uses}
    net = "net = mindspore.nn.SequentialCell(mindspore.nn.ReLU(), mindspore.nn.BatchNorm2d(3))"
    code = [net, "x, TARGET, DEVICE_ID = mindspore.ops.ones((2, 3, 4, 4)), 'CPU', 0"]
    for call, holds in OF_MODULES.items():
        first, _, rest = texts[call].partition("\n")
        code += [f"{rest}" if rest else f"y = {first}", f"assert {holds}, y"]
    run(code)


STEPS = """
import torch
from torch import nn
net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
def train(state):
    optimizer.zero_grad()
    for number, (inputs, wanted) in enumerate(loader):
        inputs, wanted = inputs.to("cuda"), wanted.cuda()
        with torch.no_grad():
            scale = net(inputs).abs().mean() + 1
        parts = []
        for i in range(2):
            parts.append(net(inputs[i]))
        seen.append(number)
        with torch.autocast("cuda"):
            output = torch.cat(parts) + state
            loss = ((output - wanted) ** 2).mean() / scale
        loss = loss / 2
        state = state + 1
        loss.backward()
        seen.append(output.shape)
        if number % 2 == 1:
            nn.utils.clip_grad_norm_(net.parameters(), 100.0)
            optimizer.step()
            optimizer.zero_grad()
"""


def test_a_step_is_the_script_s_own_lines(write: Write, run: Run) -> None:
    """It was one call of the net with one input and a loss of one label, which other steps are not."""
    uses = analyze_script(write(STEPS)).uses
    of = {use.source: use.rewrite or use.rewritten or "" for use in uses}
    before, _, inside = of["loss.backward()"].partition("(loss, output, state), grads = ")
    assert inside and "seen" not in before and "state = state + 1" in before
    taken, summed = inside.split("\n")
    loop = [f"(loss, output, state), grads = {taken}", summed, "if number % 2 == 1:"]
    update = ["nn.utils.clip_grad_norm_(net.parameters(), 100.0)", "optimizer.step()", "optimizer.zero_grad()"]
    train = [*loop, *(f"    {of[call]}" for call in update), "    taken.append(net.weight.asnumpy().copy())"]
    weights = "net.weight.set_data(mindspore.ops.ones((1, 3)))\nnet.bias.set_data(mindspore.ops.zeros(1))"
    code = f"""
net = {of["nn.Linear(3, 1)"]}
optimizer = {next(text for source, text in of.items() if source.startswith("torch.optim.SGD"))}
{weights}
batches = numpy.random.default_rng(0).normal(size=(4, 2, 3)).astype("float32")
loader = [(mindspore.Tensor(batch), mindspore.Tensor([1.0, 2.0])) for batch in batches]
{before}
state, taken = 0, []
{of["optimizer.zero_grad()"]}
for number, (inputs, wanted) in enumerate(loader):
    {chr(10).join(train).replace(chr(10), chr(10) + "    ")}
weight, bias, total = numpy.ones(3), 0.0, 0
for number, batch in enumerate(batches):
    output = batch @ weight + bias
    error = (2 * (output + number - numpy.array([1, 2])) / 2) / (abs(output).mean() + 1) / 2
    total = total + numpy.array([*(error @ batch), error.sum()])
    if number % 2 == 1:
        weight, bias, total = weight - 0.1 * total[:3], bias - 0.1 * total[3], 0
        assert abs(taken[number // 2][0] - weight).max() < 1e-5, (taken, weight)
assert state == 4
"""
    run([code])


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def update(loss):\n    loss.backward()\n    opt.step()", "# by hand: all that computes loss from a batch"),
        (
            "for x in data:\n    for part in x:\n        if part is None:\n            break\n    y = net(part)\n"
            "    y.backward()",
            "# by hand: all that computes y in lines 5 to 9",
        ),
        ("y = net(x)\nmine.loss = y.mean()\nmine.loss.backward()", "mine.loss, grads = differentiate()"),
        ("for x in data:\n    (net(x) + net(2 * x)).backward()", "# by hand: all that computes value from a batch"),
        ("for x in data:\n    y = 1 * x\n    (net(y) + y).backward()", "return net(y) + y"),
        (
            "for x in data:\n    a, b = net(x)\n    a.backward(retain_graph=True)\n    b.backward()\n    opt.step()",
            "torch adds these gradients to those of line 6",
        ),
        ("def update(self):\n    self.opt.step()\nclass A: opt = torch.optim.SGD(p, 0.1)", "Optimizer.step"),
        ("for x in data:\n    y = rnn.pad(x)\n    y.backward()", "left as the script has it: torch.nn.utils.rnn.pad"),
        ("loss = f(x)\nloss.backward()", "OPTIMIZER.parameters"),
    ],
)
def test_what_cannot_be_read_of_a_step_is_said(code: str, said: str, write: Write) -> None:
    first = "import torch\nfrom torch.nn.utils import rnn\nimport torch.nn.utils.rnn\n"
    uses = analyze_script(write(f"{first}{code}")).uses
    assert said in "\n".join(text for use in uses for text in (use.torch, use.rewrite or "", *use.notes))


AS_PRINTED = """
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms

class Points(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        image, score = made(index)
        return image, score

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 1)
        self.scale = nn.Parameter(torch.ones(1))
        self.register_buffer("shift", torch.zeros(1))

model, frozen = Net(), Net()
frozen.requires_grad_(False)
optimizer = torch.optim.Adam(filter(lambda p: p.requires_grad, model.parameters()), lr=0.1)
second = torch.optim.SGD([{"params": model.fc.parameters(), "lr": 0.1}], lr=0.2)
criterion = nn.MSELoss()
scaler = torch.amp.GradScaler()
weights = torch.Tensor([1, 2]).cuda()
transform = transforms.Compose([transforms.Resize((4, 4)), transforms.ToTensor()])
loader = DataLoader(Points(), batch_size=4)
model.train()
x = torch.ones(4, 4)
y = torch.ones(4, 1).to("cuda", dtype=torch.float64)
z = y.to(x)
loss = 100 * criterion(model(x), z)
loss.backward()
nn.utils.clip_grad_norm_(model.parameters(), 0.5)
optimizer.step()
torch.save({"epoch": 1, "model": model.state_dict()}, "net.pth")
checkpoint = torch.load("net.pth")
frozen.load_state_dict(checkpoint["model"])
kept = z.detach().cpu().numpy()
"""
RUN = """
from PIL import Image

class Points:
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return numpy.ones(4, numpy.float32), numpy.float32(index / 8)

class Net(mindspore.nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = {linear}
        self.scale = {parameter}
        {buffer}

    def construct(self, x):
        return self.fc(x) * self.scale + self.shift

model, frozen = Net(), Net()
{freeze}
assert [p.requires_grad for p in frozen.get_parameters()] == [False] * 4
optimizer = {adam}
second = {sgd}
assert [len(one.parameters) for one in (optimizer, second)] == [3, 2]
criterion = {loss}
{scaler}
weights = {weights}
assert weights.dtype == mindspore.float32
transform = {compose}
image = transform(Image.new("RGB", (9, 7)))[0]
assert image.shape == (3, 4, 4) and image.dtype == numpy.float32
EPOCHS = 1
{loader}
assert label.dtype == mindspore.float32 and label.asnumpy().max() == 0.875
{train}
x = mindspore.ops.ones((4, 4))
y = {y}
z = {z}
assert (y.dtype, z.dtype) == (mindspore.float64, mindspore.float32)
{backward}
{clip}
assert abs(sum(float((g * g).sum()) for g in grads) ** 0.5 - 0.5) < 1e-5
{step}
{save}
{load}
{state}
same = [bool((a.value() == b.value()).all()) for a, b in zip(frozen.get_parameters(), model.get_parameters())]
assert all(same)
kept = {kept}
kept[0] = 7
assert float(z[0, 0]) == 7
copied = kept.copy()
copied[0] = 8
assert float(z[0, 0]) == 7
for view in (z[1:], z.T, z.reshape(2, 2)):  # MindSpore copies what is a view of another tensor
    view.asnumpy()[0] = 9
assert float(z[0, 0]) == 7 and float(z[1, 0]) == 1
"""


def test_what_is_printed_runs_in_mindspore(write: Write, run: Run) -> None:
    """Every conversion of a small script in its place, without a change by hand."""
    uses = analyze_script(write(AS_PRINTED)).uses

    def of(source: str, words: bool = False, before: str = "") -> str:
        (use,) = [use for use in uses if use.source.startswith(source) and (use.rewritten or use.rewrite)][:1]
        text = (use.rewrite if words or use.rewritten is None else use.rewritten) or ""
        return text.replace("\n", f"\n{before}").replace("image, score in", "image, label in")

    code = RUN.format(
        linear=of("nn.Linear"),
        parameter=of("nn.Parameter"),
        buffer=of("self.register_buffer"),
        freeze=of("frozen.requires_grad_"),
        adam=of("torch.optim.Adam"),
        sgd=of("torch.optim.SGD"),
        loss=of("nn.MSELoss"),
        scaler=of("torch.amp.GradScaler").partition("\n")[0],
        weights=of("torch.Tensor([1, 2]).cuda()"),
        compose=of("transforms.Compose"),
        loader=of("DataLoader"),
        train=of("model.train"),
        y=of('torch.ones(4, 1).to("cuda"'),
        z=of("y.to(x)"),
        backward=of("loss.backward"),
        clip=of("nn.utils.clip_grad_norm_"),
        step=of("optimizer.step"),
        save=of("torch.save"),
        load=of("torch.load"),
        state=of("frozen.load_state_dict"),
        kept=of("z.detach().cpu().numpy"),
    )
    run([code])


GIVEN_BY = {
    "a method": "sample = self.read(i)\n        sample = self.made(sample)\n        return sample",
    "at once": "return self.made(self.read(i))",
    "after a dict": "sample = {'image': i}\n        sample = self.made(sample)\n        return sample",
}


@pytest.mark.parametrize("given", GIVEN_BY.values(), ids=GIVEN_BY)
def test_the_columns_are_those_that_a_method_gives(given: str, write: Write, run: Run) -> None:
    """`sample = self.made(sample)` was one value, and GeneratorDataset refuses a tuple of three for one column."""
    data = f"""
class D(Dataset):
    def __len__(self):
        return 9
    def read(self, i):
        return numpy.float32([i, i])
    def made(self, sample):
        image, mask, size = numpy.float32([1, 2]), numpy.float32([3]), numpy.float32([2])
        return image, mask, size
    def __getitem__(self, i):
        {given}
"""
    code = printed(f"import numpy\n{data}train = DataLoader(D(), batch_size=4)", "torch.utils.data.DataLoader", write)
    assert '["image", "mask", "size"]' in code and "one value" not in code
    made = code.splitlines()[:2]
    run(
        [
            *data.replace("(Dataset)", "").splitlines(),
            *made,
            "for image, mask, size in train.create_tuple_iterator():",
            "    pass",
        ]
    )


PATHS = {
    "a folder's": ("folder / 'last.pth'", "str(folder / 'last.ckpt')"),
    "a Path": ("Path('last.pth')", "str(Path('last.ckpt'))"),
    "a folder's by its method": ("folder.joinpath('last.pth')", "str(folder.joinpath('last.ckpt'))"),
    "a text": ("'last.pth'", "'last.ckpt'"),
    "a text with a slash": ("'./last.pth'", "'./last.ckpt'"),
    "of os.path": ("os.path.join(folder, 'last.pth')", "os.path.join(folder, 'last.ckpt')"),
}


@pytest.mark.parametrize(("path", "expected"), PATHS.values(), ids=PATHS)
def test_a_checkpoint_s_path_is_a_str(path: str, expected: str, write: Write, run: Run) -> None:
    """MindSpore's save_checkpoint and load_checkpoint take no Path."""
    before = "import os\nfrom pathlib import Path\nfolder = Path('.')\n"
    model = "net = nn.Linear(2, 3)\n"
    saved = printed(f"{before}{model}torch.save(net.state_dict(), {path})", "torch.save", write)
    loaded = printed(f"{before}{model}weights = torch.load({path})", "torch.load", write)
    assert f"mindspore.save_checkpoint(net, {expected})" in saved
    assert f"mindspore.load_checkpoint({expected})" in loaded
    net = "net = mindspore.nn.Dense(2, 3)"
    run([*before.splitlines(), net, saved.splitlines()[0], loaded.splitlines()[0], "assert len(weights) == 2"])


def test_the_first_of_the_parameters_is_of_a_list(write: Write, run: Run) -> None:
    """`next(model.trainable_params())`: a list is no iterator."""
    net = "net = nn.Linear(2, 3)\n"
    code = printed(f"{net}device = next(net.parameters()).device", "torch.nn.Module.parameters", write)
    assert code.startswith("net.trainable_params()[0]") and "in place of next(" in code
    other = printed(f"{net}first = next(iter(net.parameters()))", "torch.nn.Module.parameters", write)
    assert other.startswith("net.trainable_params()  #")
    run(["net = mindspore.nn.Dense(2, 3)", f"print({code.splitlines()[0].partition('  #')[0]}.shape)"])


HELD = [
    ('loaders = {"train": LOADER, "val": DataLoader(pairs, 1)}', "loaders[kind]", "loaders_train"),
    ('loaders = {"train": LOADER}', 'loaders["train"]', "loaders_train"),
    ("loaders = dict(train=LOADER)", "loaders['train']", "loaders_train"),
    ('self.loaders = {"train": LOADER}', "self.loaders[kind]", "self_loaders_train"),
    ("loaders = {3: LOADER}", "loaders[3]", "loaders_3"),
    ("loaders = [DataLoader(pairs, 1), LOADER]", "loaders[1]", "loaders_1"),
    ('loaders = {}\nloaders["train"] = LOADER', "loaders[kind]", "loaders['train']"),
    ("train, val = LOADER, DataLoader(pairs, 1)", "train", "train"),
]


@pytest.mark.parametrize(("held", "loop", "variable"), HELD)
def test_a_loader_in_a_table_has_a_variable_and_the_columns_of_its_loop(
    held: str, loop: str, variable: str, write: Write, run: Run
) -> None:
    """All were `loader`, or `loaders['train']_batches`, which is no Python; the loop's variables were not its own."""
    code = f"{held.replace('LOADER', 'DataLoader(pairs, batch_size=2)')}\nfor a, b in {loop}:\n    print(a, b)"
    script = write(f"import torch\nfrom torch.utils.data import DataLoader\n{code}\n")
    uses = [use for use in analyze_script(script).uses if "batch_size=2" in use.source]
    text = uses[0].rewrite or ""
    batches = f"{variable}_batches" if "[" not in variable else "loaders_train_batches"
    assert text.startswith(f"{variable} = ") and f"for a, b in {batches}:" in text and '["a", "b"]' in text
    assert any(f"is {variable} here" in note for note in uses[0].notes) == ("_" in variable)
    before = ["pairs = [(numpy.float32(i), numpy.int32(i)) for i in range(4)]", "loaders, EPOCHS = {}, 1"]
    run([*before, text.replace("...", "print(a.shape)")])


def test_loaders_of_the_same_text_in_one_table_are_each_printed(write: Write) -> None:
    """The second was `also` the first's line."""
    script = write("from torch.utils.data import DataLoader\nboth = [DataLoader(d, 2),\n        DataLoader(d, 2)]\n")
    ((_, uses),) = calls(analyze_script(script))
    assert [(use.rewrite or "").split()[0] for use in uses] == ["both_0", "both_1"]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("torch.where(x > 0)", "msmigrate.nn.functional.nonzero(input=x > 0, as_tuple=True)"),
        ("torch.where(condition=x > 0)", "msmigrate.nn.functional.nonzero(input=x > 0, as_tuple=True)"),
        ("torch.where(x > 0, x, 0.0)", "mindspore.ops.where(condition=x > 0, input=x, other=0.0)"),
    ],
)
def test_where_with_a_condition_alone_gives_places(call: str, expected: str, write: Write, run: Run) -> None:
    """It had no counterpart."""
    name = "torch.nonzero" if "nonzero" in expected else "torch.where"
    found = rewritten(f"x = torch.ones(2, 3)\ny = {call}", name, write)
    assert found.rewritten == expected and not found.notes
    run(["x = mindspore.ops.ones((2, 3), mindspore.float32)", f"y = {expected}", "assert y[0].shape in ((6,), (3,))"])


DTYPES = [
    ("torch.tensor([1, 2], dtype=torch.int16)", "torch.tensor", "mindspore.int16", True),
    ("torch.zeros(3, dtype=torch.int8)", "torch.zeros", "mindspore.int8", True),
    ("torch.ones(3, dtype=torch.bfloat16)", "torch.ones", "mindspore.bfloat16", True),
    ("torch.full((2,), 3, dtype=torch.short)", "torch.full", "mindspore.int16", True),
    ("torch.ones_like(x, dtype=kind)", "torch.ones_like", "mindspore.int16", True),
    ("torch.zeros(3, dtype=torch.long)", "torch.zeros", "mindspore.int64", False),
    ("x.to(torch.int16)", "torch.Tensor.to", "mindspore.int16", False),
    ("x.to(kind)", "torch.Tensor.to", "mindspore.int16", False),
    ("x.to(torch.bfloat16)", "torch.Tensor.to", "mindspore.bfloat16", False),
]


@pytest.mark.parametrize(("call", "name", "dtype", "says"), DTYPES)
def test_a_dtype_that_no_row_lists_is_mindspores(
    call: str, name: str, dtype: str, says: bool, write: Write, run: Run
) -> None:
    """`dtype=torch.int16` was printed as it is, with a table in which it was not."""
    found = rewritten(f"x = torch.rand(2)\nkind = torch.int16\ny = {call}", name, write)
    assert found.rewritten is not None and f"dtype={dtype}" in found.rewritten, found
    assert any("a dtype that the row's tests do not run" in note for note in found.notes) == says
    run(["x = mindspore.ops.ones((2,), mindspore.float32)", f"y = {found.rewritten}", f"assert y.dtype == {dtype}"])
