"""What torch wrote, whole models and training checkpoints, is read as torch itself would have it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msmigrate.migrate.checkpoint.formats import pth_weights
from msmigrate.migrate.checkpoint.formats.pth_weights import TorchSource
from msmigrate.migrate.checkpoint.formats.registry import open_source


def test_whole_models_tell_their_classes_and_the_order_of_their_state_dict(
    torch_files: tuple[Path, dict[str, Any]],
) -> None:
    folder, expected = torch_files
    owners = json.loads((folder / "owners.json").read_text())
    assert len(owners) >= 16
    for name, classes in owners.items():
        with open_source(str(folder / name)) as source:
            found = source.checkpoint()
        assert list(found.tensors) == list(expected[name]), name
        assert found.owners == {path: (cls,) for path, cls in classes.items()}, name
        assert found.format == f"whole model, torch {'before 1.6' if 'legacy' in name or 'alone' in name else 'zip'}"
    assert not any("scratch" in name for name in expected["whole.pth"])


def test_the_public_names_of_torchs_classes_are_those_that_torch_gives(
    torch_files: tuple[Path, dict[str, Any]],
) -> None:
    classes = json.loads((torch_files[0] / "classes.json").read_text())
    assert len(classes) > 150
    for full, public in classes.items():
        if full not in pth_weights.INNER:
            assert pth_weights.public_name(full) == (public if public.count(".") == 2 else None)


@pytest.mark.parametrize("name", ["in_model_state_dict.pth", "in_net.pth", "in_params.pth", "nested.pth"])
def test_what_training_scripts_keep_stays_readable(torch_files: tuple[Path, dict[str, Any]], name: str) -> None:
    with open_source(str(torch_files[0] / name)) as source:
        found = source.checkpoint()
        assert found.training is not None and isinstance(source, TorchSource)
        assert found.training["optimizer"]["param_groups"][0]["momentum"] == 0.9
        assert source.tensor(found.training["rng_state"]).dtype == "uint8"
    prefix = "checkpoint." if name == "nested.pth" else ""
    assert found.others[f"{prefix}config"] == "an object of __main__.Config"
    assert found.others[f"{prefix}epoch"] == "3"
    assert ("ema" in found.others) == (name != "nested.pth")
