"""Hidden states that transformers' decorators collect by hooks, and a record of what was collected.

With `capture_outputs` a model that is called with `output_hidden_states=True` returns the outputs of all modules of a
class as `hidden_states`; `filter_output_hidden_states` requests them of the model inside, and leaves them out of its
own function's result unless they are requested there too. These two do what the library's do, for hidden states alone,
and note which model collects, from which modules and through which functions: rewrite/collected_outputs.py writes that
out.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from .observations import REQUEST, STATES, Collected, Filtered, Target

LIBRARY = "transformers.utils.output_capturing"
HERE = (str(Path(torch.__file__).parent), str(Path(__file__)))
CAN_RECORD, HOOKED = "_can_record_outputs", "_output_capturing_hooks_installed"
HOOK, CALLING = "output_capturing_hook", "__call__"  # the library's hook; the method that calls its modules' `forward`
Place = tuple[str, int]  # the file and the first line of a function
Noted = tuple[tuple[type, int, bool], tuple[Place, ...]]


class _States(list[Any]):
    """The hidden states of one call of a model, and for which modules and through which functions its hooks ran."""

    def __init__(self) -> None:
        super().__init__()
        self.noted: dict[Noted, None] = {}

    def append(self, state: Any) -> None:
        """Called by the library's hook."""
        super().append(state)
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_name != HOOK:
            frame = frame.f_back
        if frame is not None:
            known = frame.f_locals
            of = (type(known["module"]), known["index"], known["capture_initial_hidden_state"])
            self.noted[of, tuple(_through(frame))] = None


def _through(frame: FrameType | None) -> Iterator[Place]:
    """The functions from the one that called the module with the hook out to the model's own."""
    while frame is not None and frame.f_code is not COLLECTING:
        code, module = frame.f_code, frame.f_globals.get("__name__")
        if not code.co_filename.startswith(HERE) and module != LIBRARY and code.co_name != CALLING:
            yield code.co_filename, code.co_firstlineno
        frame = frame.f_back


_collected: dict[Place, dict[tuple[tuple[Noted, ...], bool, bool, type], None]] = {}
_filtered: dict[Place, bool] = {}


def capture_outputs(
    function: Callable[..., Any] | None = None, *, tie_last_hidden_states: bool = True
) -> Callable[..., Any]:
    """transformers' decorator, for hidden states alone."""
    if function is None:
        return functools.partial(capture_outputs, tie_last_hidden_states=tie_last_hidden_states)
    return functools.wraps(function)(_collecting(function, tie_last_hidden_states))


def _collecting(function: Callable[..., Any], tie_last: bool) -> Callable[..., Any]:
    itself: Any = inspect.unwrap(function)
    named = REQUEST in inspect.signature(itself).parameters
    library = importlib.import_module(LIBRARY)

    def collecting(self: Any, *args: Any, **kwargs: Any) -> Any:
        if STATES not in (getattr(self, CAN_RECORD, None) or {}):
            return function(self, *args, **kwargs)
        default = bool(getattr(self.config, REQUEST, False))
        requested = kwargs.get(REQUEST, default) if named else kwargs.pop(REQUEST, default)
        states = _States()
        with _hooked(self) if requested else nullcontext():
            token = library._active_collector.set({STATES: states} if requested else {})
            try:
                outputs = function(self, *args, **kwargs)
            finally:
                library._active_collector.reset(token)
        if requested:
            tie = getattr(self.config, "tie_last_hidden_states", None)
            tie = bool(tie_last if tie is None else tie) and bool(states)
            seen = _collected.setdefault((itself.__code__.co_filename, itself.__code__.co_firstlineno), {})
            seen[tuple(states.noted), tie, default, type(outputs)] = None
            if tie and hasattr(outputs, "vision_hidden_states"):
                states[-1] = outputs.vision_hidden_states
            elif tie and hasattr(outputs, "last_hidden_state"):
                states[-1] = outputs.last_hidden_state
            outputs[STATES] = tuple(states)
        return outputs

    global COLLECTING
    COLLECTING = collecting.__code__  # the same for every decorated function
    return collecting


COLLECTING: Any = None


@contextmanager
def _hooked(model: Any) -> Iterator[None]:
    """Within this block a model has the library's hooks; left in place they would be taken for the user's own."""
    library, parts = importlib.import_module(LIBRARY), [*model.modules()]
    if HOOKED in vars(model):  # a model around it has installed them
        yield
        return
    before = [(part, [*part._forward_hooks]) for part in parts]
    for part in parts:  # the library's own class does this in its constructor
        if isinstance(held := getattr(part, CAN_RECORD, None), dict):
            library._CAN_RECORD_REGISTRY[part] = {STATES: held[STATES]} if STATES in held else None
    library.install_all_output_capturing_hooks(model)
    try:
        yield
    finally:
        for part, known in before:
            for number in [number for number in part._forward_hooks if number not in known]:
                del part._forward_hooks[number]
            vars(part).pop(HOOKED, None)


def filter_output_hidden_states(function: Callable[..., Any]) -> Callable[..., Any]:
    """transformers' decorator for functions that always need hidden states, and return them only on request."""
    code = inspect.unwrap(function).__code__

    @functools.wraps(function)
    def filtering(self: Any, *args: Any, **kwargs: Any) -> Any:
        default = bool(getattr(self.config, REQUEST, False))
        requested = kwargs.pop(REQUEST, default)
        _filtered[code.co_filename, code.co_firstlineno] = default
        output = function(self, *args, **kwargs, **{REQUEST: True})
        return output if requested else type(output)(**{key: item for key, item in output.items() if key != STATES})

    return filtering


def forget() -> None:
    """Forget what was seen of another model."""
    _collected.clear()
    _filtered.clear()


def seen(name: Callable[[Any], str]) -> Iterator[tuple[str, int, Collected | Filtered]]:
    """The file and the first line of each decorated function, and what it collected or filtered.

    name: gives the name of a class.
    """
    for (file, line), calls in _collected.items():
        for noted, tie, default, outputs in calls:
            targets = tuple(Target(name(cls), index, initial, through) for (cls, index, initial), through in noted)
            yield file, line, Collected(targets, tie, default, name(outputs))
    for (file, line), default in _filtered.items():
        yield file, line, Filtered(default)
