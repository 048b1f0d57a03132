"""What a user's function may return, and what becomes of what it raises."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msmigrate.errors import BadInput, WorkerFailed
from msmigrate.parity.align.user_model import checked, given, run_users, single, takes_optimizer
from safetensors.numpy import save_file


class Net:
    pass


class Optimizer(Net):
    """MindSpore's are Cells as its nets are, and can be called."""

    def __call__(self, gradients: Any) -> None:
        raise AssertionError


def test_a_model_or_a_dict_with_one() -> None:
    net = Net()
    assert given(net, Net, "f").model is net and given(net, Net, "f").parts == []
    assert given((net, "its inputs"), Net, "f").model is net
    found = given({"model": net, "loss": print}, Net, "f")
    assert found.model is net and found.parts == ["loss"]
    step = lambda model, optimizer, images, labels: {}  # noqa: E731
    assert given({"model": net, "optimizer": print, "step": step}, Net, "f").parts == ["optimizer", "step"]


BAD: list[tuple[Any, str]] = [
    (3, "f returns int: expected a .* Net, or a dict"),
    ({}, "'model' is NoneType"),
    ({"model": 3}, "'model' is int"),
    ({"model": Net(), "lost": print}, "a dict with 'lost'; it may have model, loss, optimizer, step"),
    ({"model": Net(), "loss": 3}, "'loss' is int: expected a function"),
    ({"model": Net(), "optimizer": print, "step": lambda m, x, y: {}}, "its step does not take"),
    (
        {"model": Net(), "optimizer": Optimizer()},
        "'optimizer' is Optimizer: expected a function of the parameters, or an optimizer",
    ),
]


@pytest.mark.parametrize(("returned", "why"), BAD)
def test_anything_else_is_one_line(returned: Any, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        given(returned, Net, "f")


def test_an_error_of_the_users_says_where() -> None:
    def fails() -> None:
        raise KeyError("weights\nmissing")

    with pytest.raises(WorkerFailed) as failed:
        run_users("--torch a.py:f", fails)
    message = str(failed.value)
    assert message.startswith("--torch a.py:f failed: KeyError: ") and "test_given.py, line" in message
    assert "\n" not in message
    with pytest.raises(BadInput, match="mine"):
        run_users("f", lambda: (_ for _ in ()).throw(BadInput("mine")))


def test_the_place_is_the_users_file_whatever_it_is_called(tmp_path: Path) -> None:
    for name in ("given.py", "user_model.py"):
        scope: dict[str, Any] = {}
        file = tmp_path / name
        exec(compile("def fails():\n    raise ValueError('x')\n", str(file), "exec"), scope)
        with pytest.raises(WorkerFailed, match=rf"\({name}, line 2\)"):
            run_users("f", scope["fails"])


def test_steps_and_what_they_return() -> None:
    assert takes_optimizer(lambda model, optimizer, images, labels: {})
    assert not takes_optimizer(lambda model, images, labels: {})
    with pytest.raises(BadInput, match="the step takes 1 arguments"):
        takes_optimizer(lambda model: {})
    tensor = Net()
    assert checked({"loss": tensor, "logits": tensor}, Net, "torch").logits is tensor
    assert checked(tensor, Net, "torch").loss is tensor


def test_a_loss_of_the_recipe_takes_one_tensor() -> None:
    assert single(tensor := Net(), Net, "torch") is tensor
    with pytest.raises(BadInput, match="the torch model returns tuple of 2 tensors in training mode: bring a 'loss'"):
        single((Net(), Net()), Net, "torch")
    with pytest.raises(BadInput, match="returns SimpleNamespace of 0"):
        single(SimpleNamespace(), Net, "torch")


def test_a_buffer_that_a_forward_pass_made_larger_is_loaded(tmp_path: Path) -> None:
    """timm's ConViT makes its positions for the size of its input: the search for causes stopped at their shape."""
    import torch
    from msmigrate.parity.align.torch_user_model import START, load_start

    net = torch.nn.BatchNorm1d(3)
    net.register_buffer("positions", torch.zeros(1, 1), persistent=False)
    wanted = {"positions": torch.arange(12.0).reshape(3, 4), "running_mean": torch.ones(3), "weight": torch.ones(3) * 2}
    save_file({name: tensor.numpy() for name, tensor in wanted.items()}, tmp_path / START)
    load_start(net, tmp_path)
    found = {**dict(net.named_parameters()), **dict(net.named_buffers())}
    assert all(torch.equal(found[name], tensor) for name, tensor in wanted.items())
