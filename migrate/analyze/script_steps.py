"""What of a script's loops the code of rows takes: the lines of a training step, and the order of its calls."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from ...mappings.aliases import row_of
from ..read_script.abstract_values import LibraryUse
from ..source_files import all_parameters, alternatives


class Step(NamedTuple):
    """The lines that compute what is differentiated.

    inputs: the variables that each batch gives them. kept: variables that they set and that other lines use. readable:
    whether they can be a function of their own.
    """

    lines: list[ast.stmt]
    inputs: list[str]
    kept: list[str]
    readable: bool


LONGEST_STEP = 40  # lines
MOST = 300  # lines of a block that are followed
LEAVING = (ast.Return, ast.Break, ast.Continue, ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
BLOCKS = (ast.For, ast.AsyncFor, ast.While, ast.FunctionDef, ast.AsyncFunctionDef, ast.Module, ast.ClassDef)
OF_STEPS = ("backward", "step", "zero_grad")


@lru_cache(maxsize=64)
def parents(tree: ast.Module) -> dict[ast.AST, ast.AST]:
    """The node around every node of a file."""
    return {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}


def around(tree: ast.Module, node: ast.AST) -> list[ast.AST]:
    """The nodes around a node up to the loop, or the function without one, that it is in; from the inside out."""
    above = parents(tree)
    found: list[ast.AST] = [node]
    while found[-1] in above and not (len(found) > 1 and isinstance(found[-1], BLOCKS)):
        found.append(above[found[-1]])
    return found


def step_of(tree: ast.Module, call: ast.expr, result: ast.expr, idle: Callable[[ast.stmt], bool]) -> Step:
    """The lines before a call that compute a value, from the beginning of the loop or function, without the idle ones,
    which do nothing in MindSpore."""
    chain = around(tree, call)
    before: list[ast.stmt] = []
    after: list[ast.stmt] = []
    for inner, outer in pairwise(chain):
        blocks = (value for _, value in ast.iter_fields(outer) if isinstance(value, list) and inner in value)
        for block in blocks:
            before = block[: block.index(inner)] + before
            after += block[block.index(inner) + 1 :]
    if len(before) > MOST:
        return Step([], [], [], readable=False)
    before = [line for line in before if not idle(line)]
    given = _given(chain[-1])
    local = {*given, *(name for line in before for name in names_of(line, ast.Store))}
    parts = [part for line in (*before, result) for part in ast.walk(line)]
    called = {part.func.id for part in parts if isinstance(part, ast.Call) and isinstance(part.func, ast.Name)}
    also: list[ast.stmt] = []  # they change what earlier lines have read
    while True:
        needed = set(names_of(result, ast.Load)) - called  # a net is made outside, once
        lines: list[ast.stmt] = []
        for line in reversed(before):
            if line in also or sets_by(line, local) & needed:
                lines.insert(0, line)
                reads, surely = _reads([line])
                needed = (needed - surely) | (reads - called)
        read = [set(names_of(line, ast.Load)) if line in lines else set() for line in before]
        more = [
            line for i, line in enumerate(before) if line not in lines and sets_by(line, local) & set().union(*read[:i])
        ]
        if not more:
            break
        also += more
    inside = [part for line in lines for part in ast.walk(line)]
    calls = {part.func.attr for part in inside if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute)}
    many = sum((line.end_lineno or line.lineno) - line.lineno + 1 for line in lines) > LONGEST_STEP
    leaves = many or any(isinstance(part, LEAVING) for part in inside) or bool(calls & set(OF_STEPS))
    own = dict.fromkeys(name for line in lines for name in names_of(line, ast.Store) if "." not in name)
    again = [name for name in own if name in needed and name not in given]  # from one batch to the next
    others = [line for line in before if line not in lines] + after
    used = {name for line in others for name in names_of(line, ast.Load)}
    kept = [name for name in own if (name in used or name in again) and name != ast.unparse(result)]
    return Step(lines, [name for name in given if name in needed] + again, kept, bool(lines) and not leaves)


def _reads(block: list[ast.stmt]) -> tuple[set[str], set[str]]:
    """The variables that a block reads before it sets them, and those that it surely sets."""
    reads: set[str] = set()
    surely: set[str] = set()
    for line in block:
        match line:
            case ast.With(items=items, body=body):
                inner, also = _reads(body)
                parts = {name for item in items for name in names_of(item, ast.Load)} | inner
            case ast.If(test=test, body=body, orelse=orelse):
                (inner, one), (other, two) = _reads(body), _reads(orelse)
                parts, also = set(names_of(test, ast.Load)) | inner | other, one & two
            case ast.For(target=target, iter=values, body=body):
                inner, also = _reads(body)
                parts, also = set(names_of(values, ast.Load)) | (inner - set(names_of(target, ast.Store))), set()
            case ast.Assign() | ast.AnnAssign():
                parts, also = set(names_of(line, ast.Load)), set(names_of(line, ast.Store))
            case _:
                parts, also = set(names_of(line, ast.Load)), set()
        reads |= parts - surely
        surely |= also
    return reads, surely


def _given(loop: ast.AST) -> list[str]:
    """The variables that each round of a loop, or a call of a function, sets."""
    if isinstance(loop, (ast.For, ast.AsyncFor)):
        return list(dict.fromkeys(names_of(loop.target, ast.Store)))
    if isinstance(loop, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return [one.arg for one in all_parameters(loop.args) if one.arg not in ("self", "cls")]
    return []


def names_of(node: ast.AST, context: type[ast.expr_context]) -> Iterator[str]:
    """The variables, and the attributes of variables, that are read or set in some lines, in their order."""
    waiting: list[ast.AST] = [node]
    while waiting:
        part = waiting.pop(0)
        own: set[str] = set()
        if isinstance(part, (ast.Name, ast.Attribute)):
            held: ast.expr = part
            while isinstance(held, ast.Attribute):
                held = held.value
            if isinstance(held, ast.Name) and isinstance(part.ctx, context):
                yield ast.unparse(part)
        elif isinstance(part, COMPREHENSIONS):
            own = {name for one in part.generators for name in names_of(one.target, ast.Store)}
        elif isinstance(part, ast.AugAssign) and context is ast.Load:
            yield ast.unparse(part.target)
        if own:
            inner = (name for child in ast.iter_child_nodes(part) for name in names_of(child, context))
            yield from (name for name in inner if name.partition(".")[0] not in own)
        else:
            waiting = [*ast.iter_child_nodes(part), *waiting]


def sets_by(line: ast.stmt, local: set[str]) -> set[str]:
    """What a line changes: variables, those of whose items it sets one, and lists that it calls a method of."""
    found = set(names_of(line, ast.Store))
    for part in ast.walk(line):
        if isinstance(part, (ast.Subscript, ast.Attribute)) and isinstance(part.ctx, ast.Store):
            found |= {name for name in names_of(part.value, ast.Load) if name in local}
        call = part.value if isinstance(part, ast.Expr) else None
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            found |= {name for name in names_of(call.func.value, ast.Load) if name in local}
    return found


# the loop over batches, and what a data set gives


class Batches(NamedTuple):
    """What a loop takes of a loader: the text of its variables; the keys that it reads of a batch; and of its variables
    those of which it reads the items 0 and 1."""

    target: str = ""
    keys: tuple[str, ...] = ()
    items: tuple[str, ...] = ()


def entry_of(tree: ast.Module, call: ast.expr) -> str:
    """The element of a variable's dict or list that a call is written as: loaders['val'] of loaders = {"val": call}."""
    above = parents(tree)
    holder = above.get(call)
    keyword = holder if isinstance(holder, ast.keyword) else None
    holder = above.get(keyword) if keyword is not None else holder
    statement = above.get(holder) if holder is not None else None
    if not isinstance(statement, ast.Assign) or statement.value is not holder or len(statement.targets) != 1:
        return ""
    key: object = None
    if isinstance(holder, ast.Dict):
        keys = (of for of, value in zip(holder.keys, holder.values, strict=True) if value is call)
        key = next((of.value for of in keys if isinstance(of, ast.Constant)), None)
    elif isinstance(holder, ast.Call) and isinstance(holder.func, ast.Name) and holder.func.id == "dict" and keyword:
        key = keyword.arg
    elif isinstance(holder, (ast.List, ast.Tuple)) and not isinstance(statement.targets[0], (ast.Tuple, ast.List)):
        key = next(at for at, value in enumerate(holder.elts) if value is call)
    return f"{ast.unparse(statement.targets[0])}[{key!r}]" if key is not None else ""


def variable_of(text: str) -> str:
    """The variable for an element: loaders_val for loaders['val']; any other text unchanged."""
    return re.sub(r"\W+", "_", text).strip("_") if "[" in text else text


def batches_of(tree: ast.Module, call: ast.expr, loader: str) -> Batches:
    """The loop over a loader that a variable, or an element of one, holds, in the function of its call if there is
    one; a loop over an element by a key that is not written may be over this one."""
    loader = entry_of(tree, call) or loader
    table = loader.partition("[")[0] if loader.endswith("]") else ""

    def goes_over(part: ast.AST) -> bool:
        any_of = isinstance(part, ast.Subscript) and not isinstance(part.slice, ast.Constant) and _is(part.value, table)
        return _is(part, loader) or any_of

    loops = [node for node in ast.walk(tree) if isinstance(node, (ast.For, ast.AsyncFor))]
    loops = [loop for loop in loops if loader and any(goes_over(part) for part in ast.walk(loop.iter))]
    function = function_of(tree, call)
    loop = next((one for one in loops if function in _all_around(tree, one)), loops[0] if loops else None)
    if loop is None:
        return Batches()
    target = loop.target
    counted = any(isinstance(part, ast.Call) and _is(part.func, "enumerate") for part in ast.walk(loop.iter))
    if counted and isinstance(target, ast.Tuple) and len(target.elts) == 2:
        target = target.elts[1]
    read: dict[str, dict[object, None]] = {}
    for part in ast.walk(loop):
        if (
            isinstance(part, ast.Subscript)
            and isinstance(part.value, ast.Name)
            and isinstance(part.slice, ast.Constant)
        ):
            read.setdefault(part.value.id, {})[part.slice.value] = None
    own = names_of(target, ast.Store)
    if isinstance(target, ast.Name):
        return Batches(target.id, tuple(key for key in read.get(target.id, ()) if isinstance(key, str)))
    return Batches(ast.unparse(target).strip("()"), (), tuple(name for name in own if {0, 1} <= {*read.get(name, ())}))


def function_of(tree: ast.Module, node: ast.AST) -> ast.AST:
    """The function that a node is in, or the file."""
    return next((one for one in _all_around(tree, node) if isinstance(one, FUNCTIONS)), tree)


def _is(node: ast.expr | ast.AST, text: str) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and ast.unparse(node) == text


class Sample(NamedTuple):
    """What a data set gives: the names of its values, of which several are a list; or the keys of a dict."""

    parts: tuple[tuple[str, ...], ...] = ()
    keys: tuple[str, ...] = ()


Function = ast.FunctionDef | ast.AsyncFunctionDef


def sample_of(function: Function, method: Callable[[str], Function | None], depth: int = 3) -> Sample | None:
    """What a function returns, alike wherever it can be read; None where it cannot. method: gives one of its class."""
    set_to: dict[str, ast.expr] = {}
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Dict() | ast.Tuple() | ast.List() as value):
                set_to[name] = value
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=called)) as value,
            ) if method(called) is not None:
                set_to[name] = value  # a method that was read gives it
    found: dict[object, Sample | None] = {}
    for node in ast.walk(function):
        for given in alternatives(node.value) if isinstance(node, ast.Return) and node.value is not None else ():
            sample = _sample(given, set_to, method, depth)
            found[sample and (tuple(len(part) for part in sample.parts), sample.keys)] = sample
    known = [sample for sample in found.values() if sample is not None]  # a transform of it gives the same parts
    return known[0] if len(known) == 1 else None


def _sample(
    node: ast.expr, set_to: dict[str, ast.expr], method: Callable[[str], Function | None], depth: int
) -> Sample | None:
    def whole(one: ast.expr) -> ast.expr:
        return set_to.get(one.id, one) if isinstance(one, ast.Name) else one

    def name(one: ast.expr) -> str:
        return one.id if isinstance(one, ast.Name) else ""

    match whole(node):
        case ast.Dict(keys=keys):
            texts = [key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]
            return Sample(keys=tuple(texts)) if len(texts) == len(keys) else None
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            inner = [whole(one) for one in elements]
            return Sample(
                tuple(
                    tuple(map(name, of.elts)) if isinstance(of, (ast.Tuple, ast.List)) and of.elts else (name(one),)
                    for one, of in zip(elements, inner, strict=True)
                )
            )
        case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=called)) if depth:
            function = method(called)
            return sample_of(function, method, depth - 1) if function is not None else None
        case ast.Name(id=own):
            return Sample(((own,),))
    return None


# the place of a call

OF_TORCH = re.compile(r"\.(pth\.tar|pth|pt|bin|pkl|tar|ckpt)(?=[\"'])")  # how files of weights end


def checkpoint(capitals: dict[str, str], notes: list[str]) -> None:
    """The path of a file in MindSpore's format, in place of torch's: a str, since MindSpore takes no Path."""
    text = capitals.get("f", "")
    ends = [*OF_TORCH.finditer(text)]
    if ends:
        path = f"{text[: ends[-1].start()]}.ckpt{text[ends[-1].end() :]}"
        capitals["f"] = f"str({path})" if _is_path(path) else path
    elif text:
        notes.append(f"{text}: a str that ends in .ckpt; save_checkpoint adds the ending, load_checkpoint asks for it")


def _is_path(text: str) -> bool:
    """Whether an expression surely is a pathlib.Path: `folder / "last.ckpt"`, `Path("last.ckpt")`."""
    try:
        node = ast.parse(text, mode="eval").body
    except SyntaxError:
        return False
    called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
    joined = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)
    return joined or called in ("Path", "pathlib.Path") or called.endswith((".joinpath", ".with_name", ".with_suffix"))


def next_takes(tree: ast.Module, node: ast.expr) -> bool:
    """Whether `next()` takes the first of what a call gives."""
    around = parents(tree).get(node)
    return isinstance(around, ast.Call) and getattr(around.func, "id", "") == "next" and node in around.args[:1]


# the calls of a step


def words_of_steps(uses: list[LibraryUse]) -> dict[int, dict[str, str]]:
    """The words of calls of a step: the `optimizer` that makes it after a backward pass, and the line of an `earlier`
    backward pass of the same step; `summed` in place of `grads` where these are added up over batches."""
    words: dict[int, dict[str, str]] = {}
    files: dict[str, list[tuple[LibraryUse, str]]] = {}
    for seen in sorted(uses, key=lambda one: (one.node.lineno, one.node.col_offset)):
        row = row_of(seen.name)
        if row is not None and row.torch in OF_A_STEP and isinstance(seen.node, ast.Call):
            files.setdefault(seen.source.shown, []).append((seen, OF_A_STEP[row.torch]))
    for calls in files.values():
        tree = calls[0][0].source.tree
        chains = {id(seen.node): around(tree, seen.node) for seen, _ in calls}
        for place, (seen, kind) in enumerate(calls):
            loop = chains[id(seen.node)][-1]
            here = [(one, of) for one, of in calls if chains[id(one.node)][-1] is loop]
            if kind == "backward":
                own = words.setdefault(id(seen.node), {})
                following = next((_stepped(one) for one, of in calls[place:] if of == "step"), "")
                own |= {"optimizer": following} if following else {}
                before = here[: here.index((seen, kind))]
                own |= {"earlier": str(before[-1][0].node.lineno)} if before and before[-1][1] == kind else {}
            tests = [node for node in chains[id(seen.node)] if isinstance(node, ast.If)]
            function = function_of(tree, seen.node)
            if kind == "step" and not any(
                of == "backward" and function in _all_around(tree, one.node) for one, of in calls
            ):
                words.setdefault(id(seen.node), {})["passed"] = "grads"
            if kind != "step" or not tests or isinstance(loop, FUNCTIONS):
                continue
            outside = [(one, of) for one, of in here if tests[-1] not in chains[id(one.node)]]
            if {of for _, of in outside} != {"backward"}:
                continue
            cleared = [one for one, of in calls if of == "clear" and function in _all_around(tree, one.node)]
            for one in (*(one for one, _ in outside), *cleared):
                words.setdefault(id(one.node), {})["summed"] = "summed"
            for one in uses:
                if one.source.tree is tree and tests[-1] in _all_around(tree, one.node):
                    words.setdefault(id(one.node), {})["grads"] = "summed"
    return words


def _all_around(tree: ast.Module, node: ast.AST) -> Iterator[ast.AST]:
    above = parents(tree)
    while node in above:
        node = above[node]
        yield node


OF_A_STEP = {
    "torch.Tensor.backward": "backward",
    "torch.optim.Optimizer.step": "step",
    "torch.amp.GradScaler.step": "step",
    "torch.optim.Optimizer.zero_grad": "clear",
}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)


def _stepped(seen: LibraryUse) -> str:
    """The optimizer that makes a step here."""
    row = row_of(seen.name)
    if row is None or not isinstance(seen.node, ast.Call) or not isinstance(seen.node.func, ast.Attribute):
        return ""
    if row.torch == "torch.optim.Optimizer.step":
        return ast.unparse(seen.node.func.value)
    return ast.unparse(seen.node.args[0]) if row.torch == "torch.amp.GradScaler.step" and seen.node.args else ""
