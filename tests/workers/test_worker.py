"""What a worker does around its framework's import: what MindSpore reads then is set, and torch's compiler waits.

That is imported by who compiles, and then it is torch's own in every way; by nobody else.
"""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from msmigrate.errors import Unsupported
from msmigrate.workers.worker import prepare_mindspore

BEFORE = """
import sys, torch
from msmigrate.workers.worker import defer_compiler
defer_compiler()
held = sys.modules["torch._dynamo"]
from torchvision.ops import roi_align
import inspect
inspect.stack()  # which looks at every module

def step():
    weight = torch.nn.Parameter(torch.zeros(3))
    optimizer = torch.optim.AdamW([weight], 0.1)
    weight.grad = torch.ones(3)
    optimizer.step()
    optimizer.load_state_dict(optimizer.state_dict())
    assert torch.allclose(weight, torch.full((3,), -0.1)), weight
step()
assert [name for name in sys.modules if name.startswith("torch._dynamo")] == ["torch._dynamo", "torch._dynamo.utils"]
assert "sympy" not in sys.modules
"""
AFTER = """
import torch._dynamo
assert type(torch._dynamo) is type(sys) and torch._dynamo is sys.modules["torch._dynamo"] is not held
assert held.config is torch._dynamo.config and held.graph_break is torch._dynamo.graph_break
for name in ("config", "utils"):
    part = sys.modules[f"torch._dynamo.{name}"]
    assert getattr(torch._dynamo, name) is part and part.__spec__.origin == part.__file__
step()
function = torch.optim.Optimizer.add_param_group.__wrapped__
assert vars(function)["__dynamo_disable"] is not function  # the compiler was told of it, after all
"""
WAYS = {
    "a model that is compiled": """
seen = []
compiled = torch.compile(torch.nn.Linear(3, 2), backend=lambda graph, inputs: seen.append(graph) or graph)
assert compiled(torch.ones(1, 3)).shape == (1, 2) and seen
""",
    "one of its parts": "import torch._dynamo.config as config; assert config.recompile_limit",
    "a name of it": "from torch._dynamo import disable; assert disable(step) is not step",
    "a name of a part that has a stand-in": "from torch._dynamo.utils import counters; assert not counters['a']",
    "its own decorator": "assert torch._dynamo.disable(step) is not step",
    "an option that is set": "torch._dynamo.config.suppress_errors = False",
    "an attribute that is set": "held.mine = 3; assert torch._dynamo.mine == 3",
    "what torchvision asks it": "assert roi_align.__globals__['is_compile_supported']('cpu') in (True, False)",
    "a checkpoint": """
from torch.utils.checkpoint import checkpoint
x = torch.ones(3, requires_grad=True)
checkpoint(torch.square, x, use_reentrant=False).sum().backward()
assert x.grad.tolist() == [2.0] * 3
""",
}


@pytest.mark.parametrize(
    "way", [way if not number else pytest.param(way, marks=pytest.mark.full) for number, way in enumerate(WAYS)]
)
def test_who_wants_the_compiler_gets_it_and_who_steps_does_not(way: str) -> None:
    done = subprocess.run([sys.executable, "-c", BEFORE + WAYS[way] + AFTER], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_prepare_sets_what_the_user_has_not(monkeypatch):
    monkeypatch.setattr(os, "environ", {"GLOG_v": "1"})
    prepare_mindspore()
    assert os.environ == {"GLOG_v": "1", "ONEDNN_MAX_CPU_ISA": "AVX2"}


def test_numpy_2_is_refused_with_the_remedy(monkeypatch):
    monkeypatch.setattr(np, "__version__", "2.4.6")
    with pytest.raises(Unsupported, match=r"this is NumPy 2\.4\.6: pip install 'numpy<2'"):
        prepare_mindspore()
