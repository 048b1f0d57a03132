"""Process: run one or many torch models, and report what they call and what they cost.

    python -m msmigrate.migrate.analyze.torch_operators_worker model.py:build 1x3x64x64
    python -m msmigrate.migrate.analyze.torch_operators_worker --names torchvision 'timm:resnet*'
    python -m msmigrate.migrate.analyze.torch_operators_worker --each torchvision:resnet18 torchvision:resnet50 …

Answers with `uses` (what was called, how often, where, with which arguments), `costs`, `inputs`, `notes`; with --names
with the names of the models that patterns stand for; with --each it sends an event for every model as soon as it is
done: `model`, `seconds`, and its report, or `failed`.

A model runs on the meta device, without memory or computing, and on the CPU where its code looks at values.
"""

from __future__ import annotations

import contextlib
import fnmatch
import gc
import sys
import time
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils.flop_counter import FlopCounterMode

from ...errors import BadInput
from ...workers.messages import Event
from ...workers.worker import answer, send
from ..model_spec import Spec, parse, place_of, serve
from ..torch_models import (
    WAYS,
    Inputs,
    build,
    empty_weights,
    family,
    inputs_for,
    load_timm,
    looks_at_values,
    quietly,
    split,
    twice,
)
from .torch_recorder import Recorder, noting_arguments


class DoesNotRun(BadInput):
    """The model stopped when it ran."""


def report(text: str, *told: str) -> dict[str, Any]:
    """Build the model, run it in both modes, and say what it called; raises BadInput."""
    quietly()
    torch.manual_seed(0)
    torch.backends.mha.set_fastpath_enabled(False)  # what it computes in one kernel is not counted
    spec = parse(text)
    for building, running in () if looks_at_values(spec) else WAYS:
        try:
            return _on(building, running, spec, told)
        except BadInput as error:
            if not isinstance(error, DoesNotRun):
                raise
        except Exception:  # its code looks at values, which meta tensors do not have; if not, this fails again
            pass
        gc.collect()
    return _on("cpu", "cpu", spec, told)


def _on(building: str, running: str, spec: Spec, told: tuple[str, ...]) -> dict[str, Any]:
    weights = empty_weights() if building != running else contextlib.nullcontext()
    with torch.device(building), noting_arguments(), weights:
        model, returned = split(build(spec))
    with torch.device(running):
        inputs = inputs_for(spec, model, told, returned)
        if running == "meta":
            inputs = pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.to("meta"), inputs)
        recorder = Recorder(model)
        notes: list[str] = []
        flops = _evaluate(model, inputs, recorder)
        memory = _train(model, inputs, recorder, notes, running)
    recorder.containers(model)
    unreached = recorder.never_ran(model)
    return {
        "uses": recorder.as_json(),
        "costs": {
            "parameters": sum(parameter.numel() for parameter in model.parameters()),
            "parameter_bytes": sum(parameter.numel() * parameter.element_size() for parameter in model.parameters()),
            "flops": flops,
            "activation_bytes": memory,
        },
        "inputs": inputs.said,
        "class": f"{type(model).__module__}.{type(model).__qualname__}",
        "family": family(spec),
        "device": running,
        "never_ran": unreached,
        "notes": notes,
        "versions": {"torch": torch.__version__.partition("+")[0]},
    }


def _evaluate(model: torch.nn.Module, inputs: Inputs, recorder: Recorder) -> int:
    """Run once in eval mode; returns the FLOPs of its matrix products, convolutions and attention."""
    model.eval()
    counter = FlopCounterMode(display=False)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    for parameter in trained:  # torch's counter follows gradients, and stumbles over a parameter that is an input
        parameter.requires_grad_(False)
    try:
        with torch.no_grad(), counter, recorder.running("eval"):
            model(*inputs.eval, **inputs.kwargs)
    except Exception as error:
        said = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}{place_of(error)}"
        more = "; tell its inputs with --input 1x3x224x224" if inputs.chosen else ""
        raise DoesNotRun(f"it does not run on {inputs.said}: {said}{more}") from None
    finally:
        for parameter in trained:
            parameter.requires_grad_(True)
    return int(counter.get_total_flops())


def _train(model: torch.nn.Module, inputs: Inputs, recorder: Recorder, notes: list[str], device: str) -> int | None:
    """Run once in train mode; returns the bytes that are kept for the backward pass, for the inputs as they are.

    A single image is run as two where normalization wants more than one value, and half of the bytes are told.
    """
    model.train()
    before = {key: use["train"] for key, use in recorder.uses.items()}
    try:
        return _kept(model, inputs.train, inputs, recorder)
    except Exception as error:
        for key in list(recorder.uses):
            recorder.uses[key]["train"] = before.get(key, 0)
        first = error
    try:
        doubled = tuple(twice(value) for value in inputs.train)
        return _kept(model, doubled, inputs, recorder) // 2
    except Exception:
        said = f"{type(first).__name__}: {' '.join(str(first).split())[:200]}"
        if device == "meta":  # the module may look at values in training only
            raise DoesNotRun(said) from None
        notes.append(f"it did not run in train mode ({said}): the operators are those of eval mode")
        return None


def _kept(model: torch.nn.Module, args: tuple[Any, ...], inputs: Inputs, recorder: Recorder) -> int:
    own = {tensor.untyped_storage()._cdata for tensor in (*model.parameters(), *model.buffers())}
    kept: dict[int, Any] = {}  # the storages are held, so that no other takes their place

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage._cdata not in own:
            kept.setdefault(storage._cdata, storage)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor), recorder.running("train"):
        result = model(*args, **inputs.kwargs)
    del result
    return sum(storage.nbytes() for storage in kept.values())


# many models


def names(*patterns: str) -> dict[str, Any]:
    """Return the models that patterns stand for; raises BadInput for a pattern without any."""
    found: dict[str, None] = {}
    for pattern in patterns:
        place, _, name = pattern.partition(":")
        if place not in ("torchvision", "timm"):
            parse(pattern)
            found[pattern] = None
            continue
        known = _known(place)
        matching = [f"{place}:{one}" for one in known if fnmatch.fnmatchcase(one, name or "*")]
        if not matching and not any(letter in name for letter in "*?["):
            matching = [pattern]  # one name, perhaps with arguments: building it says what is wrong
        if not matching:
            raise BadInput(f"{place} has no model {name}")
        found.update(dict.fromkeys(matching))
    return {"models": list(found)}


def _known(place: str) -> list[str]:
    if place == "timm":
        return list(load_timm().list_models())
    import torchvision

    return list(torchvision.models.list_models())


def each(models: list[str]) -> None:
    """Send the analysis of each model as soon as it is done."""
    for model in models:
        start = time.monotonic()
        try:
            found = report(model)
        except BadInput as error:
            found = {"failed": str(error)}
        except Exception as error:
            found = {"failed": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}{place_of(error)}"}
        send(Event("analysed", {**found, "model": model, "seconds": round(time.monotonic() - start, 2)}))
        gc.collect()


if __name__ == "__main__":
    if sys.argv[1] == "--each":
        answer(lambda: each(sys.argv[2:]))
    elif sys.argv[1] == "--names":
        del sys.argv[1]
        serve(names)
    else:
        serve(report)
