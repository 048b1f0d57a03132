"""Which parameter each entry of a torch optimizer's state belongs to.

`optimizer.state_dict()` counts parameters, group after group, in the order in which they were handed over; names are in
it only since torch 2.6, and only when they were handed over too. So the order is taken from the model: all of its
parameters in one group, or groups by one of the rules that training scripts sort by, whichever alone fits every shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from ..errors import Ambiguous, BadCheckpoint
from .formats.contents import Shape, shown
from .plan import few, size

Groups = list[list[str]]

REMEDY = (
    "name the function that builds model and optimizer, with --optimizer FILE.py:FUNCTION returning (model, optimizer)"
)


def is_norm_or_bias(name: str, shape: Shape) -> bool:
    """Whether a parameter is a vector, as norms' scales and shifts and all biases are."""
    return len(shape) <= 1


def is_bias(name: str, shape: Shape) -> bool:
    """Whether a parameter is called a bias."""
    return name.rpartition(".")[2] == "bias"


def is_of_a_norm(name: str, shape: Shape) -> bool:
    """Whether a parameter is a norm's, by what stands beside it being a vector: a scale, or the bias of one."""
    return len(shape) == 1 and not is_bias(name, shape)


SPLITS: tuple[Callable[[str, Shape], bool], ...] = (is_norm_or_bias, is_bias, is_of_a_norm)


def names_of(groups: Sequence[Sequence[int]], shapes: Mapping[int, Shape], parameters: Mapping[str, Shape]) -> Groups:
    """The names of each group's parameters.

    groups: the indices of each. shapes: of the state of those that have one, by index. parameters: name -> shape, in
    the model's order. Raises Ambiguous when several orders fit, BadCheckpoint when none does.
    """
    wanted = [len(group) for group in groups]
    flat = [index for group in groups for index in group]
    if sum(wanted) > len(parameters):
        raise BadCheckpoint(
            f"the optimizer has {sum(wanted)} parameters and the state dict {len(parameters)}: it is another model's"
        )
    fitting: list[Groups] = []
    for order in _orders(wanted, parameters):
        names = [name for group in order for name in group]
        fits = [len(group) for group in order] == wanted and all(
            parameters[name] == shapes.get(index, parameters[name]) for index, name in zip(flat, names, strict=True)
        )
        if fits and order not in fitting:
            fitting.append(order)
    if not fitting:
        raise BadCheckpoint(
            f"its {_counted(wanted)} fit no usual order of the model's {len(parameters)} parameters: {REMEDY}"
        )
    if len(fitting) > 1:
        first, second = ([name for group in order for name in group] for order in fitting[:2])
        apart = [shown(one) for one, other in zip(first, second, strict=True) if one != other]
        raise Ambiguous(
            f"its {_counted(wanted)} may be in more than one order, which differ in {few(apart, 3)}: {REMEDY}"
        )
    return fitting[0]


def _counted(wanted: Sequence[int]) -> str:
    if len(wanted) == 1:
        return f"{wanted[0]} parameters"
    return f"groups of {few([str(count) for count in wanted], 8, ', ')} parameters"


def _orders(wanted: Sequence[int], parameters: Mapping[str, Shape]) -> Iterable[Groups]:
    """The orders that training scripts use: one group; two by a rule, either first; blocks of the model one by one."""
    names = list(parameters)
    if len(wanted) == 1:
        yield [names]
        return
    if len(wanted) == 2:
        for rule in SPLITS:
            inside = [name for name in names if rule(name, parameters[name])]
            outside = [name for name in names if not rule(name, parameters[name])]
            yield [inside, outside]
            yield [outside, inside]
    if sum(wanted) == len(names):
        at, blocks = 0, []
        for count in wanted:
            blocks.append(names[at : at + count])
            at += count
        yield blocks
        if len(wanted) == 2:  # the head first, as fine-tuning scripts do
            yield [names[-wanted[0] :], names[: -wanted[0]]]


def check_names(
    groups: Groups, shapes: Mapping[int, Shape], indices: Sequence[int], parameters: Mapping[str, Shape]
) -> None:
    """Hold names that were given against the state dict; raises BadCheckpoint."""
    names = [name for group in groups for name in group]
    if len(names) != len(indices):
        raise BadCheckpoint(f"the optimizer has {len(indices)} parameters and {len(names)} are named")
    for index, name in zip(indices, names, strict=True):
        if name not in parameters:
            raise BadCheckpoint(f"the optimizer's parameter {name} is not in the state dict")
        if parameters[name] != shapes.get(index, parameters[name]):
            raise BadCheckpoint(
                f"the optimizer's state of {name} is {size(shapes[index])}, the parameter {size(parameters[name])}"
            )
