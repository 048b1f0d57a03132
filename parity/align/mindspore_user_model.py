"""The user's MindSpore net: built, described, given weights, stepped."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import mindspore
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore import dtype as mstype
from mindspore.experimental.optim import optimizer as experimental
from safetensors import SafetensorError
from safetensors.numpy import load_file

from ...errors import BadInput, BadTrace
from ...migrate.model_spec import called, parse
from ...training.models import mindspore_models
from ...training.models.mindspore_models import Canonical
from ...training.models.model_names import flat, of_batch
from ...training.recipe.schema import Recipe
from ...training.step.mindspore_step import StepResult, TrainStep, as_number, joined
from ...workers.worker import ready, wait_for
from ..job import ParityJob, recipe_of
from ..record.batches import Images, read_inputs
from ..record.randomness import unseeded
from ..run_folder import INPUTS, START
from .alignment import IDENTITY, IN_MINDSPORE_ALONE, IN_TORCH_ALONE, Alignment, Lack
from .model_structure import Held, Module, Structure, Watch, file, join, made_at, on_few, read
from .user_model import (
    NO_TENSOR,
    Given,
    StepOutput,
    arguments,
    checked,
    completed,
    first,
    given,
    held_by,
    layer_class,
    one_number,
    plain_values,
    run_users,
    without_optimizer,
)

OPTIMIZERS = (nn.Optimizer, experimental.Optimizer)
PERIOD = 101
FLOATS = (mstype.float16, mstype.bfloat16, mstype.float32, mstype.float64)


def output_loss(outputs: Any, labels: Tensor) -> Tensor:
    """The loss of what the net returned."""
    distances = [_distance(x) for x in _flat(outputs) if x.dtype in FLOATS]
    return ops.stack(distances).mean()


def _distance(x: Tensor) -> Tensor:
    x = ops.cast(x, mstype.float32)
    fixed = ops.cast(ops.arange(x.size) % PERIOD, mstype.float32) / PERIOD
    return ((x.reshape(-1) - fixed) ** 2).mean() / 2


def _flat(value: Any) -> list[Tensor]:
    """The tensors in a nest of tuples, lists and dicts, in order; this is compiled too."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    found = []
    if isinstance(value, (tuple, list)):
        for item in value:
            found += _flat(item)
    return found


BARE = frozenset(vars(nn.Cell()))


def plain_names(one: Any) -> list[str]:
    """The attributes of an object that hold plain values, without those that every Cell has."""
    return [name for name, value in vars(one).items() if name not in BARE and _is_plain(value)]


def _is_plain(value: Any) -> bool:
    """Whether a value is None, a number, a string or a tensor that is no Parameter, or a nest of such."""
    if type(value) in (list, tuple, dict):
        return all(map(_is_plain, value.values() if isinstance(value, dict) else value))
    return value is None or (isinstance(value, (int, float, str, Tensor)) and not isinstance(value, Parameter))


def copied(value: Any) -> Any:
    """A copy of a plain value, which later changes in place do not reach."""
    if isinstance(value, dict):
        return {key: copied(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(copied, value))
    return value.copy() if isinstance(value, Tensor) else value


def build(options: ParityJob, *, tuned: bool = True) -> Given:
    """The recipe's net, or what the user's function returns, with a loss of all outputs where the pair asks for one.

    tuned: freeze what the recipe's model.freeze and its like say. Raises BadInput, BadRecipe and WorkerFailed.
    """
    return completed(_build(options), options, output_loss, mindspore_models.fine_tune if tuned else None)


def _build(options: ParityJob) -> Given:
    if options.pair is None:
        model = options.recipe.model
        return Given(mindspore_models.of_recipe(model))
    where = f"--mindspore {options.pair.mindspore}"
    spec = parse(options.pair.mindspore)
    if spec.place == "msmigrate":
        return Given(mindspore_models.build(spec.name, *spec.args, **spec.kwargs))
    if spec.place == "mindcv":
        return given(run_users(where, lambda: _of_mindcv(spec.name, spec.args, spec.kwargs)), nn.Cell, where)
    made = run_users(where, lambda: called(spec))
    taken = given(made, nn.Cell, where, OPTIMIZERS)
    cells = (cell for _, cell in taken.model.cells_and_names())
    return replace(taken, copies=_copies(taken.model, taken.step), start=plain_values(cells, BARE))


def _copies(net: nn.Cell, step: Any) -> tuple[tuple[Parameter, Parameter], ...]:
    """The copies of the net's parameters that a step object holds, itself or in its Cells, each with the net's: those
    called PREFIX.NAME with one prefix, where all are equal to the net's. Where all are zero they accumulate gradients,
    and are no copies."""
    nets = {parameter.name: parameter for _, parameter in net.parameters_and_names()}
    by_prefix: dict[str, list[tuple[Parameter, Parameter]]] = {}
    held = {id(parameter) for parameter in nets.values()}
    every = held_by(step)
    cells = (parameter for one in every if isinstance(one, nn.Cell) for _, parameter in one.parameters_and_names())
    for own in {id(one): one for one in (*cells, *every) if isinstance(one, Parameter)}.values():
        heads = (own.name[:at] for at, letter in enumerate(own.name) if letter == ".")
        prefix = next((head for head in heads if own.name[len(head) + 1 :] in nets), None)
        if prefix is not None and id(own) not in held:
            by_prefix.setdefault(prefix, []).append((own, nets[own.name[len(prefix) + 1 :]]))
    found: list[tuple[Parameter, Parameter]] = []
    for pairs in by_prefix.values():
        values = [(own.asnumpy(), of.asnumpy()) for own, of in pairs]
        if all(map(np.array_equal, *zip(*values, strict=True))) and any(array.any() for array, _ in values):
            found += pairs
    return tuple(found)


def _of_mindcv(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    try:
        mindcv = importlib.import_module("mindcv.models")
    except ModuleNotFoundError:
        raise BadInput("mindcv is not installed here: pip install mindcv") from None
    if not mindcv.is_model(name):
        raise BadInput(f"mindcv has no model {name}")
    return mindcv.create_model(name, *args, **kwargs)


def tensors(images: Images) -> tuple[Tensor, ...]:
    """The net's arguments."""
    return tuple(Tensor(array) for array in (images if isinstance(images, tuple) else (images,)))


def describe(taken: Given, images: Images, batch: int) -> Structure:
    """Run the net once in training mode on two examples, and say what it consists of and in which order it runs.

    Its running statistics move; the starting weights take their place afterwards.
    """
    arrays = images if isinstance(images, tuple) else (images,)
    return on_few(lambda part: _described(taken, arrays, part, batch), arrays, batch)


def _described(taken: Given, arrays: tuple[np.ndarray, ...], part: tuple[np.ndarray, ...], batch: int) -> Structure:
    net, watch, inputs = taken.model, Watch(), tensors(part)
    with ExitStack() as hooks:
        for path, cell in net.cells_and_names():
            hooks.callback(cell.register_forward_pre_hook(_entering(watch, path)).remove)
            hooks.callback(cell.register_forward_hook(_leaving(watch, path)).remove)
        net.set_train(True)
        outputs = run_users("the MindSpore net", lambda: _run(net, inputs))
    shapes = tuple(of_batch(tuple(x.shape), len(arrays[0]), len(inputs[0]), batch) for x in outputs)
    tokens = len(arrays) > 1 or arrays[0].dtype.kind != "f"
    return Structure("mindspore", _modules(net), watch.in_order(), shapes, tuple(taken.parts), tokens)


def _run(net: nn.Cell, inputs: tuple[Tensor, ...]) -> list[Tensor]:
    outputs = flat(net(*inputs), Tensor)
    for output in outputs:
        output.asnumpy()  # errors are only raised when a value is read
    return outputs


def _modules(net: nn.Cell) -> tuple[Module, ...]:
    found = []
    seen: dict[int, str] = {}  # a weight that several cells share is the first one's, as in torch
    cells = dict(net.cells_and_names())
    for path, cell in cells.items():
        held = dict(cell.parameters_and_names(expand=False))
        shared = {name: seen[id(one)] for name, one in held.items() if id(one) in seen}
        new = {name: one for name, one in held.items() if name not in shared}
        seen |= {id(one): join(path, name) for name, one in new.items()}
        own = {n: _held(one, bool(one.requires_grad), made_at(cells, join(path, n))) for n, one in new.items()}
        plain = {n: one for n, one in vars(cell).items() if isinstance(one, Tensor) and not isinstance(one, Parameter)}
        attributes = {n: _held(one, False, made_at(cells, join(path, n))) for n, one in plain.items()}
        buffers = tuple(name for name, each in own.items() if not each.trains)
        kind, made = layer_class(type(cell).mro(), parts=bool(cell.name_cells())), made_at(cells, path)
        by_batch = getattr(cell, "use_batch_statistics", None) is True
        found.append(Module(path, kind, own, buffers, made, attributes, by_batch, shared))
    return tuple(found)


def _held(tensor: Tensor, trains: bool, made: str) -> Held:
    return Held(tuple(tensor.shape), trains, str(tensor.dtype).lower(), made)


def _entering(watch: Watch, path: str) -> Any:
    def hook(_: nn.Cell, inputs: tuple[Any, ...]) -> None:
        watch.enter(path, [x.asnumpy() for x in flat(inputs, Tensor)])

    return hook


def _leaving(watch: Watch, path: str) -> Any:
    def hook(_: nn.Cell, __: tuple[Any, ...], output: Any) -> None:
        watch.leave(path, output.asnumpy() if isinstance(output, Tensor) else None)

    return hook


def held(net: nn.Cell, alignment: Alignment) -> list[Canonical]:
    """The net's parameters and buffers that have a counterpart, under torch's names, in the torch model's order; then
    those that train and have none."""
    paths = dict(paths_and_parameters(net))
    wanted = {name: (t.mindspore, t.owner) for name, t in alignment.parameters.items()}
    wanted |= {each.name: (each.mindspore, each.owner) for each in alignment.unlike if each.lack in IN_MINDSPORE_ALONE}
    cut = [
        (path, name, shape, each)
        for each in alignment.cuts
        for path, name, shape in zip(each.mindspore, each.names, each.shapes, strict=True)
    ]
    gone = [path for path, *_ in (*wanted.values(), *cut) if path not in paths]
    if gone:
        raise BadInput(f"the MindSpore net has no {gone[0]} now: its function makes another net each time")
    found = []
    for name, (path, owner) in wanted.items():
        tensor = None if alignment.other_shape(name) else alignment.parameters.get(name)
        shape = tuple(paths[path].shape) if tensor is None else tensor.shape
        found.append(Canonical(name, owner, paths[path], shape))
    return found + [Canonical(name, each.owner, paths[path], shape, each.torch[0]) for path, name, shape, each in cut]


def leave_alone(net: nn.Cell, alignment: Alignment) -> None:
    """Freeze what is frozen for the step, which MindSpore's optimizers would decay without a gradient."""
    for each in held(net, alignment):
        if each.name in alignment.left_alone:
            each.parameter.requires_grad = False


@contextmanager
def graph_mode() -> Iterator[None]:
    """Within this block MindSpore compiles every Cell that is called, as for a user who has set that mode."""
    mindspore.set_context(mode=mindspore.GRAPH_MODE)
    try:
        yield
    finally:
        mindspore.set_context(mode=mindspore.PYNATIVE_MODE)


def paths_and_parameters(net: nn.Cell) -> list[tuple[str, Parameter]]:
    """Attribute path -> parameter; a parameter's own name drops `moving_` on a stand-alone norm."""
    return [
        (f"{path}.{name}" if path else name, parameter)
        for path, cell in net.cells_and_names()
        for name, parameter in cell.parameters_and_names(expand=False)
    ]


def begin(options: ParityJob) -> Given:
    """Make the net, and leave its structure in the folder once the torch side has left its inputs there."""
    mindspore.set_seed(options.recipe.seed)
    taken = build(options)
    wait_for(options.folder / INPUTS)
    inputs = read_inputs(options.folder, recipe_of(options, classes_of(options)))
    structure = describe(taken, inputs.images[0], len(inputs.labels[0]))
    structure.write(options.folder)
    ready(file(options.folder, "mindspore"))
    whole = next(call for call in structure.calls if not call.path)
    return replace(taken, plain=whole.output is not None)


def classes_of(options: ParityJob) -> int:
    """How many classes the torch model of a pair tells apart; 0 without a pair: a recipe's model says it itself."""
    if options.pair is None:
        return 0
    output = read(wait_for(file(options.folder, "torch"))).outputs
    return output[0][1] if output and len(output[0]) > 1 else 1


def load_start(net: nn.Cell, options: ParityJob, alignment: Alignment) -> None:
    """Put the starting weights in place, each where the alignment says; the init stage compares what the net holds.

    Raises BadTrace where the file is damaged or a shape cannot hold the values.
    """
    path = wait_for(options.folder / START)
    try:
        arrays = load_file(path)
    except (OSError, SafetensorError, ValueError) as error:
        raise BadTrace(f"{path}: {' '.join(str(error).split())[:300]}") from None
    arrays, cut = alignment.as_mindspore(arrays), {name for each in alignment.cuts for name in each.names}
    for one in held(net, alignment):
        array = arrays.get(one.name)
        alone = array is None and one.name not in (*alignment.parameters, *cut)
        if alone or alignment.other_shape(one.name):
            continue  # it keeps its own values, and is a finding
        if array is None or array.size != one.parameter.size:
            got = "is not there" if array is None else f"has shape {list(array.shape)}"
            raise BadTrace(f"{path}: {one.name} {got}; expected one of {list(one.parameter.shape)}")
        values = np.array(array, order="C").reshape(one.parameter.shape)
        one.parameter.set_data(Tensor(values).astype(one.parameter.dtype))


def initial_values(options: ParityJob, alignment: Alignment, seed: int) -> dict[str, np.ndarray]:
    """Trainable parameters of a net newly drawn from `seed`, by torch's names, and what trains in torch alone."""
    mindspore.set_seed(seed)
    with unseeded(mindspore, "set_seed", "manual_seed"):
        net = build(options, tuned=False).model
    frozen = {each.name for each in alignment.unlike if each.lack is Lack.FROZEN} | {*alignment.left_alone}
    trained = [c for c in held(net, alignment) if c.parameter.requires_grad or (c.patterns or c.name) in frozen]
    names = options.drawn(c.patterns or c.name for c in trained)
    drawn = (c for c in trained if (c.patterns or c.name) in names)
    return alignment.as_torch({c.name: c.parameter.asnumpy() for c in drawn})


TORCH_TRAINS = (*IN_TORCH_ALONE, Lack.FROZEN)


def _compiled(loss: Callable[..., Any]) -> Callable[..., Any]:
    """The user's loss as a graph is compiled from it."""

    def number(outputs: Any, labels: Any) -> Any:
        return as_number(loss(outputs, labels))

    return number


class PairStep(TrainStep):
    """The recipe's step, with the user's loss, optimizer or whole step in place of its own."""

    def __init__(
        self,
        recipe: Recipe,
        net: nn.Cell,
        taken: Given,
        held: list[Canonical],
        alignment: Alignment = IDENTITY,
        **options: Any,
    ) -> None:
        self.taken = taken
        self.found: StepOutput | None = None
        self.watches = True  # whether the net may have hooks; a step that compiles the net fails with them
        self.again = self.runs_twice = False  # whether the net runs again on the same images; whether it ever has
        self._in_graph_mode = options.get("mode") == "graph"
        self._torch_alone = {each.name: each.owner for each in alignment.unlike if each.lack in TORCH_TRAINS}
        self._torch_alone |= {name: alignment.parameters[name].owner for name in alignment.left_alone}
        self._torch_alone |= {name: cut.owner for cut in alignment.cuts for name in cut.torch[1:]}
        self._paths = paths_and_parameters(net)
        # in the order of net.trainable_params(), which people give an optimizer and their own step relies on
        place = {id(parameter): i for i, (_, parameter) in reversed([*enumerate(self._paths)])}
        held = sorted(held, key=lambda each: place[id(each.parameter)])
        self._all_names = {path: each.name for path, p in self._paths for each in held if each.parameter is p}
        super().__init__(without_optimizer(recipe) if taken.optimizer else recipe, net, held=held, **options)
        self._own_loss = self._own_loss or taken.loss is not None
        if taken.loss is not None:
            # a graph is compiled from the function itself, and its errors name their place already
            self.loss_function = _compiled(taken.loss) if self._in_graph_mode else self._own_loss_function

    def _own_loss_function(self, *given: Any) -> Tensor:
        """The user's loss, whose errors say where in their file they are."""
        loss = self.taken.loss
        assert loss is not None
        found: Tensor = run_users("the MindSpore loss", lambda: as_number(loss(*given)))
        return found

    def _make_optimizer(self, trainable: list[Canonical], others: Mapping[str, str] = MappingProxyType({})) -> Any:
        """The user's optimizer, else the recipe's."""
        made = self.taken.optimizer
        if made is None:
            return super()._make_optimizer(trainable, self._torch_alone)
        given = [each.parameter for each in trainable]
        optimizer = made if isinstance(made, OPTIMIZERS) else run_users("the MindSpore optimizer", lambda: made(given))
        if not callable(optimizer):
            raise BadInput(f"the MindSpore optimizer is {type(optimizer).__name__}: expected one of mindspore's")
        known = {id(parameter) for _, parameter in self._paths}
        for parameter in getattr(optimizer, "parameters", ()):
            if id(parameter) not in known:
                raise BadInput(
                    f"the MindSpore optimizer holds {parameter.name}, which is no parameter of the compared net: make "
                    "its groups of the parameters that its function is given"
                )
        return optimizer

    def __call__(self, images: Any, labels: Tensor) -> StepResult:
        """Run one step; images: what the net takes, a tuple where that is several tensors."""
        if self.taken.step is None:
            if not self.taken.plain and not self._own_loss:
                raise BadInput(NO_TENSOR.format(side="MindSpore", what="no single tensor"))
            return run_users("the MindSpore training step", lambda: super(PairStep, self).__call__(images, labels))
        step, net = self.taken.step, self.net
        given = (net, self.optimizer)[: arguments(step) - 2]
        seen: list[Tensor] = []
        with (
            self._runs_of_the_net(seen) if self.watches else nullcontext(),
            graph_mode() if self._in_graph_mode else nullcontext(),
        ):
            returned = run_users("the MindSpore step", lambda: step(*given, images, labels))
        if isinstance(step, nn.Cell) and isinstance(returned, tuple):  # as the cells with a loss scale return
            keys = ("loss", "overflow", "scale")
            parts = dict(zip(keys, returned, strict=False))
            overflow = parts.pop("overflow", None)
            finite = None if overflow is None else not one_number(overflow, "MindSpore", "overflow")
            returned = {**parts, "finite": finite}
        self.found = checked(returned, Tensor, "MindSpore")
        logits = self.found.logits
        if logits is None and seen:
            logits = joined(seen)
        grads = self._named(self.found.grads or {}, "grads", self._all_names)
        finite = None if self.found.finite is None else bool(one_number(self.found.finite, "MindSpore", "finite"))
        self.steps += 1
        self._advance()
        loss = self.found.loss.reshape(())
        return StepResult(loss, logits, grads, None, None if finite is None else Tensor(finite))

    @contextmanager
    def _runs_of_the_net(self, seen: list[Tensor]) -> Iterator[None]:
        """Within this block, collect the logits of the net's runs, each run on other images counting once.

        Wrappers in MindSpore's style call the network for the loss and differentiate it in another call; compiled, that
        is one run, and in PyNative mode two, which moves running statistics twice. So in a step that is a Cell, made to
        be compiled, a run on the very inputs of the one before begins with the statistics that that one began with.
        """
        merges = isinstance(self.taken.step, nn.Cell)
        buffers = [parameter for _, parameter in self._paths if not parameter.requires_grad]
        before: list[Tensor] = []
        held: list[Any] = []

        def entering(_: nn.Cell, inputs: tuple[Any, ...]) -> None:
            arrays = [x.asnumpy() for x in flat(inputs, Tensor)]
            self.again = merges and bool(held) and len(arrays) == len(held) and all(map(np.array_equal, arrays, held))
            self.runs_twice = self.runs_twice or self.again
            if self.again:
                for buffer, value in zip(buffers, before, strict=True):
                    buffer.copy_(value)
            else:
                held[:], before[:] = arrays, [buffer.value().copy() for buffer in buffers]

        def leaving(_: nn.Cell, __: tuple[Any, ...], output: Any) -> None:
            if not self.again:
                seen.append(first(output, Tensor))
            self.again = False

        handles = self.net.register_forward_pre_hook(entering), self.net.register_forward_hook(leaving)
        try:
            yield
        finally:
            self.again = False
            for handle in handles:
                handle.remove()

    def own_average(self) -> dict[str, Tensor]:
        """Torch's name -> the moving average of that weight or buffer, which the user's step returned or, as a Cell,
        holds; empty without any."""
        if self.found is not None and self.found.ema is not None:
            return self._named(self.found.ema, "ema", self._all_names)
        names = {id(parameter): self._all_names.get(path) for path, parameter in self._paths}
        copies = ((names.get(id(of)), own) for own, of in self.taken.copies)
        return {name: own for name, own in copies if name is not None}

    def _named(self, values: Mapping[str, Tensor], key: str, names: Mapping[str, str]) -> dict[str, Tensor]:
        """What a step returned under its own names, under torch's. Raises BadInput for a name that no parameter has."""
        unknown = next((str(name) for name in values if name not in names), None)
        if unknown is not None:
            raise BadInput(
                f"the MindSpore step returns {key!r} with {unknown!r}, the name of no compared parameter: return "
                "{parameter path: value}, with the paths of net.parameters_and_names()"
            )
        return {names[path]: value for path, value in values.items()}
