"""An option is declared once: a command has those of its dataclass, with their ranges, choices and defaults."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pytest
from msmigrate.cli import convert_model, export, parity, train
from msmigrate.errors import BadInput
from msmigrate.option_fields import check, options_in
from msmigrate.parity.options import ParityOptions
from msmigrate.training.options import ExportOptions, ServeOptions, TrainOptions

BY_WORD = {"checkpoint", "recipe", "out"}  # arguments, and what a command says of its own
COMMANDS: list[tuple[click.Command, type[Any], set[str]]] = [
    (parity.parity_step, ParityOptions, {"outputs", "noise"}),
    (train.train, TrainOptions, set()),
    (export.export, ExportOptions, set()),
    (export.serve, ServeOptions, {"torch"}),
]


@pytest.mark.parametrize(("command", "kind", "kept"), COMMANDS, ids=lambda one: getattr(one, "name", None))
def test_a_command_has_every_option_of_its_dataclass(command: click.Command, kind: type[Any], kept: set[str]) -> None:
    there = {param.name for param in command.params}
    assert {field.name for field in fields(kind)} - BY_WORD - kept <= there


@pytest.mark.parametrize(("command", "kind", "kept"), COMMANDS, ids=lambda one: getattr(one, "name", None))
def test_and_they_are_what_was_declared(command: click.Command, kind: type[Any], kept: set[str]) -> None:
    by_name = {param.name: param for param in command.params}
    for name, (option, _, default) in options_in(kind).items():
        if name in kept:
            continue
        param = by_name[name]
        assert isinstance(param, click.Option) and f"--{option.flag or name.replace('_', '-')}" in param.opts
        if isinstance(param.type, click.IntRange | click.FloatRange):
            assert (param.type.min, param.type.max) == (option.least, option.most)
        if option.choices:
            assert isinstance(param.type, click.Choice) and tuple(param.type.choices) == tuple(option.choices)
        assert param.is_flag if default is False else default in (None, ()) or param.default == default


def test_a_command_may_say_an_option_in_words_of_its_own() -> None:
    (steps,) = [param for param in convert_model.convert_model.params if param.name == "steps"]
    assert isinstance(steps, click.Option) and steps.help == "Training steps to prove." and steps.default == 3


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: TrainOptions(epochs=0), "epochs is 0: expected 1 or more"),
        (lambda: TrainOptions(target="TPU"), "target is 'TPU': expected one of Ascend, GPU, CPU"),
        (lambda: TrainOptions(seed=2**31), "seed is 2147483648: expected 0 to 2,147,483,647"),
        (lambda: TrainOptions(amp_dtype="float16"), "--amp-dtype is the dtype of --amp"),
        (lambda: ExportOptions(checkpoint=Path("x"), out=Path("y"), form="tflite"), "form is 'tflite'"),
        (lambda: ExportOptions(checkpoint=Path("x"), out=Path("y"), enc_mode="AES-GCM"), "give both"),
        (lambda: ServeOptions(checkpoint=Path("x"), port=70000), "port is 70000: expected 0 to 65,535"),
    ],
)
def test_the_library_refuses_what_the_command_line_does(make: Any, said: str) -> None:
    with pytest.raises(BadInput, match=said.replace("(", r"\(")):
        make()


def test_a_choice_in_small_letters() -> None:
    check(TrainOptions(target="cpu"))
