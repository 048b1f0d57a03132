"""A small model of somebody's own, as MindSpore source."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from msmigrate.migrate import model_spec
from msmigrate.migrate.source.convert_model import formatted
from msmigrate.migrate.source.emit.file_builder import Emitted, build_file
from msmigrate.migrate.source.emit.names_and_imports import Imports
from msmigrate.migrate.source.observe.observations import Observations

MODEL = '''
from functools import partial

import torch
from torch import nn
import torch.nn.functional as F


class Block(nn.Module):
    """A residual block."""

    def __init__(self, channels: int, norm=nn.BatchNorm2d, stride: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, stride=stride, padding=1, bias=False)
        self.norm = norm(channels)
        self.short = nn.AvgPool2d(2) if stride == 2 else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = F.relu(self.norm(self.conv(x)), inplace=True)
        if self.short is not None:
            x = self.short(x)
        return out + x


class Stem(nn.Module):
    def __init__(self, width: int, conv=nn.Conv2d) -> None:
        super().__init__()
        self.conv = conv(3, width, 1, bias=False)

    def forward(self, x):
        return self.conv(torch.vander(x[0, 0, 0]).new_zeros(x.shape) + x)


class Net(nn.Module):
    def __init__(self, depth: int, width: int = 8, momentum: float = 0.1, old: bool = False) -> None:
        super().__init__()
        self.stem = Stem(width)
        norm = partial(nn.BatchNorm2d, momentum=momentum, eps=1e-3)
        self.blocks = nn.Sequential(*[Block(width, norm, stride=2 if i == 1 else 1) for i in range(depth)])
        if old:
            self.head = nn.Conv2d(width, 10, 1)
        else:
            self.head = nn.Linear(width, 10)
        self.register_buffer("scale", torch.ones(1))
        nn.init.zeros_(self.head.bias)

    def forward(self, x):
        x = self.blocks(self.stem(x))
        x = torch.flatten(F.adaptive_avg_pool2d(x, 1), 1)
        return self.head(x) * self.scale


def build():
    return Net(3, momentum=0.2)
'''


LINE = 1 + MODEL[: MODEL.index("torch.vander")].count("\n")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Emitted:
    file = tmp_path_factory.mktemp("model") / "model.py"
    file.write_text(MODEL)
    report = model_spec.ask("source.observe.torch_observe_worker", f"{Path(file)}:build", "convert-model", "2x3x16x16")
    return build_file(Observations(report), "build", "A net.")


def test_it_says_what_a_person_would(source: Emitted) -> None:
    for line in (
        "class Block(nn.Cell):",
        "def __init__(self, channels: int, norm=nn.BatchNorm2d, stride: int=1) -> None:",
        "self.conv = nn.Conv2d(channels, channels, 3, stride=stride, pad_mode='pad', padding=1)",
        "self.norm = norm(channels)",
        "out = ops.relu(self.norm(self.conv(x)))",
        "norm = partial(nn.BatchNorm2d, eps=0.001, momentum=1 - momentum)",
        "self.blocks = nn.SequentialCell(*[Block(width, norm, stride=2 if i == 1 else 1) for i in range(depth)])",
        "self.head = nn.Dense(width, 10)",
        "self.scale = Parameter(",
        "return Net(3, momentum=momentum, **kwargs)",
    ):
        assert line in source.text, line


def test_the_arguments_of_a_class_in_a_variable_are_all_written(source: Emitted) -> None:
    """It brings torch's defaults along, bias among them, and what MindSpore would do anyway has to be said."""
    assert "conv=partial(nn.Conv2d, pad_mode='valid', has_bias=True)" in source.text
    assert "self.conv = conv(3, width, 1, has_bias=False)" in source.text


def test_what_has_no_row_is_told_with_its_place(source: Emitted) -> None:
    assert [(problem.line, problem.text) for problem in source.problems] == [
        (LINE, "torch.vander has no row in the mapping table")
    ]
    assert "not_converted('torch.vander has no row in the mapping table')" in source.text
    assert "raise NotImplementedError(why)" in source.text


def test_what_never_ran_is_read_and_marked(source: Emitted) -> None:
    old = "if old:\n            # not run\n            self.head = nn.Conv2d(width, 10, 1, pad_mode='valid'"
    assert old in source.text
    assert "import torch" not in source.text


WITH_GAPS = """
import torch
from torch import nn


class Net(nn.Module):
    def forward(self, xs):
        count = len(xs)
        unread = count + 1
        longest = max(x.size(0) for x in xs)
        return padded(xs, longest, 3)[:, :count] + torch.vander(xs[0][0]).sum()


def padded(xs, longest, least):
    sizes = [x.size(0) for x in xs]
    return torch.vander(xs[0][0], max(longest, *sizes)) * 0 + xs[0][0]


def build():
    return Net(), ([torch.ones(4, 4)],)
"""


def test_what_a_gap_needs_is_written(tmp_path: Path) -> None:
    file = tmp_path / "gaps.py"
    file.write_text(WITH_GAPS)
    report = model_spec.ask("source.observe.torch_observe_worker", f"{file}:build", "convert-model")
    text = formatted(build_file(Observations(report), "build", "A net.").text, "a net")
    for line in (
        "        longest = max(x.shape[0] for x in xs)\n",
        "padded(xs, longest)[:, :count]",
        "def padded(xs, longest):\n    sizes = [x.shape[0] for x in xs]\n    return not_converted(",
    ):
        assert line in text, f"{line}\n{text}"
    assert "unread" not in text


CHECKED = """
from torch import nn


class Head(nn.Module):
    def __init__(self, batch, width, most=8, spare=None):
        super().__init__()
        self.most = most
        self.fc = nn.Linear(width, 2)

    def forward(self, x):
        assert x.shape[1] <= self.most, f"{x.shape[1]} are too many"
        assert len(x) > 0, words(x)
        assert x.isfinite().all()
        return self.fc(x)


def words(x):
    return "nothing"


def build():
    return Head(2, 4)
"""


GROWING = """
from torch import nn


class Growing(nn.Sequential):
    def __init__(self, widths, out=2):
        widths.insert(0, 4)
        super().__init__(*map(nn.Linear, widths, widths[1:]), nn.Linear(widths[-1], out))
"""


def test_a_list_that_a_class_changes_is_the_one_that_was_typed(tmp_path: Path) -> None:
    """It was the list that was left, of [4, 3] as [4, 4, 4, 3], and one for all calls of the new function."""
    file = tmp_path / "growing.py"
    file.write_text(GROWING)
    of = f"{file}:Growing(widths=[4, 3])"
    report = model_spec.ask("source.observe.torch_observe_worker", of, "convert-model", "2x4")
    text = build_file(Observations(report), "build", "A net.").text
    assert "def build(widths=None, **kwargs: Any)" in text
    assert "    if widths is None:\n        widths = [4, 3]\n    return Growing(widths=widths, **kwargs)" in text


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("checked") / "model.py"
    file.write_text(CHECKED)
    report = model_spec.ask("source.observe.torch_observe_worker", f"{file}:build", "convert-model", "2x4")
    return build_file(Observations(report), "build", "A net.").text


def test_what_a_class_is_given_before_others_stays(checked: str) -> None:
    """`Head(4, 8)` was another model where the argument that nobody reads went: 4 was the width. One behind all others
    may go, for what is given more of raises."""
    assert "def __init__(self, batch, width, most=8):" in checked
    assert "return Head(2, 4, **kwargs)" in checked


def test_what_a_forward_refuses_is_refused(checked: str) -> None:
    """An assertion was left out, and what torch raises at was computed. Of tensors' values none is asked."""
    assert "assert x.shape[1] <= self.most, f'{x.shape[1]} are too many'" in checked
    assert "assert len(x) > 0, words(x)\n" in checked and "\ndef words(x):" in checked
    assert "isfinite" not in checked


def test_what_only_norms_of_weights_read_is_left_out_without_them() -> None:
    for name in ("PaddedConv1d", "PaddedConv2d", "ConvTranspose1d"):
        head = Imports()
        head.name(f"msmigrate.nn.{name}")
        assert "with_norm" not in head.text(ast.parse(""))
        head.name("msmigrate.nn.weight_norm")
        assert "    with_norm = True" in head.text(ast.parse(""))


COMMENTED = """
import torch
from torch import nn


class Net(nn.Module):  # the net
    # units

    width = 4  # in all
    # not read
    old = 3

    def __init__(
        self,
        new=True,  # how it is made
        rate=0.5,  # for nobody
    ):
        super().__init__()
        spare = 3  # for nobody either
        self.new = new
        if torch.__version__ > "1.0":  # new torch
            # made
            self.part = nn.Linear(4, self.width)
        # self.other = nn.Pool()

    def forward(self, x, scale=None):  # (B, 4)
        if scale is not None:  # scaled
            x = x * scale
        elif x.ndim > 5:  # big
            x = x * 2
        else:  # small
            assert x.sum() > -100
            x = self.part(x)
            # self.kept = x

        return x  # (B, 4)

    def search(self, x):
        # what to look for
        y = strange(x)
        return y.weird()

    # def unused(self): pass


def build():
    return Net(), (torch.randn(2, 4),)
"""
KEPT_COMMENTS = """
class Net(nn.Cell):  # the net
    # units
    width = 4  # in all

    # new: how it is made
    def __init__(self, new=True):
        super().__init__()
        self.new = new
        # new torch
        # made
        self.part = nn.Dense(4, self.width)
        # self.other = nn.Pool()

    def construct(self, x, scale=None):  # (B, 4)
        if scale is not None:  # scaled
            # not run
            x = x * scale
        elif x.ndim > 5:
            # not run
            # big
            x = x * 2
        else:
            # small
            x = self.part(x)
            # self.kept = x
        return x  # (B, 4)

    def search(self, x):
        raise NotImplementedError(
"""


def test_comments_stay_with_what_they_are_for(tmp_path: Path) -> None:
    file = tmp_path / "commented.py"
    file.write_text(COMMENTED)
    report = model_spec.ask("source.observe.torch_observe_worker", f"{file}:build", "convert-model")
    text = formatted(build_file(Observations(report), "build", "A net.").text, "a net")
    assert KEPT_COMMENTS in text, text
    assert "        )\n\n    # def unused(self): pass\n\n\ndef" in text, text
