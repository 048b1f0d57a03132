"""A class is more than the object that ran: with other arguments it computes the same, or raises; and what is around
`forward` is there, or told."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from msmigrate.migrate.source.convert_model import ConvertedModel, write_source
from msmigrate.migrate.source.rewrite.context import Problem
from msmigrate.migrate.source.variations import Tried, Undecided, Variation, _difference, now_trying, try_variations
from msmigrate.reports.converted_model import source_lines, tried_lines

MODEL = '''
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

WIDTH = 8


class Shifted(nn.Module):
    def __init__(self, width, shift):
        super().__init__()
        self.scale = nn.Parameter(torch.full((width,), 1.1))
        self.shift = nn.Parameter(torch.full((width,), 0.1)) if shift else None

    def forward(self, x):
        return F.layer_norm(x, self.scale.shape, self.scale, self.shift)


class Table(nn.Module):
    """Keeps a product between two evaluations, until training begins."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width))
        self.register_buffer("halves", torch.full((width,), 0.5), persistent=False)
        self.kept = {}

    def train(self, mode=True):
        super().train(mode)
        if mode and self.kept:
            self.kept = {}
        return self

    def product(self):
        if self.training:
            return self.weight @ self.weight
        if "it" not in self.kept:
            self.kept["it"] = self.weight @ self.weight
        return self.kept["it"]

    def forward(self, x):
        return x @ self.product() * self.halves


class Still(nn.Module):
    """Never trains its norm."""

    def __init__(self, width, still):
        super().__init__()
        self.still = still
        self.norm = nn.BatchNorm1d(width)

    def train(self, mode=True):
        super().train(mode and not self.still)
        return self

    def forward(self, x):
        return self.norm(x)


class Net(nn.Module):
    def __init__(self, kind="GRU", width=WIDTH, shift=False, act="relu", border="zeros", still=True, more=0, rate=0.1):
        super().__init__()
        if kind not in ("GRU", "LSTM"):
            raise ValueError(kind)
        if border not in ("zeros", "reflect"):
            raise ValueError(border)
        self.norm = Shifted(6, shift)
        self.rnn = getattr(nn, kind)(6, width, batch_first=True)
        self.other = "LSTM" if kind == "GRU" else "GRU"
        self.conv = nn.Conv1d(width, 4, 3, padding=1, padding_mode=border)
        self.table, self.still = Table(4), Still(4, still)
        self.act = act
        if more > 2:
            kind = nn.Linear if act == "relu" else nn.Bilinear
            self.spare = kind(4, 4)
        self.blocks = nn.ModuleList([])
        for _ in range(more):
            self.blocks.append(nn.Linear(6, 6))
        if more > 1:
            self.blocks.append(torch.vander(torch.ones(2)))
        self._register_load_state_dict_pre_hook(rename)

    def forward(self, x, factor=None):
        x = self.norm(x)
        x = x * (1 + 0.1 * np.random.randint(1, 9))
        for block in self.blocks:
            x = block(x)
        if factor is not None:
            x = x * factor
        else:
            x = x - 0.5
        x = self.conv(self.rnn(x)[0].transpose(1, 2))
        if self.act == "relu":
            x = F.relu(x)
        elif self.act == "tanh":
            x = torch.tanh(x)
        else:
            return self.still(self.table(x.amax(2)))
        return self.still(self.table(x.mean(2)))

    def spared(self, x):
        return self.spare(x)

    def encode(self, x):
        return self.rnn(self.norm(x))[0]

    def start(self, count):
        weight = next(self.parameters())
        return weight.new_zeros(1, count, WIDTH)

    def optimizer(self):
        return torch.optim.SGD(self.parameters(), 0.1)

    def state_dict(self, *args, **kwargs):
        return super().state_dict(*args, **kwargs)


def rename(state, *others):
    pass


def build():
    return Net(), (torch.randn(2, 5, 6), torch.rand(2, 5, 1))


class Hooked(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return self.fc(x)

    def eval(self):
        return super().eval()


def hooked():
    model = Hooked()
    model.fc.register_forward_hook(lambda module, args, made: made * 2)
    return model, torch.randn(2, 4)
'''


NET = "class Net(nn.Module):"


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The place of the model's file."""
    file: Path = tmp_path_factory.mktemp("model") / "varied.py"
    file.write_text(MODEL)
    return str(file)


@pytest.fixture(scope="module")
def written(spec: str) -> ConvertedModel:
    """The model as it is written."""
    return write_source(f"{spec}:build")


def tried(written: ConvertedModel, spec: str, folder: Path, **words: str) -> dict[str, Tried]:
    """What comes of its variations, with other words in the source."""
    text = written.text
    for old, new in words.values():
        assert old in text, text
        text = text.replace(old, new)
    found = try_variations(f"{spec}:build", (), text, written.maker, written.variations, folder / "variations")
    return {one.text: one for one in found}


def test_what_did_not_run_is_written_or_raises(written: ConvertedModel) -> None:
    assert not written.problems
    for line in (
        "WIDTH = 8",
        "if shift else None",
        '{"GRU": nn.GRU, "LSTM": nn.LSTM}[kind](6, width, batch_first=True)',
        'if border not in ("zeros",):',
        "# not run\n            x = x - 0.5",
        'super().add_flags_recursive(**{**flags, "training": mode and (not self.still)})',
        "def encode(self, x):\n        # not run\n        return self.rnn(self.norm(x))[0]",
        "def optimizer(self):\n        raise NotImplementedError(",
    ):
        assert line in written.text, f"{line}\n{written.text}"
    assert "state_dict" not in written.text
    lines = MODEL.splitlines()
    said = {one.text: lines[one.line - 1].strip() for one in written.left_out}
    assert said == {
        "Net is written without rate, which nothing reads: a call that passes it has to change": NET,
        "methods of Net that the model does not compute with, and are not written: state_dict": NET,
        "self._register_load_state_dict_pre_hook: a hook that changes a state dict when it is loaded or saved": (
            "self._register_load_state_dict_pre_hook(rename)"
        ),
    }
    assert not any("rate" in one.text for one in written.variations)
    (spared,) = (one for one in written.not_run if one.function == "spared")
    assert lines[spared.line - 1] == "        return self.spare(x)"
    assert spared.text == "self.spare is made by code of its class that did not run"
    assert any("torch.vander" in lines[one.line - 1] for one in written.not_run), written.not_run


@pytest.mark.full
def test_with_other_arguments_it_is_the_same_or_raises(written: ConvertedModel, spec: str, tmp_path: Path) -> None:
    found = tried(written, spec, tmp_path)
    same = ("as it is", "without factor", "kind='LSTM'", "shift=True", "act='tanh'", "act='no_relu'", "still=False")
    for text in (*same, "width=16", "more=1"):
        assert found[text].verdict == "same", (found[text], written.text)
    assert found["border='no_zeros'"].verdict == "both"
    assert found["border='reflect'"].verdict == "refused"


SHARED = """
import copy

import torch
from torch import nn


class Scaled(nn.Module):
    def __init__(self, size, by=0.5):
        super().__init__()
        self.fc, self.by = nn.Linear(size, size), by

    def forward(self, x):
        return self.fc(x) * self.by


class Pair(nn.Module):
    def __init__(self, first, second, last, share=0.25):
        super().__init__()
        self.first, self.second, self.last, self.share = first, second, last, share

    def forward(self, x):
        return self.last(self.second(torch.tanh(self.first(x))) * self.share)


def build():
    once, twice = Scaled(4), Scaled(4, by=2.0)
    return Pair(copy.deepcopy(once), copy.deepcopy(once), nn.Sequential(twice, nn.Tanh(), twice)), torch.randn(2, 4)
"""


def test_parts_that_occur_more_than_once_are_there_in_every_variation(tmp_path: Path) -> None:
    file = tmp_path / "shared.py"
    file.write_text(SHARED)
    written = write_source(f"{file}:build")
    assert "scaled = Scaled(4)" in written.text
    found = tried(written, str(file), tmp_path)
    assert found["share=0.125"].verdict == "same", found
    assert {one.verdict for one in found.values()} == {"same"}, found


def test_what_is_not_the_same_is_found(written: ConvertedModel, spec: str, tmp_path: Path) -> None:
    found = tried(
        *(written, spec, tmp_path),
        told=("if mode and self.kept:", "if False:"),
        branch=("x = ops.tanh(x)", "x = ops.sigmoid(x)"),
        given=("x = x - 0.5", "x = x - 0.4"),
    )
    assert "after training" in found["as it is"].why
    for text in ("act='tanh'", "without factor"):
        assert found[text].verdict == "differs" and "evaluation" in found[text].why


def test_what_is_around_a_module_is_told(spec: str) -> None:
    texts = [problem.text for problem in write_source(f"{spec}:hooked").problems]
    assert any("got a hook" in text for text in texts), texts
    assert any("eval of Hooked" in text for text in texts), texts


COPIED = """
import copy, sys, torch
from torch import nn
from msmigrate.migrate.torch_models import let_copy

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, inside = nn.utils.weight_norm(nn.Linear(3, 4)), nn.Linear(4, 2)
        self.inside = inside
        self.rest = lambda x: inside(torch.tanh(x))
        self.scale = 2.0
        self.inside.bias.register_hook(lambda grad: grad * self.scale)

    def forward(self, x):
        return self.rest(self.first(x))

net = let_copy(Net())
net(torch.ones(2, 3)).sum().backward()
wide = copy.deepcopy(net).double()
assert wide(torch.ones(2, 3).double()).dtype == torch.float64 and net(torch.ones(2, 3)).dtype == torch.float32
wide.inside.bias.data.fill_(100.0)
wide.scale = 5.0
wide(torch.ones(2, 3).double()).sum().backward()
assert float(net.inside.bias.grad[0]) == 4.0 and float(wide.inside.bias.grad[0]) == 10.0, wide.inside.bias.grad
assert float(wide(torch.ones(2, 3).double()).min()) > 50 > float(net(torch.ones(2, 3)).max())
"""


def test_a_copied_model_runs_its_own_modules() -> None:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", COPIED], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr[-2000:]


def test_one_reason_is_said_once_with_all_that_it_holds_for() -> None:
    found = [Tried("as it is", "same"), Tried("a=1", "refused", "it is no size (net.py, line 3)")]
    found += [Tried("b=2", "differs", "training"), Tried("c=3", "refused", "it is no size (net.py, line 3)")]
    assert tried_lines(found) == [
        "the same in both modes, and after training: as it is",
        "raises: a=1, c=3: it is no size (net.py, line 3)",
        "not the same: b=2: training",
    ]


def test_what_is_tried_is_said_while_it_runs(tmp_path: Path) -> None:
    plan = [Variation("as it is"), Variation("a=1"), Variation("b=2")]
    assert now_trying(plan, tmp_path) == "running both, also with other arguments"
    for name, said in (
        ("0.pth", "running torch's, as it is: 1 of 3"),
        ("2.pth", "running torch's, b=2: 3 of 3"),
        ("0.begun", "running MindSpore's, as it is: 1 of 3"),
        ("1.begun", "running MindSpore's, a=1: 2 of 3"),
    ):
        (tmp_path / name).touch()
        assert now_trying(plan, tmp_path) == said


def test_errors_name_the_file_that_was_written(written: ConvertedModel, spec: str, tmp_path: Path) -> None:
    text = written.text.replace("x = self.norm(x)\n", "x = self.norm(x) + int('twelve')\n", 1)
    line = text[: text.index("int('twelve')")].count("\n") + 1
    plan = written.variations[:1]
    found = try_variations(f"{spec}:build", (), text, written.maker, plan, tmp_path / "tried", "net.py")
    assert [one.why.rpartition(" (")[2] for one in found] == [f"net.py, line {line})"], found
    assert sorted(file.name for file in (tmp_path / "tried").glob("*.begun")) == ["0.begun"]


def test_a_weight_in_other_memory_is_no_same(written: ConvertedModel, spec: str, tmp_path: Path) -> None:
    """It computes what torch computes, and no optimizer that has run trains it."""
    text = written.text.replace(
        "x = self.norm(x)\n", "self.norm.scale.set_data(self.norm.scale * 1)\n        x = self.norm(x)\n", 1
    )
    assert text != written.text
    (found,) = try_variations(f"{spec}:build", (), text, written.maker, written.variations[:1], tmp_path / "tried")
    assert "scale has other memory after a run, and an optimizer would not train it" in found.why, found


def test_many_problems_of_a_function_share_a_line() -> None:
    problems = [Problem("net.py", 3, "what a.X does was not seen", "other")]
    problems += [Problem("net.py", n, f"what a.X{n // 2} does was not seen", "chosen") for n in range(10, 17)]
    problems.append(Problem("net.py", 20, "what b does was not seen"))
    found = ConvertedModel("", "build", 0, problems[:1], "1x3", {}, not_run=problems, left_out=problems[-1:])
    assert source_lines("net.py:Net", Path("net_ms.py"), found)[1:] == [
        "1 place could not be written, and raises NotImplementedError:",
        "  net.py:3: what a.X does was not seen",
        "9 places did not run, and could not be read; running them raises NotImplementedError:",
        "  net.py:3: what a.X does was not seen",
        "  net.py:10-16: 7 places in chosen: what a.X5 does was not seen, what a.X6 does was not seen and 2 more",
        "  net.py:20: what b does was not seen",
        "1 thing left out, or assumed to be as in the run:",
        "  net.py:20: what b does was not seen",
    ]


def test_a_difference_is_not_hidden_by_the_rounding_of_torch_itself() -> None:
    """A model that computes otherwise in float64 would be the same as anything."""
    exact = np.linspace(-1.0, 1.0, 9)
    plain = (exact + 0.1).astype(np.float32)

    def compared(ours: np.ndarray) -> str:
        torch = {"plain/eval/0": plain, "exact/eval/0": exact}
        return _difference(torch, {"eval/0": ours.astype(np.float32)}, random=())

    assert compared(plain) == ""
    with pytest.raises(Undecided, match=r"^evaluation: torch's own float32 is 0\.1 of the largest value off float64$"):
        compared(plain + 0.05)
    assert compared(exact + 20).startswith("evaluation: differs by 20 of")


def test_torch_decides_where_values_are_finite() -> None:
    """Where float32 and float64 of torch's do not agree, nothing is said."""
    one = {"plain/eval/0": np.array([1.0, np.inf], np.float32), "exact/eval/0": np.array([1.0, np.inf])}
    assert _difference(one, {"eval/0": np.array([1.0, np.inf])}, random=()) == ""
    assert "infinite or nan" in _difference(one, {"eval/0": np.array([1.0, 2.0])}, random=())
    one["exact/eval/0"][1] = 2.0
    with pytest.raises(Undecided, match=r"^evaluation: torch's own float32 is infinite or nan in other places"):
        _difference(one, {"eval/0": np.array([1.0, np.inf])}, random=())


BEGUN = """
import sys
from pathlib import Path
import torch
from msmigrate.migrate.source.observe import torch_variations_worker

layer, place = torch.nn.Linear(2, 2), Path(sys.argv[1])
with torch.no_grad():
    layer.weight[0, 0], layer.weight[0, 1] = float("nan"), 1e30
torch_variations_worker.tried(layer, [(torch.ones(1, 2),)] * 2, {}, place, huge=False)
saved = torch.load(place.with_suffix(".pth"), weights_only=True)["weight"]
assert saved[0].abs().max() <= 0.02 and saved[1].abs().max() > 0.02, saved
"""


def test_weights_that_nobody_began_are_zeros_here(tmp_path: Path) -> None:
    """What torch.empty leaves in a parameter is not the same twice, and may be no number."""
    command = [sys.executable, "-W", "ignore", "-c", BEGUN, str(tmp_path / "0")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr[-2000:]


EMPTY = """
import torch
from torch import nn


class Squeezed(nn.Module):
    def __init__(self, width=8, reduction=8, slope=0.5):
        super().__init__()
        self.slope = slope
        self.down, self.up = nn.Linear(width, width // reduction), nn.Linear(width // reduction, width)

    def forward(self, x):
        return x * torch.sigmoid(self.up(self.slope * torch.relu(self.down(x))))


def build():
    return Squeezed(), (torch.ones(2, 8),)
"""


def test_a_variation_with_a_weight_without_values_is_left(tmp_path: Path) -> None:
    """No file of weights could be written for it, and none of the variations was tried."""
    (file := tmp_path / "squeezed.py").write_text(EMPTY)
    found = tried(write_source(f"{file}:build"), str(file), tmp_path)
    assert found["as it is"].verdict == "same"
    assert found["reduction=16"].verdict == "left" and "a weight has no values" in found["reduction=16"].why
    assert "same" in {one.verdict for text, one in found.items() if text not in ("as it is", "reduction=16")}, found


PARTS = """
import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self, width, act=nn.Sigmoid, floor=0.0, kinds=("a", "b"), alone=1):
        super().__init__()
        if alone > 1:
            raise ValueError("one alone")
        self.act, self.floor = act(), floor
        self.weight = nn.Parameter(torch.full((width,), 0.3))
        self.wide = len(kinds) > 1

    def forward(self, x, softly: bool = True):
        gate = self.act(x * self.weight)
        if not softly:
            gate = (gate > 0.5).to(x.dtype)
        if self.floor > 0:
            gate = gate - self.floor
        return x * gate


class Bent(nn.Module):
    # has no weights: the gradient of what it gets is compared, which comes from a layer

    def __init__(self, slope=0.5):
        super().__init__()
        self.slope = slope

    def forward(self, x):
        return torch.where(x > 0, x, self.slope * x)


class Block(nn.Module):
    def __init__(self, width, first=True, kind="add"):
        super().__init__()
        self.bent = Bent()
        self.norm, self.gate, self.first, self.kind = nn.LayerNorm(width), Gate(width), first, kind

    def forward(self, x):
        y = self.gate(self.norm(x)) if self.first else self.norm(self.gate(x))
        if self.kind == "cat":
            return torch.cat([x, y], -1)
        return x + self.bent(y)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(Block(8), Block(8))
        self.head = nn.Linear(8, 3)
        self.never = Gate(8)

    def forward(self, x, halve: bool = False):
        return self.head(self.blocks(x)) * (0.5 if halve else 1.0)


def build():
    return Net(), torch.rand(4, 8)
"""
SAME = {
    "as it is",
    "run with halve=True",
    "blocks.0: first=False",
    "blocks.0: kind='cat'",
    "blocks.0: kind='no_add'",
    "blocks.0.gate: floor=0.1",
    "blocks.0.gate: run with softly=False",
    "blocks.0.bent: slope=0.25",
}


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("parts") / "parts.py"
    file.write_text(PARTS)
    return str(file)


@pytest.fixture(scope="module")
def with_parts(parts: str) -> ConvertedModel:
    return write_source(f"{parts}:build")


def test_the_classes_inside_are_varied_each_alone(with_parts: ConvertedModel, parts: str, tmp_path: Path) -> None:
    """On what they get in the model, also where the model has no argument for it."""
    found = tried(with_parts, parts, tmp_path)
    assert {text for text, one in found.items() if one.verdict == "same"} == SAME, found
    others = {text: one.verdict for text, one in found.items() if text not in SAME}
    assert others == {
        "blocks.0: width=16": "left",
        "blocks.0.gate: width=16": "left",
        "blocks.0.gate: alone=2": "both",
    }
    lines = tried_lines([*found.values()])
    assert lines == [
        "the same in both modes, and after training: as it is, run with halve=True",
        "the same in 6 variations of the classes inside, each alone: Block (3), Bent (1), Gate (2)",
        "3 others of the classes inside raise in both, or do not run so in torch",
    ]


@pytest.mark.parametrize(
    ("old", "new", "differ"),
    [
        ("self.norm(self.gate(x))", "self.gate(x)", ["blocks.0: first=False"]),
        ("gate - self.floor", "gate + self.floor", ["blocks.0.gate: floor=0.1"]),
        ("gate > 0.5", "gate > 0.4", ["blocks.0.gate: run with softly=False"]),
        ("[x, y]", "[y, x]", ["blocks.0: kind='cat'"]),
        ("self.slope = slope", "self.slope = 0.5", ["blocks.0.bent: slope=0.25"]),
        ("0.5 if halve", "0.4 if halve", ["run with halve=True"]),
    ],
)
def test_what_did_not_run_inside_is_compared(
    with_parts: ConvertedModel, parts: str, tmp_path: Path, old: str, new: str, differ: list[str]
) -> None:
    found = tried(with_parts, parts, tmp_path, one=(old, new))
    assert [text for text, one in found.items() if one.verdict == "differs"] == differ, found
    assert any("differs by" in line or "torch gives" in line for line in tried_lines([*found.values()]))


def test_what_torch_alone_refuses_of_a_class_inside_is_not_judged(
    with_parts: ConvertedModel, parts: str, tmp_path: Path
) -> None:
    """It may be made in its model alone, by settings that only that gets."""
    found = tried(with_parts, parts, tmp_path, one=('raise ValueError("one alone")', "pass"))
    assert found["blocks.0.gate: alone=2"].verdict == "left"
    assert "torch refuses it: ValueError: one alone" in found["blocks.0.gate: alone=2"].why


def test_a_class_inside_that_raises_is_said(with_parts: ConvertedModel, parts: str, tmp_path: Path) -> None:
    found = tried(with_parts, parts, tmp_path, one=("gate - self.floor", "gate - self.bound"))
    line = next(line for line in tried_lines([*found.values()]) if line.startswith("raises"))
    assert line.startswith("raises: blocks.0.gate: floor=0.1: AttributeError"), line


def test_no_more_is_begun_when_there_is_no_time(
    with_parts: ConvertedModel, parts: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what the model is as it is is always compared."""
    monkeypatch.setattr("msmigrate.migrate.source.variations.SECONDS", 0.0)
    found = tried(with_parts, parts, tmp_path)
    assert [text for text, one in found.items() if one.verdict == "same"] == ["as it is"]
    assert {one.why for text, one in found.items() if text in SAME - {"as it is"}} == {"there was no time for it"}


QUIET = '''
import contextlib
import warnings

import torch
from torch import nn


class Quiet(nn.Module):
    """Loops that count, and contexts that compute nothing, of which one side runs."""

    def __init__(self, quiet=True, doubled=False, width=3):
        super().__init__()
        parts = 1
        if doubled:
            while parts * 2 <= width:
                parts *= 2
            else:
                parts += 1
        self.quiet, self.mix = quiet, nn.Linear(4, 2 * parts)

    def forward(self, x, few: bool = True):
        if self.quiet:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                x = x + 1
        else:
            with warnings.catch_warnings(), contextlib.nullcontext():
                warnings.filterwarnings("ignore", category=UserWarning)
                y = x * 2
            x = y - 1
        if not few:
            left = 5
            while left:
                left -= 1
                if left == 3:
                    continue
                with contextlib.nullcontext():
                    x = x * 0.9
                if left < 2:
                    break
        return self.mix(x)


def build():
    return Quiet(), torch.rand(3, 4)
'''


def test_loops_and_contexts_that_did_not_run_are_read(tmp_path: Path) -> None:
    file = tmp_path / "quiet.py"
    file.write_text(QUIET)
    written = write_source(f"{file}:build")
    assert not written.not_run and not written.problems and not written.left_out
    for line in ("while parts * 2 <= width:", "while left:", "break", "continue"):
        assert line in written.text
    for line in ("with ", "warnings", "contextlib"):  # which graph mode does not compile
        assert line not in written.text, written.text
    found = tried(written, str(file), tmp_path)
    assert {text: one.verdict for text, one in found.items()} == dict.fromkeys(
        ("as it is", "run with few=False", "quiet=False", "doubled=True", "width=6"), "same"
    ), found
