"""What modules are told about their tensors: parameters, buffers, gradients; and how they are run."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .translating import Translator

PARAMETERS = ("torch.nn.Parameter", "torch.nn.parameter.Parameter")
BUFFERS = ("torch.nn.Buffer", "torch.nn.parameter.Buffer")
MODES = ("torch.nn.Module.train", "torch.nn.Module.eval")
RESET = "msmigrate.nn.reset_parameters"
CHECKPOINT = "torch.utils.checkpoint.checkpoint"
# of torch.utils.checkpoint: how memory is spared, and not what is computed
SPARING = {"use_reentrant", "preserve_rng_state", "context_fn", "determinism_check", "debug", "early_stop"}
LISTS = {
    "torch.nn.ParameterList": "msmigrate.nn.ParameterList",
    "torch.nn.ParameterDict": "msmigrate.nn.ParameterDict",
}


def statement(call: ast.Call, callees: list[str], translator: Translator) -> list[ast.stmt] | None:
    """A call that stands alone and becomes an assignment or nothing; None for any other."""
    if callees == ["torch.nn.Module.register_buffer"]:
        return [_buffer(call, translator)]
    if callees == ["torch.nn.Module.register_parameter"]:
        owner, name, value = _named(call, translator)
        return [_put(owner, name, translator.visit(value))]
    if callees == ["torch.nn.Module.requires_grad_"] and isinstance(call.func, ast.Attribute):
        return [_frozen(call, call.func.value, translator)]
    if callees == ["torch.Tensor.requires_grad_"] and isinstance(call.func, ast.Attribute):
        target = ast.Attribute(translator.visit(call.func.value), "requires_grad", ast.Store())
        return [ast.Assign([target], _flag(call, translator))]
    return None


def _named(call: ast.Call, translator: Translator) -> tuple[ast.expr, ast.expr, ast.expr]:
    """`self`, the name and the value, of `self.register_…("name", value)`."""
    words = {word.arg: word.value for word in call.keywords}
    name = call.args[0] if call.args else words["name"]
    value = call.args[1] if len(call.args) > 1 else words.get("tensor", words.get("param"))
    assert isinstance(call.func, ast.Attribute)
    return translator.visit(call.func.value), translator.visit(name), value or ast.Constant(None)


def _put(owner: ast.expr, name: ast.expr, value: ast.expr) -> ast.stmt:
    """`self.name = value`, or `setattr` where the name is computed."""
    if isinstance(name, ast.Constant) and str(name.value).isidentifier():
        return ast.Assign([ast.Attribute(owner, str(name.value), ast.Store())], value)
    return ast.Expr(ast.Call(ast.Name("setattr", ast.Load()), [owner, name, value], []))


def _buffer(call: ast.Call, translator: Translator) -> ast.stmt:
    """`self.name = Parameter(value, requires_grad=False)`, for MindSpore saves nothing else in a checkpoint; one that
    torch does not save is a tensor."""
    owner, name, value = _named(call, translator)
    absent = translator.facts.kinds(translator.file, value) == ["NoneType"] or ast.unparse(value) == "None"
    node = translator.visit(value)
    if absent or not _saved(call, 2):
        return _put(owner, name, node)
    return _put(owner, name, _held(node, translator, ast.keyword("name", name)))


def _saved(call: ast.Call, place: int) -> bool:
    """Whether a buffer is part of a state dict: `persistent`, which may stand in this place."""
    words = {word.arg: word.value for word in call.keywords}
    persistent = words.get("persistent", call.args[place] if len(call.args) > place else ast.Constant(True))
    return not isinstance(persistent, ast.Constant) or bool(persistent.value)


def _held(value: ast.expr, translator: Translator, *options: ast.keyword) -> ast.expr:
    untrained = ast.keyword("requires_grad", ast.Constant(False))
    return ast.Call(translator.scope.name("mindspore.Parameter"), [value], [*options, untrained])


def _flag(call: ast.Call, translator: Translator) -> ast.expr:
    values = [*call.args, *(word.value for word in call.keywords)]
    return translator.visit(values[0]) if values else ast.Constant(True)


def _frozen(call: ast.Call, module: ast.expr, translator: Translator) -> ast.stmt:
    """`for parameter in module.get_parameters(): parameter.requires_grad = False`."""
    parameters = ast.Call(ast.Attribute(translator.visit(module), "get_parameters", ast.Load()), [], [])
    target = ast.Attribute(ast.Name("parameter", ast.Load()), "requires_grad", ast.Store())
    change: ast.stmt = ast.Assign([target], _flag(call, translator))
    return ast.For(ast.Name("parameter", ast.Store()), parameters, [change], [])


def expression(call: ast.Call, callees: list[str], translator: Translator) -> ast.expr | None:
    """A call of torch's that makes parameters or runs a function; None for any other."""
    resets = (name.startswith("torch.nn.") and name.endswith(".reset_parameters") for name in callees)
    if callees and all(resets) and isinstance(call.func, ast.Attribute) and not _of_super(call.func.value):
        return ast.Call(translator.scope.name(RESET), [translator.visit(call.func.value)], [])
    if len(callees) != 1:
        return None
    if callees[0] in PARAMETERS:
        return _parameter(call, translator)
    if callees[0] in BUFFERS:
        value = translator.visit(call.args[0] if call.args else call.keywords[0].value)
        return _held(value, translator) if _saved(call, 1) else value
    if callees[0] in MODES and isinstance(call.func, ast.Attribute):
        owner = ast.Attribute(translator.visit(call.func.value), "set_train", ast.Load())
        training = _flag(call, translator) if callees[0] == MODES[0] else ast.Constant(False)
        return ast.Call(owner, [training], [])
    if callees[0] in LISTS:
        kept = translator.kept(call)
        kept.func = translator.scope.name(LISTS[callees[0]])
        return kept
    if callees[0] == CHECKPOINT:
        words = [word for word in call.keywords if word.arg not in SPARING]
        function, *args = call.args
        return translator.kept(ast.copy_location(ast.Call(function, args, words), call))
    return None


def _parameter(call: ast.Call, translator: Translator) -> ast.expr:
    words = {word.arg: word.value for word in call.keywords}
    value = call.args[0] if call.args else words["data"]
    trained = call.args[1] if len(call.args) > 1 else words.get("requires_grad")
    plain = trained is None or (isinstance(trained, ast.Constant) and trained.value is True)
    options = [] if plain or trained is None else [ast.keyword("requires_grad", translator.visit(trained))]
    return ast.Call(translator.scope.name("mindspore.Parameter"), [translator.visit(value)], options)


def _of_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"
