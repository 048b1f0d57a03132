"""What the arguments of a call are, under the names that the mapping table's row gives them."""

from __future__ import annotations

import ast
import copy

from ...mappings.rows import Row
from .crossing_calls import CannotWrite, Given, bound
from .facts import Facts


class Arguments(ast.NodeTransformer):
    """Finds what a call gives, rewritten; the calls themselves are in calls.py."""

    facts: Facts
    file: str

    def given(self, row: Row, node: ast.Call, *, method: bool = False) -> dict[str, Given]:
        """What the call gives for each of the row's arguments."""
        positional: list[Given] = []
        if method and isinstance(node.func, ast.Attribute):
            positional.append(self.item(node.func.value))
        rest = next((place for place, argument in enumerate(row.arguments) if argument.rest), len(row.arguments))
        for argument in node.args:
            if isinstance(argument, ast.Starred) and len(positional) < rest:
                positional += self.unpacked(row, argument)
            else:
                positional.append(self.item(argument))
        named = {word.arg: self.item(word.value) for word in node.keywords if word.arg is not None}
        for word in node.keywords:
            if word.arg is None:
                named |= self.opened(row, word.value)
        return bound(row, positional, named)

    def unpacked(self, row: Row, node: ast.Starred) -> list[Given]:
        """What `*sizes` gives, item by item, for a variable that always has as many."""
        counts = {*(self.facts.constants(self.file, node) or ())}
        kinds = self.facts.kinds(self.file, node.value)
        if len(counts) != 1 or not all(kind.startswith(("tuple(", "list(")) for kind in kinds):
            raise CannotWrite(f"{row.torch} with {ast.unparse(node)}")
        words = [kind[kind.index("(") + 1 : -1] for kind in kinds]
        nested = any("(" in word for word in words)  # what such an item is cannot be told, and a verb that asks refuses
        inside = [] if nested else list(dict.fromkeys(one for word in words for one in word.split(", ")))
        whole = self.visit(node.value)
        places = (ast.Constant(place) for place in range(*counts))
        return [Given(ast.Subscript(copy.deepcopy(whole), place, ast.Load()), inside, None) for place in places]

    def opened(self, row: Row, node: ast.expr) -> dict[str, Given]:
        """What `**options` gives, key by key, for keys that are always the same."""
        if isinstance(node, ast.Dict):
            words = {k.value: v for k, v in zip(node.keys, node.values, strict=True) if isinstance(k, ast.Constant)}
            if len(words) == len(node.keys):
                return {str(key): self.item(value) for key, value in words.items()}
        entries = self.facts.entries(self.file, node)
        told = self.facts.kinds(self.file, node)
        if entries is None or (
            not isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and set(entries) - {"inplace"}
        ):
            raise CannotWrite(f"{row.torch} with **{ast.unparse(node)}")
        defaults = {argument.torch: argument.default for argument in row.arguments if not argument.required}
        items = {}
        for key, kinds in entries.items():
            there: ast.expr = ast.Subscript(self.visit(copy.deepcopy(node)), ast.Constant(key), ast.Load())
            if not all(f'"{key}": ' in kind for kind in told) and key != "inplace":  # now and then
                if not isinstance(defaults.get(key), (bool, int, float, str)):
                    raise CannotWrite(f"{row.torch} with {key} now and then in **{ast.unparse(node)}")
                get = ast.Attribute(self.visit(copy.deepcopy(node)), "get", ast.Load())
                there = ast.Call(get, [ast.Constant(key), ast.Constant(defaults[key])], [])
                kinds = list(dict.fromkeys([*kinds, type(defaults[key]).__name__]))
            items[key] = Given(there, kinds, [None] if kinds == ["NoneType"] else None)
        return items

    def item(self, node: ast.expr) -> Given:
        """An argument, rewritten, with what it was."""
        kinds, constants = self.facts.kinds(self.file, node), self.facts.constants(self.file, node)
        return Given(self.visit(node), kinds, constants)
