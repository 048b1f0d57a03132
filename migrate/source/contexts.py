"""`with torch.no_grad():` and its like: what runs inside stays, and gets no gradient where torch gave it none."""

from __future__ import annotations

import ast

from .context import Context, Stage, handles
from .in_place import tensors

NO_GRADIENT = ("no_grad", "inference_mode")
# how torch runs, and nothing that a model computes; the precision of MindSpore's run is chosen for the whole net
PLAIN = (*NO_GRADIENT, "enable_grad", "set_grad_enabled", "autocast", "record_function", "sdpa_kernel", "sdp_kernel")


def torch_context(call: ast.expr, context: Context) -> str | None:
    """The name of a context of torch's that this makes, such as `no_grad`; None for any other."""
    if not isinstance(call, ast.Call):
        return None
    names = context.callees(call) or [ast.unparse(call.func)]
    last = {name.rpartition(".")[2] for name in names if "torch" in name}
    return last.pop() if len(last) == 1 and last <= {*PLAIN} else None


@handles(syntax=[ast.With], stage=Stage.STATEMENT)
def unwrapped(node: ast.With, context: Context) -> list[ast.stmt] | None:
    """The statements inside contexts of torch's; None where there is another context."""
    names = [torch_context(item.context_expr, context) for item in node.items]
    if None in names:
        return None
    if any(name in NO_GRADIENT for name in names):
        return without_gradient(node.body, context)
    return [new for old in node.body for new in context.statement(old)]


def without_gradient(body: list[ast.stmt], context: Context) -> list[ast.stmt]:
    """The statements, rewritten, with `ops.stop_gradient` around every tensor that they assign or return."""
    found: list[ast.stmt] = []
    for old in body:
        value = old.value if isinstance(old, (ast.Assign, ast.Return)) else None
        stops = value is not None and tensors(context.kinds(value))
        for new in context.statement(old):
            if stops and isinstance(new, (ast.Assign, ast.Return)) and new.value is not None:
                stop = context.name("mindspore.ops.stop_gradient")
                new.value = ast.Call(stop, [new.value], [])
            found.append(new)
    return found


def decorated(node: ast.FunctionDef) -> bool:
    """Whether a function is one that torch runs without gradients."""
    names = [ast.unparse(item).partition("(")[0].rpartition(".")[2] for item in node.decorator_list]
    return any(name in NO_GRADIENT for name in names)
