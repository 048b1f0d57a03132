"""The weights are found under the keys that scripts use, averages only when asked for, and nobody guesses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msmigrate.errors import Ambiguous, BadCheckpoint, Unsupported
from msmigrate.migrate.checkpoint.formats.pth_reader import TorchZip
from msmigrate.migrate.checkpoint.formats.pth_tensors import Call
from msmigrate.migrate.checkpoint.formats.reader import Checkpoint
from msmigrate.migrate.checkpoint.formats.registry import open_source
from tiny_checkpoints import SMALL, floats, group, integer, mapping, named, rebuilt, state_dict, text, write
from tiny_legacy import module

WEIGHTS, STORAGES = state_dict(SMALL)
STORAGES = {**STORAGES, "other": floats(2).content}
VECTOR = rebuilt(floats(2), "other")
OTHER = mapping([("own.a", VECTOR)])
USUAL = ["state_dict", "model", "model_state_dict", "model_state", "net", "network", "module", "weights", "params"]
AVERAGES = ["ema", "model_ema", "state_dict_ema", "ema_state_dict", "params_ema", "averaged_model", "shadow"]


def read(folder: Path, content: dict[str, Any], key: str | None = None) -> Checkpoint:
    """What a nested dict of opcodes is read as."""
    with open_source(str(write(folder / "x.pth", made(content), STORAGES))) as source:
        return source.checkpoint(key)


def made(content: dict[str, Any] | bytes) -> bytes:
    return content if isinstance(content, bytes) else mapping((name, made(value)) for name, value in content.items())


@pytest.mark.parametrize("wrapper", [*USUAL, *AVERAGES, "anything"])
def test_every_habit_is_known_and_the_rest_is_kept_inert(tmp_path: Path, wrapper: str) -> None:
    found = read(tmp_path, {"epoch": integer(12), wrapper: WEIGHTS, "optimizer": {"state": {"a": {"step": VECTOR}}}})
    assert (found.wrapper, list(found.tensors)) == (wrapper, list(SMALL))
    assert found.others == {"epoch": "12", "optimizer": "a dict of 1 (state)"}
    assert found.training is not None
    assert found.training["epoch"] == 12
    assert type(found.training["optimizer"]["state"]["a"]["step"]) is Call


def test_without_anything_beside_there_is_no_training(tmp_path: Path) -> None:
    assert read(tmp_path, {"model": WEIGHTS}).training is None
    assert read(tmp_path, {"w": VECTOR}).training is None


@pytest.mark.parametrize("first", USUAL)
@pytest.mark.parametrize("second", ["model", "params"])
def test_two_usual_keys_need_a_choice_unless_they_hold_the_same(tmp_path: Path, first: str, second: str) -> None:
    if first == second:
        return
    names = ", ".join(sorted((first, second), key=USUAL.index))
    with pytest.raises(Ambiguous, match=f"holds tensors under {names}; say which with --key"):
        read(tmp_path, {second: OTHER, first: WEIGHTS})
    assert read(tmp_path, {second: OTHER, first: WEIGHTS}, first).wrapper == first
    both = read(tmp_path, {second: WEIGHTS, first: WEIGHTS})
    assert both.wrapper == min(first, second, key=USUAL.index)


def test_a_state_dict_beside_the_model_it_came_from_is_the_same(tmp_path: Path) -> None:
    net = module("mypkg.Net", {"own.a": VECTOR})
    found = read(tmp_path, {"model": net, "state_dict": OTHER})
    assert (found.wrapper, found.format) == ("state_dict", "torch zip")


@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize("usual", ["model", "params", "anything"])
def test_an_average_is_chosen_only_when_asked_for(tmp_path: Path, average: str, usual: str) -> None:
    content = {average: OTHER, usual: WEIGHTS}
    found = read(tmp_path, content)
    assert found.wrapper == usual
    assert found.others == {average: f"a dict of 1 (own.a); --key {average} converts it"}
    assert list(read(tmp_path, content, average).tensors) == ["own.a"]


def test_two_averages_alone_need_a_choice(tmp_path: Path) -> None:
    with pytest.raises(Ambiguous, match="under ema, shadow"):
        read(tmp_path, {"ema": WEIGHTS, "shadow": OTHER})


def test_an_average_with_more_around_it(tmp_path: Path) -> None:
    content = {"model": WEIGHTS, "ema": {"decay": integer(1), "shadow": OTHER}}
    assert read(tmp_path, content).others["ema"] == "a dict of 2 (decay, shadow); --key ema converts it"
    assert read(tmp_path, content, "ema").wrapper == "ema.shadow"
    assert read(tmp_path, {"model": WEIGHTS, "ema": {"decay": integer(1)}}).others["ema"] == "a dict of 1 (decay)"


def test_one_chain_of_dicts_is_followed(tmp_path: Path) -> None:
    inside = {"model": WEIGHTS, "ema": OTHER, "epoch": integer(3)}
    found = read(tmp_path, {"checkpoint": {"state": inside}, "epoch": integer(4), "args": {"lr": integer(1)}})
    assert found.wrapper == "checkpoint.state.model"
    assert found.others == {
        "checkpoint.state.ema": "a dict of 1 (own.a); --key checkpoint.state.ema converts it",
        "checkpoint.state.epoch": "3",
        "epoch": "4",
        "args": "a dict of 1 (lr)",
    }
    assert found.training is not None
    assert list(found.training) == ["ema", "epoch", "args"]
    assert found.training["epoch"] == 3  # the one that is nearer to the weights


def test_a_chain_is_followed_three_keys_deep_and_a_key_four(tmp_path: Path) -> None:
    content = {"a": {"b": {"c": {"d": WEIGHTS}}}}
    with pytest.raises(BadCheckpoint, match="holds no tensors"):
        read(tmp_path, content)
    for key in ("a.b.c.d", "a.b.c", "a"):
        if key == "a":
            assert read(tmp_path, content, key).wrapper == "a.b.c.d"
        assert list(read(tmp_path, content, key).tensors) == list(SMALL)
    with pytest.raises(BadCheckpoint, match=r"no state dict under --key e\.a\.b\.c\.d"):
        read(tmp_path, {"e": content}, "e.a.b.c.d")


def test_keys_with_dots_of_their_own(tmp_path: Path) -> None:
    content = {"a.b": WEIGHTS, "a": {"b": OTHER, "c.d": OTHER}}
    assert read(tmp_path, content, "a.b").wrapper == "a.b"
    assert list(read(tmp_path, content, "a.b").tensors) == list(SMALL)
    assert list(read(tmp_path, content, "a.c.d").tensors) == ["own.a"]


def test_two_networks_need_a_choice(tmp_path: Path) -> None:
    content = {"generator": {"state_dict": WEIGHTS}, "critic": {"state_dict": OTHER}}
    with pytest.raises(Ambiguous, match=r"under generator\.state_dict, critic\.state_dict; say which"):
        read(tmp_path, content)
    assert list(read(tmp_path, content, "critic").tensors) == ["own.a"]
    with pytest.raises(Ambiguous, match=r"under model\.a, model\.b; say which"):
        read(tmp_path, {"model": {"a": WEIGHTS, "b": WEIGHTS}})
    with pytest.raises(Ambiguous, match=r"under both\.a, both\.b; say which"):
        read(tmp_path, {"both": {"a": WEIGHTS, "b": OTHER}}, "both")


def test_many_choices_are_named_in_part(tmp_path: Path) -> None:
    with pytest.raises(Ambiguous, match="under n0, n1, n2, n3, n4, n5, n6, n7, …; say which"):
        read(tmp_path, {f"n{number}": OTHER for number in range(20)})


def test_what_optimizers_keep_is_no_choice(tmp_path: Path) -> None:
    beside = {"optimizer": {"momentum": VECTOR}, "rng_state": {"cpu": VECTOR}, "scaler": {"scale": VECTOR}}
    assert read(tmp_path, {**beside, "anything": WEIGHTS}).wrapper == "anything"
    with pytest.raises(BadCheckpoint, match="holds no tensors"):
        read(tmp_path, beside)
    assert read(tmp_path, beside, "optimizer").wrapper == "optimizer"


@pytest.mark.parametrize("key", ["a", "epoch", "model.a", "model.own", "", ".", "model..", "optimizer"])
def test_a_key_that_leads_nowhere(tmp_path: Path, key: str) -> None:
    with pytest.raises(BadCheckpoint, match=r"has no state dict under --key .*; there is model"):
        read(tmp_path, {"model": OTHER, "epoch": integer(3), "optimizer": {"lr": integer(1)}}, key)


@pytest.mark.parametrize("beside", ["rng_state", "best"])
def test_a_tensor_beside_the_weights_does_not_hide_them(tmp_path: Path, beside: str) -> None:
    content = {beside: VECTOR, "model": WEIGHTS}
    assert read(tmp_path, content).wrapper == "model"
    assert read(tmp_path, {"checkpoint": content}).wrapper == "checkpoint.model"
    assert read(tmp_path, {"checkpoint": content}, "checkpoint").wrapper == "checkpoint.model"
    assert read(tmp_path, {"rng_state": VECTOR, "anything": WEIGHTS}).wrapper == "anything"


def test_unknown_objects_are_placeholders(tmp_path: Path) -> None:
    """A script's own configuration beside the weights, and among them."""
    config = named("mypkg.config", "Config") + b")\x81" + mapping([("lr", integer(1))]) + b"b"
    items = named("mypkg.config", "Options") + b")\x81(" + text("lr") + integer(1) + b"u"
    listed = named("collections", "deque") + b")R(" + integer(1) + integer(2) + b"e" + integer(3) + b"a"
    keyed = b"}" + named("mypkg", "Color") + group(integer(1)) + b"R" + integer(1) + b"s"
    found = read(tmp_path, {"model": WEIGHTS, "args": config, "options": items, "losses": listed, "colors": keyed})
    assert found.others == {
        "args": "an object of mypkg.config.Config",
        "options": "an object of mypkg.config.Options",
        "losses": "an object of collections.deque",
        "colors": "a dict of 1",
    }
    found = read(tmp_path, {"own.a": VECTOR, "config": config, "own.b": VECTOR})
    assert (list(found.tensors), found.refused) == (["own.a", "own.b"], {})
    assert found.others == {"config": "an object of mypkg.config.Config"}


@pytest.mark.parametrize("maker", ["mypkg._utils", "mytorch._utils"])
def test_only_torch_makes_tensors(tmp_path: Path, maker: str) -> None:
    """Another's function of the same name may mean anything, so its storage is not taken for a tensor, nor left out."""
    foreign = VECTOR.replace(b"ctorch._utils", b"c" + maker.encode())
    found = read(tmp_path, {"own.a": VECTOR, "own.b": foreign})
    assert list(found.tensors) == ["own.a"]
    assert f"it is built by {maker}._rebuild_tensor_v2, which is not part of torch" in found.refused["own.b"]
    with pytest.raises(BadCheckpoint, match="holds no tensors"):
        read(tmp_path, {"own.b": foreign})


def test_tensors_of_other_kinds_and_times(tmp_path: Path) -> None:
    old = named("torch.nn.parameter", "Parameter") + group(VECTOR) + b"R" + group(b"\x88", b"\x89", b"}") + b"b"
    plain = VECTOR.replace(b"_v2", b"").replace(b"\x89" + named("collections", "OrderedDict") + b")R", b"")
    kept = named("torch._tensor", "_rebuild_from_type_v2") + group(
        *(named("torch._utils", "_rebuild_tensor_v2"), named("torch", "Tensor")),
        *(VECTOR.removeprefix(named("torch._utils", "_rebuild_tensor_v2")).removesuffix(b"R"), b"}"),
    )
    new = named("torch._utils", "_rebuild_something_new") + group(VECTOR) + b"R"
    found = read(tmp_path, {"old": old, "plain": plain, "kept": kept + b"R", "new": new})
    assert list(found.tensors) == ["old", "plain", "kept"]
    assert len(set(found.tensors.values())) == 1
    assert "builds it with _rebuild_something_new" in found.refused["new"]


def test_inert_values_of_the_training_can_be_asked_for(tmp_path: Path) -> None:
    content = {"model": WEIGHTS, "a": VECTOR, "b": integer(1), "net": module("mypkg.Net", {"w": VECTOR}), "c": OTHER}
    write(tmp_path / "x.pth", made(content), STORAGES)
    with TorchZip(str(tmp_path / "x.pth"), (tmp_path / "x.pth").open("rb")) as source:
        assert isinstance(source, TorchZip)
        training = source.checkpoint("model").training or {}
        assert source.tensor(training["a"]) == source.tensor(source.weights(training["net"])["w"])
        assert list(source.weights(training["c"])) == ["own.a"]
        sparse = Call("torch._utils._rebuild_sparse_tensor", ())
        with pytest.raises(BadCheckpoint, match="1 stands where a tensor should"):
            source.tensor(training["b"])
        with pytest.raises(BadCheckpoint, match="1 stands where a state dict should"):
            source.weights(training["b"])
        with pytest.raises(Unsupported, match="sparse"):
            source.tensor(sparse)
