"""torch's half of the wiring: one forward pass in which what every module gives is replaced by what it gave.

Every module's output is replaced by torch's recorded one, and every container's input too. So what reaches a module is
the doing of the container around it alone, and so is what leaves the container: a forgotten residual or a wrong order
shows at its own place, however wrong the modules inside are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ..trace import TraceWriter
from .calls import WIRING, Call, label, tensor_name
from .outcome import Outcome
from .torch_alone import Alone, as_array, tensors
from .values import Stored, rebuilt


def record_wiring(runner: Alone, theirs: Outcome, writer: TraceWriter) -> None:
    """Record what reaches every module and leaves every container; the modules that MindSpore's pass ran as they are
    run as they are here too."""
    recording = runner.recording
    numbers: dict[str, int] = {}

    def seen(call: Call, what: str, values: Any) -> None:
        if not theirs.asked(call.label, call.caller if what == "input" else None):
            return
        for i, tensor in enumerate(tensors(values)):
            kind = recording.modules[call.path].kind
            writer.add("forward", WIRING, f"{call.label} {tensor_name(what, i)}", as_array(tensor), module=kind)

    def fresh(stored: Stored) -> torch.Tensor:
        # from disk each time, for a module may overwrite it; and laid out so that any `view` of it works
        return runner.tensor(stored).detach().contiguous()

    def forced(path: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def forward(*args: Any, **kwargs: Any) -> Any:
            numbers[path] = numbers.get(path, -1) + 1
            call = recording.calls.get(label(path, numbers[path]))
            if call is None:
                return original(*args, **kwargs)
            seen(call, "input", (args, kwargs))
            given = rebuilt(call.output, fresh)
            if recording.modules[path].children:
                found = original(*rebuilt(call.args, fresh), **rebuilt(call.kwargs, fresh))
                seen(call, "output", found)
                if isinstance(given, dict) and isinstance(found, dict):
                    return type(found)(**given)  # one whose items are attributes too, as transformers' ModelOutput
            return given

        return forward

    runner.restore()
    patched = {path: module for path, module in runner.modules.items() if path not in theirs.unwired}
    try:
        for path, module in patched.items():
            module.forward = forced(path, module.forward)
        with torch.no_grad():
            for root in recording.roots:
                runner.modules[root.path](*rebuilt(root.args, fresh), **rebuilt(root.kwargs, fresh))
    finally:
        for module in patched.values():
            module.__dict__.pop("forward", None)
