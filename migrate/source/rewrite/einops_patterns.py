"""einops' patterns, `"b n (h d) -> b h n d"`, as functions of reshape and transpose, one for each pattern of a file.

A pattern names every axis of a tensor. Its function takes the tensor, and the sizes that the call passes by name.
torch.einsum, whose equations are like these, as the product of matrices that it is: MindSpore's own has no CPU kernel.
So is the product of einops' EinMix with its weight, whose function is one of the tensor, the weight and the bias.
"""

from __future__ import annotations

import ast
import copy
import itertools
import keyword
import re
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ..observe.observations import (
    UNKNOWN_RANK,
    DictKind,
    Observed,
    PythonModule,
    SequenceKind,
    TensorKind,
    always_sequences,
    callees_of,
    constants_of,
    entries_of,
    kinds_of,
    of_constant,
    replacing,
    set_callee,
    set_kinds,
)
from .context import Context, Unwritable, fill_template, handles
from .row_calls import argument_of, guard_keys

NAMES = {f"einops.einops.{word}": word for word in ("rearrange", "repeat", "reduce")}
LAYERS = {"einops.layers.torch.Rearrange": "rearrange", "einops.layers.torch.Reduce": "reduce"}
REST = "*rest"  # the axes that `...` stands for, each one of its own
WHOLE = "**rest"  # the axes of `...` merged into one axis, or into a part of one
REDUCTIONS = {"mean": "mean", "sum": "sum", "max": "amax", "min": "amin"}  # -> of mindspore.ops


class Pattern(NamedTuple):
    """A change of a tensor's axes: both sides of a pattern, as groups of axes, each of which is one axis of the tensor.

    what: rearrange, repeat or reduce; reduction: the function that reduces. given: the axes whose sizes the call names.
    `...` is REST where tensors have any number of axes.
    """

    text: str
    left: list[list[str]]
    right: list[list[str]]
    what: str
    reduction: str
    given: list[str]

    @property
    def name(self) -> str:
        """The function's name, such as `rearrange_b_n_hd_to_b_h_n_d`."""
        sides = ("_".join("".join(group) or "1" for group in side) for side in (self.left, self.right))
        return f"{self.reduction or self.what}_{'_to_'.join(sides)}".replace("*", "")

    def fault(self, why: str = "") -> Unwritable:
        """The error for a pattern that cannot be written."""
        return Unwritable(f"einops' {self.what} with {self.text!r}{why}: write it with reshape and permute")


@handles(*NAMES)
def of_tensor(node: ast.Call, context: Context) -> ast.expr:
    """`rearrange(x, "b n (h d) -> b h n d", h=8)` as a call of that pattern's function."""
    kinds = kinds_of(node.args[0]) if node.args else []
    dimensions = {kind.rank if isinstance(kind, TensorKind) and kind.rank < UNKNOWN_RANK else None for kind in kinds}
    (pattern, *others), tensor, sizes, text = _patterns(
        node, context, NAMES, dimensions.pop() if len(dimensions) == 1 else None
    )
    if any(isinstance(kind, SequenceKind) for kind in kinds):
        if not always_sequences(kinds, "list", "tuple"):
            raise pattern.fault(" of an argument that is only sometimes a list")
        tensor = ast.Call(context.name("mindspore.ops.stack"), [tensor], [])  # as einops does
    if others:
        functions = [_function(one, context) for one in (pattern, *others)]
        keys: list[ast.expr | None] = [ast.Constant(one.text) for one in (pattern, *others)]
        return ast.Call(ast.Subscript(ast.Dict(keys, functions), text, ast.Load()), [tensor, *sizes], [])
    order = _order(pattern)
    if pattern.what == "rearrange" and order is not None:
        axes = ast.Tuple([ast.Constant(place) for place in order], ast.Load())
        return ast.Call(context.name("mindspore.ops.transpose"), [tensor, axes], [])
    return ast.Call(_function(pattern, context), [tensor, *sizes], [])


@handles("einops.einops.einsum")
def named_einsum(node: ast.Call, context: Context) -> ast.expr:
    """`einsum(x, y, "batch row, row column -> batch column")` with a letter for each name."""
    *tensors, text = node.args
    known = [text.value] if isinstance(text, ast.Constant) else constants_of(text) or []
    pattern = str(known[0]).replace("…", "...") if len(known) == 1 else ""
    names = dict.fromkeys(re.findall(r"[^\W\d]\w*", pattern))
    letters = dict(zip(names, string.ascii_letters, strict=False))
    rest = re.sub(r"[^\W\d]\w*", "", pattern)
    if not names or node.keywords or len(letters) < len(names) or re.search(r"[()\d]", rest):
        raise Unwritable(f"einops' einsum with {ast.unparse(text)}: write torch.einsum")
    if not isinstance(text, ast.Constant):
        context.guard(context.visit(copy.deepcopy(text)), known, node)
    equation = re.sub(r"[^\W\d]\w*", lambda found: letters[found[0]], pattern).replace(" ", "")
    torch = set_kinds(ast.Name("torch", ast.Load()), [PythonModule("torch")])
    called = replacing(ast.Attribute(torch, "einsum", ast.Load()), node.func)
    set_callee(called, "torch.einsum")
    found: ast.expr = context.visit(replacing(ast.Call(called, [ast.Constant(equation), *tensors], []), node))
    return found


EQUATION = re.compile(r"([a-zA-Z]+)(?:,([a-zA-Z]+))?->([a-zA-Z]*)")


@handles("torch.einsum")
def einsum(node: ast.Call, context: Context) -> ast.expr | None:
    """`ops.matmul(q, ops.transpose(k, (0, 1, 3, 2)))` for `torch.einsum("bhid,bhjd->bhij", q, k)`; None where the
    equation is no such product, or no text, or of other tensors than float32."""
    text, *tensors = node.args or [ast.Constant(None)]
    found = EQUATION.fullmatch(str(text.value).replace(" ", "")) if isinstance(text, ast.Constant) else None
    terms = [term for term in found.groups()[:2] if term] if found is not None else []
    kinds = [kinds_of(tensor) for tensor in tensors]
    floats = all(each and all(isinstance(one, TensorKind) and one.dtype == "float32" for one in each) for each in kinds)
    template = plain_einsum(terms, found[3]) if found is not None and len(terms) == len(tensors) and floats else None
    if template is None or node.keywords:
        return None
    given = [argument_of(tensor, context).node for tensor in tensors]
    return fill_template(template, dict(zip("xy", given, strict=False)), context.name)


def plain_einsum(terms: Sequence[str], out: str) -> str | None:
    """The product of two tensors, or the sums of one, in MindSpore's functions: a template of `x` and `y`.

    None for what is not one product of matrices: a letter that is twice in a term, or several to sum over. Axes of size
    1 meet longer ones as in torch; an error where both are summed in a product of matrices.
    """
    if any(len({*term}) < len(term) for term in (*terms, out)) or not {*out} <= {*"".join(terms)}:
        return None
    if len(terms) == 1:
        return _arranged(*_summed("x", terms[0], out), out)
    pair = [_summed("x", terms[0], terms[1] + out), _summed("y", terms[1], terms[0] + out)]
    for (x, left), (y, right) in (pair, pair[::-1]):
        batch, inner = (
            "".join(letter for letter in left if letter in right and (letter in out) is kept) for kept in (True, False)
        )
        rows, columns = ("".join(n for n in one if n not in other) for one, other in ((left, right), (right, left)))
        if not inner:
            whole = [_spread(text, term, out) for text, term in pair]
            return f"{whole[0]} * {whole[1]}"
        if not columns:  # as many products as `left` has values
            return _arranged(*_summed(f"{x} * {_spread(y, right, left)}", left, batch + rows), out)
        if len(inner) == 1 and rows and len(columns) == 1 and (len(rows) == 1 or not batch):
            x, y = _arranged(x, left, batch + rows + inner), _arranged(y, right, batch + inner + columns)
            return _arranged(f"mindspore.ops.matmul({x}, {y})", batch + rows + columns, out)
    return None


def _summed(text: str, term: str, kept: str) -> tuple[str, str]:
    """A tensor, summed over the axes that nothing else has, and its letters."""
    gone = tuple(place for place, letter in enumerate(term) if letter not in kept)
    left = "".join(letter for letter in term if letter in kept)
    return (f"mindspore.ops.sum({text}, {gone if len(gone) > 1 else gone[0]})" if gone else text), left


def _arranged(text: str, term: str, order: Iterable[str]) -> str:
    """A tensor with its axes in another order."""
    axes = tuple(map(term.index, order))
    return text if list(axes) == sorted(axes) else f"mindspore.ops.transpose({text}, {axes})"


def _spread(text: str, term: str, order: str) -> str:
    """A tensor with its axes in this order, and one of size 1 for every letter that it lacks, but the first ones."""
    text = _arranged(text, term, [letter for letter in order if letter in term])
    first = min((order.index(letter) for letter in term), default=len(order))
    for place, letter in enumerate(order[first:]):
        text = text if letter in term else f"mindspore.ops.expand_dims({text}, {place})"
    return text


@handles("einops.einops.parse_shape")
def shape_by_names(node: ast.Call, context: Context) -> ast.expr:
    """`parse_shape(x, "b _ h")` as `{"b": x.shape[0], "h": x.shape[2]}`."""
    named = len(node.args) == 2 and not node.keywords and isinstance(node.args[0], (ast.Name, ast.Attribute))
    texts = _texts(node.args[1], "parse_shape", context) if named else []
    names = texts[0].split() if len(texts) == 1 else []
    if not names or not all(name.isidentifier() for name in names):
        raise Unwritable(f"{ast.unparse(node)}: write a dictionary of x.shape")
    places = {name: place for place, name in enumerate(names) if name != "_"}
    shape = ast.Attribute(context.visit(node.args[0]), "shape", ast.Load())
    items: list[ast.expr] = [ast.Subscript(shape, ast.Constant(place), ast.Load()) for place in places.values()]
    return ast.Dict([ast.Constant(name) for name in places], items)


@handles(*LAYERS)
def as_layer(node: ast.Call, context: Context) -> ast.expr:
    """`Rearrange("b c h w -> b (h w) c")` as a small Cell of that pattern's function."""
    node.args.insert(0, ast.Constant(None))
    (pattern, *others), _, sizes, text = _patterns(node, context, LAYERS, None)
    if others:
        raise Unwritable(f"einops' layer with {ast.unparse(text)}, which is not always the same string")
    return ast.Call(context.name("msmigrate.nn.Rearranged"), [_function(pattern, context), *sizes], [])


@handles("einops.layers.torch.EinMix")
def mixed(node: ast.Call, context: Context) -> ast.expr:
    """`EinMix("b t c -> b t d", weight_shape="c d", bias_shape="d", c=6, d=4)` as a small Cell of that function."""
    words: dict[str, ast.expr] = {}
    for word in node.keywords:
        words |= _unpacked(word.value, context) if word.arg is None else {word.arg: word.value}
    words |= dict(zip(("pattern", "weight_shape", "bias_shape"), node.args, strict=False))
    given = [words.pop(name, ast.Constant(None)) for name in ("pattern", "weight_shape", "bias_shape")]
    none = isinstance(given[2], ast.Constant) and given[2].value is None
    texts = [_texts(one, "EinMix", context) for one in given[: 2 + (not none)]]
    if any(len(one) > 1 for one in texts):
        raise Unwritable(f"einops' {ast.unparse(node)}, whose patterns are not always the same strings")
    text, shape, *added = (one[0] for one in texts)
    weight, bias = shape.split(), added[0].split() if added else None
    left, right = _sides(text, None)
    sizes = {name: context.visit(value) for name, value in words.items()}
    pattern = Pattern(f"{text}, {shape}", left, right, "EinMix", "", [name for name in sizes if name not in weight])
    function = _mixing(pattern, weight, bias is not None, context)
    made = [name for group in right for name in group if name not in (REST, WHOLE)]

    def of(names: Iterable[str]) -> ast.expr:
        return ast.Tuple([copy.deepcopy(sizes[name]) if name else ast.Constant(1) for name in names], ast.Load())

    inputs: ast.expr = ast.Constant(1)
    for place, name in enumerate(name for name in weight if name not in made):
        size = copy.deepcopy(sizes[name])
        inputs = ast.BinOp(inputs, ast.Mult(), size) if place else size
    shapes = [of(weight), ast.Constant(None) if bias is None else of(name if name in bias else "" for name in made)]
    others = [sizes[name] for name in pattern.given]
    return ast.Call(context.name("msmigrate.nn.Mixed"), [function, *shapes, inputs, *others], [])


def _mixing(pattern: Pattern, weight: list[str], bias: bool, context: Context) -> ast.expr:
    """The name of the function of a pattern that multiplies with a weight of these axes. Raises Unwritable."""
    inside = [axis for group in pattern.left for axis in group]
    made = [REST if axis == WHOLE else axis for group in pattern.right for axis in group]
    several = len({*inside}) < len(inside) or len({*made}) < len(made) or len({*weight}) < len(weight)
    gone = [axis for axis in inside if axis not in (*made, *weight)]
    if several or REST in gone or not {*made} <= {*inside, *weight} or not {*weight} <= {*made, *inside}:
        raise pattern.fault()
    x, w, b = (name if name not in {*inside, *weight, *pattern.given} else f"{name}_" for name in ("x", "w", "b"))
    batch = [axis for axis in inside if axis in weight and axis in made]
    rows = [axis for axis in inside if axis not in weight and axis in made]
    inner, columns = [a for a in inside if a in weight and a not in made], [a for a in made if a not in inside]
    transpose, total, product = (
        ast.unparse(context.name(f"mindspore.ops.{n}")) for n in ("transpose", "sum", "matmul")
    )
    lines = [f"{_tuple(weight)[1:-1]} = {w}.shape"]
    lines += _sizes(pattern._replace(given=[*pattern.given, *weight]), x)
    if any(len(group) != 1 for group in pattern.left):
        lines.append(f"{x} = {x}.reshape({_shape(inside)})")
    if gone:
        lines.append(f"{x} = {total}({x}, {_tuple([_place(inside, axis) for axis in gone])})")
    lines += _turned(x, [axis for axis in inside if axis not in gone], [*batch, *rows, *inner], transpose)
    lines.append(f"{x} = {x}.reshape({_shape([*batch, '-1', ' * '.join(inner) or '1'])})")
    lines += _turned(w, weight, [*batch, *inner, *columns], transpose)
    whole = [" * ".join(part) or "1" for part in (inner, columns)]
    lines.append(f"{w} = {w}.reshape({_shape([*batch, *whole])})")
    lines.append(f"{x} = {product}({x}, {w}).reshape({_shape([*batch, *rows, *columns])})")
    lines += _turned(x, [*batch, *rows, *columns], made, transpose)
    lines += [f"{x} = {x} + {b}"] if bias else []
    ends = ["-1" if WHOLE in group else " * ".join(group) or "1" for group in pattern.right]
    lines.append(f"return {x}" if ends == made else f"return {x}.reshape({_shape(ends)})")
    head = f"def mix_{'_'.join(weight)}({', '.join([x, w, b, *pattern.given])}):"
    return _defined("\n    ".join([head, f'"""`{pattern.text}`"""', *lines]), context)


def _turned(x: str, axes: list[str], order: list[str], transpose: str) -> list[str]:
    """The line that puts a tensor's axes into another order; none where they have it."""
    return [] if axes == order else [f"{x} = {transpose}({x}, {_tuple([_place(axes, axis) for axis in order])})"]


def _patterns(
    node: ast.Call, context: Context, names: Mapping[str, str], dimensions: int | None
) -> tuple[list[Pattern], ast.expr, list[ast.expr], ast.expr]:
    """The patterns, and the call's expressions for the tensor, the sizes and the pattern. Raises Unwritable."""
    words: dict[str, ast.expr] = {}
    for word in node.keywords:
        words |= _unpacked(word.value, context) if word.arg is None else {word.arg: word.value}
    args = [one for given in node.args for one in _unpacked_items(given, context)]
    what = names[callees_of(node)[0]]
    text = args[1] if len(args) > 1 else words.pop("pattern", ast.Constant(None))
    seen = _texts(text, what, context)
    reduction = _texts(words.pop("reduction", args[2] if len(args) > 2 else ast.Constant("")), what, context)
    if len(reduction) > 1:
        raise Unwritable(f"einops' {what} with a reduction that is not always the same string")
    if reduction[0] == "repeat":  # as einops' own `repeat` calls `reduce`
        what, reduction = "repeat", [""]
    patterns = [Pattern(one, *_sides(one, dimensions), what, reduction[0], [*words]) for one in seen]
    return patterns, argument_of(args[0], context).node, [*map(context.visit, words.values())], context.visit(text)


def _texts(text: ast.expr, what: str, context: Context) -> list[str]:
    """The strings that an argument was, of which the new file takes no others. Raises Unwritable."""
    if isinstance(text, ast.Constant) and isinstance(text.value, str):
        return [text.value]
    seen = constants_of(text) or []
    if not seen or not all(isinstance(one, str) for one in seen):
        raise Unwritable(f"einops' {what} with {ast.unparse(text)}, which is not always the same string")
    context.guard(context.visit(copy.deepcopy(text)), seen, text)
    return [str(one) for one in seen]


def _unpacked(given: ast.expr, context: Context) -> dict[str, ast.expr]:
    """The sizes that a dictionary gives, by their names, of which the new file takes no others. Raises Unwritable."""
    entries = entries_of(given)
    same = all(isinstance(kind, DictKind) and {*dict(kind.entries)} == {*(entries or ())} for kind in kinds_of(given))
    if entries is None or not same:
        raise Unwritable(f"einops' pattern with **{ast.unparse(given)}, whose names are not always the same")
    if isinstance(given, ast.Dict) and len(given.keys) == len(entries):
        return dict(zip(entries, given.values, strict=True))
    guard_keys(given, [*entries], context)
    return {
        key: replacing(ast.Subscript(copy.deepcopy(given), ast.Constant(key), ast.Load()), given) for key in entries
    }


def _unpacked_items(given: ast.expr, context: Context) -> list[ast.expr]:
    """An argument, or the items of one with a star in front, `*self.pattern`. Raises Unwritable."""
    if not isinstance(given, ast.Starred):
        return [given]
    seen = constants_of(given.value) or []
    if len(seen) != 1 or not isinstance(seen[0], (tuple, list)):
        raise Unwritable(f"einops' pattern with {ast.unparse(given)}, which is not always the same")
    found = []
    for place, value in enumerate(seen[0]):
        item = ast.Subscript(copy.deepcopy(given.value), ast.Constant(place), ast.Load())
        vars(item)["observed"] = Observed(kinds=[of_constant(value)], constants=[value])
        found.append(item)
    return [ast.copy_location(item, given) for item in found]


def _sides(text: str, dimensions: int | None) -> tuple[list[list[str]], list[list[str]]]:
    """Both sides of a pattern, with `...` replaced by the remaining axes where the number of dimensions is known.
    Raises Unwritable."""
    sides = [[*_groups(side)] for side in text.split("->")]
    names = [name for side in sides for group in side for name in group]
    plain = all(re.fullmatch(r"[^\W\d]\w*|\d+", name.lstrip("*")) and not keyword.iskeyword(name) for name in names)
    rests = [[name for group in side for name in group if name in (REST, WHOLE)] for side in sides]
    unclear = WHOLE in rests[0] or max(map(len, rests)) > 1 or (any(rests) and "rest" in names)
    if len(sides) != 2 or not plain or unclear:
        raise Unwritable(f"einops' pattern {text!r}: write it with reshape and permute")
    if dimensions is None or not any(rests):
        return sides[0], sides[1]
    rest = [f"rest{number}" for number in range(dimensions - len(sides[0]) + 1)]
    opened = []
    for side in sides:
        whole = [[[name] for name in rest] if group == [REST] else [group] for group in side]
        flat = [group for groups in whole for group in groups]
        opened.append([[n for name in group for n in (rest if name == WHOLE else [name])] for group in flat])
    return opened[0], opened[1]


def _groups(side: str) -> Iterator[list[str]]:
    """The axes of one side, one group for each axis of the tensor; an axis of size 1 is an empty group."""
    for inside, alone in re.findall(r"\(([^()]*)\)|([^\s()]+)", side.replace("…", "...")):
        names = [alone.replace("...", REST)] if alone else inside.replace("...", f" {WHOLE} ").split()
        yield [name for name in names if name != "1"]


def _order(pattern: Pattern) -> list[int] | None:
    """The order of axes, where that is all that changes."""
    left, right = (["".join(group) for group in side] for side in (pattern.left, pattern.right))
    alone = all(len(group) == 1 and group != [REST] for group in (*pattern.left, *pattern.right))
    return [left.index(name) for name in right] if alone and sorted(left) == sorted(right) else None


def _function(pattern: Pattern, context: Context) -> ast.expr:
    """The name of the pattern's function, which is defined if it does not exist yet."""
    return _defined(_written(pattern, context), context)


def _defined(text: str, context: Context) -> ast.expr:
    """The name of a function of this text, which is defined if it does not exist yet."""
    made = ast.parse(text).body[0]
    assert isinstance(made, ast.FunctionDef)
    name = made.name
    for number in itertools.count(1):  # different patterns may have the same name
        made.name = name if number == 1 else f"{name}_{number}"
        known = context.program.definitions.setdefault(f"einops:{made.name}", made)
        if isinstance(known, ast.FunctionDef) and _same(known, made):
            break
    return ast.Name(made.name, ast.Load())


def _same(one: ast.FunctionDef, other: ast.FunctionDef) -> bool:
    """Whether two functions are the same except for their docstrings."""
    return ast.dump(one.args) == ast.dump(other.args) and [*map(ast.dump, one.body[1:])] == [
        *map(ast.dump, other.body[1:])
    ]


def _written(pattern: Pattern, context: Context) -> str:
    """The function's source."""
    inside = [axis for group in pattern.left for axis in group]
    made = [REST if axis == WHOLE else axis for group in pattern.right for axis in group]
    new, gone = [a for a in made if a not in inside], [a for a in inside if a not in made]
    known = {*inside, *pattern.given}
    other = (new and pattern.what != "repeat") or (gone and pattern.what != "reduce")  # needs another einops function
    named = [axis for axis in made if not axis.isdigit()]
    twice = len({*named}) < len(named) or len({*inside}) < len(inside)
    if other or not {*named} <= known or twice:
        raise pattern.fault()
    x = "x" if "x" not in known else "tensor"
    lines = [*_sizes(pattern, x)]
    if any(len(group) != 1 for group in pattern.left) or REST in gone:  # split merged axes, and merge a reduced `...`
        sizes = ["-1" if axis in gone and axis == REST else axis for axis in inside]
        lines.append(f"{x} = {x}.reshape({_shape(sizes)})")
    if gone:
        if pattern.reduction not in REDUCTIONS:
            raise pattern.fault(f" by {pattern.reduction or 'a user-defined function'}")
        reduce = ast.unparse(context.name(f"mindspore.ops.{REDUCTIONS[pattern.reduction]}"))
        behind = len(inside) if REST in inside and REST not in gone else 0  # axes after `...` are counted from the end
        places = [inside.index(axis) for axis in gone]
        places = [place - behind if behind and place > inside.index(REST) else place for place in places]
        lines.append(f"{x} = {reduce}({x}, {places[0] if len(places) == 1 else tuple(places)})")
    kept, order = [a for a in inside if a in made], [a for a in made if a in inside]
    if order != kept:
        transpose = ast.unparse(context.name("mindspore.ops.transpose"))
        lines.append(f"{x} = {transpose}({x}, {_tuple([_place(kept, axis) for axis in order])})")
    if new:
        lines.append(f"{x} = {x}.reshape({_shape([axis if axis in order else '1' for axis in made])})")
        lines.append(f"{x} = {ast.unparse(context.name('mindspore.ops.broadcast_to'))}({x}, {_tuple(made)})")
    ends = ["-1" if WHOLE in group else " * ".join(group) or "1" for group in pattern.right]
    lines.append(f"return {x}" if ends == made else f"return {x}.reshape({_shape(ends)})")
    if lines[-1] == f"return {x}" and lines[:-1] and (last := lines[-2]).startswith(f"{x} = "):
        lines[-2:] = [f"return {last.removeprefix(f'{x} = ')}"]
    body = "".join(f"    {line}\n" for line in lines)
    return f'def {pattern.name}({", ".join([x, *pattern.given])}):\n    """`{pattern.text}`"""\n{body}'


def _tuple(items: list[str]) -> str:
    """The source of a tuple."""
    return f"({', '.join(items)}{',' * (len(items) == 1)})"


def _shape(sizes: list[str]) -> str:
    """The source of `reshape`'s argument."""
    return ", ".join(sizes) if sizes and REST not in sizes else _tuple(sizes)


def _place(axes: list[str], axis: str) -> str:
    """The source of an axis's index among others, or of the indices of the axes that `...` stands for."""
    place = axes.index(axis)
    if axis == REST:
        return f"*range({place}, {place} + len(rest))"
    return f"{place - 1} + len(rest)" if REST in axes[:place] else str(place)


def _sizes(pattern: Pattern, x: str) -> Iterator[str]:
    """`b, n, h_d = x.shape`, and `d = h_d // h`; with `...` one by one, and `rest = x.shape[1:-1]`."""
    wholes = ["_".join(group) or "_" for group in pattern.left]
    if REST in wholes:
        place = wholes.index(REST)
        behind = len(wholes) - 1 - place
        for number, whole in enumerate(wholes):
            if number != place and whole != "_":
                yield f"{whole} = {x}.shape[{number if number < place else number - len(wholes)}]"
        yield f"rest = {x}.shape[{place or ''}:{-behind or ''}]"
    elif wholes:  # a single number has no axes
        yield f"{', '.join(wholes)}{',' * (len(wholes) == 1)} = {x}.shape"
    for group, whole in zip(pattern.left, wholes, strict=True):
        unknown = [axis for axis in group if axis not in pattern.given]
        if len(unknown) > 1:
            raise pattern.fault(f": the sizes of {' and '.join(unknown)} are not given")
        others = " * ".join(axis for axis in group if axis in pattern.given)
        if unknown and others:
            yield f"{unknown[0]} = {whole} // {others if ' ' not in others else f'({others})'}"
