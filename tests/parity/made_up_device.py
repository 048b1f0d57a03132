"""A torch device that no machine has: it computes on the CPU, and refuses what a real one refuses.

Its type is npu, torch_npu's. Its tensors hold their numbers in a tensor of the CPU's, meet no tensor of another device
but a single number, as CUDA has it, and are nothing that NumPy can read.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

aten = torch.ops.aten
NAME = "a made-up device"
BACKWARD = (aten.convolution_backward.default, aten.mm.default)
OPERANDS = (aten.convolution.default, aten.mm.default, aten.addmm.default)
WAYS = ("steady", "restless", "coarse")
_way = ["steady"]
_library = torch.library.Library("aten", "IMPL")
_noise = torch.Generator()


class There(torch.Tensor):
    """A tensor on that device."""

    held: torch.Tensor

    @staticmethod
    def __new__(cls, held: torch.Tensor) -> There:
        made: There = torch.Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls,
            held.size(),
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            layout=held.layout,
            device=torch.device("npu", 0),
        )
        made.held = held
        return made

    @property
    def data(self) -> Any:  # type: ignore[override]
        return self.detach()

    @data.setter
    def data(self, value: There) -> None:
        torch.Tensor.data.__set__(self, value)  # type: ignore[attr-defined]
        self.held = value.held

    def __repr__(self) -> str:  # type: ignore[override]
        return f"There({self.held!r})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = dict(kwargs or {})
        if func not in (aten.copy_.default, aten._to_copy.default):
            for each in tree_leaves((args, given)):
                if isinstance(each, torch.Tensor) and not isinstance(each, There) and each.dim():
                    raise RuntimeError(f"expected all tensors on one device, found npu:0 and {each.device} in {func}")
        to = given.pop("device", None)
        if to is not None:
            given["device"] = "cpu"
        real, named = tree_map(lambda x: x.held if isinstance(x, There) else x, (args, given))
        found = _computed(func, real, named)
        first = func._schema.arguments[0].alias_info if func._schema.arguments else None
        if first is not None and first.is_write and not isinstance(found, (tuple, list)):
            return args[0]
        if to is not None and torch.device(to).type != "npu":
            return found
        return tree_map(lambda x: There(x) if isinstance(x, torch.Tensor) else x, found)


def _computed(func: Any, args: Any, named: Any) -> Any:
    """On the CPU; restless: sums come out otherwise each time, as atomic additions do; coarse: as in TF32."""
    if _way[0] == "coarse" and func in OPERANDS:
        from msmigrate.parity.record.torch_precision import shortened

        args = tree_map(lambda x: shortened(x, "tf32") if isinstance(x, torch.Tensor) else x, args)
    found = func(*args, **named)
    if _way[0] == "restless" and func in BACKWARD:
        return tree_map(lambda x: _moved(x) if isinstance(x, torch.Tensor) else x, found)
    return found


def _moved(values: torch.Tensor) -> torch.Tensor:
    return values * (1.0 + 1e-5 * torch.randn(values.shape, generator=_noise, dtype=values.dtype))


def install(way: str) -> None:
    """Give this process's torch the device."""
    _way[0] = way
    _noise.seed()
    module = SimpleNamespace(
        is_available=lambda: True,
        device_count=lambda: 1,
        is_initialized=lambda: True,
        current_device=lambda: 0,
        _is_in_bad_fork=lambda: False,
        manual_seed_all=lambda seed: None,
        get_device_name=lambda device=None: NAME,
        get_amp_supported_dtype=lambda: [torch.float16, torch.bfloat16],
        default_generators=[torch.Generator()],
    )
    _setup_privateuseone_for_python_backend("npu", backend_module=module)

    def empty(
        size: Any,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        pin_memory: Any = None,
        memory_format: Any = None,
    ) -> There:
        return There(torch.empty(size, dtype=dtype, memory_format=memory_format or torch.contiguous_format))

    def strided(
        size: Any, stride: Any, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None
    ) -> There:
        return There(torch.empty_strided(size, stride, dtype=dtype))

    _library.impl("empty.memory_format", empty, "PrivateUse1")
    _library.impl("empty_strided", strided, "PrivateUse1")


if __name__ == "__main__":
    from msmigrate.parity.job import ParityJob
    from msmigrate.parity.record import torch_worker
    from msmigrate.workers.worker import run

    install(sys.argv.pop(1))
    run(torch_worker.main, ParityJob.read)
