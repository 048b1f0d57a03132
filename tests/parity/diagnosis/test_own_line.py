"""The user's own line, mended: what a fix prints of the call that makes a Cell."""

from __future__ import annotations

import pytest
from msmigrate.parity.diagnosis.context import own_line
from msmigrate.parity.replay.module_calls import Made
from msmigrate.parity.result import CellChange

NORM, CONV, ACT = "mindspore.nn.BatchNorm2d", "mindspore.nn.Conv2d", "mindspore.nn.SiLU"
# the line, what made it, what is to be written, and what is printed
LINES = {
    "named": (
        "self.bn = nn.BatchNorm2d(16, momentum=0.1)",
        NORM,
        {"momentum": "0.9"},
        False,
        "BatchNorm2d(16, momentum=0.9)",
    ),
    "left out": (
        "self.bn = nn.BatchNorm2d(16)",
        NORM,
        {"eps": "0.001"},
        False,
        "self.bn = nn.BatchNorm2d(16, eps=0.001)",
    ),
    "by position": (
        "self.c = Conv2d(3, 8, 3, 2)",
        CONV,
        {"stride": "(1, 1)"},
        False,
        "self.c = Conv2d(3, 8, 3, (1, 1))",
    ),
    "an expression": ("self.bn = nn.BatchNorm2d(width, eps=eps)", NORM, {"eps": "1e-05"}, False, "(width, eps=1e-05)"),
    "another class": ("self.act = nn.SiLU()", ACT, {}, True, "self.act = nn.ReLU()"),
    "a helper": ("self.c = conv(3, 8)", CONV, {"stride": "2"}, False, "net.py, line 7 makes it: self.c = conv(3, 8)"),
    "two": ("self.a, self.b = nn.SiLU(), nn.SiLU()", ACT, {}, True, "net.py, line 7 makes it: self.a, self.b = "),
    "a mapping": (
        "self.bn = nn.BatchNorm2d(8, **more)",
        NORM,
        {"eps": "0.1"},
        False,
        "makes it: self.bn = nn.BatchNorm2d(8, **more)",
    ),
    "cut off": ("self.bn = nn.BatchNorm2d(8,", NORM, {"eps": "0.1"}, False, "makes it: self.bn = nn.BatchNorm2d(8,"),
}


@pytest.mark.parametrize("case", LINES)
def test_a_line_is_mended_or_shown(case: str) -> None:
    line, target, arguments, whole, printed = LINES[case]
    made = Made(target, {}, ("in_channels", "out_channels", "kernel_size", "stride"), line, "net.py, line 7")
    change = CellChange(("a",), "mindspore.nn.ReLU" if whole else target, arguments, whole)
    said = own_line(made, change)
    assert printed in said and said.startswith("net.py, line 7"), said


def test_a_cell_that_no_line_makes_has_none() -> None:
    assert own_line(Made(NORM, {}), CellChange(("a",), NORM, {"eps": "0.1"})) == ""
