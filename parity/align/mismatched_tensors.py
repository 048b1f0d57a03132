"""The tensors that differ between the two nets, in words: a mismatch that needs no step to be seen.

A tensor that one side lacks, freezes, or holds in another shape is recorded by the side that has it, and so it is a
finding wherever it should have been compared. Here it gets its reason, its place in the user's file, and what to write;
and it is the cause of what fails with it. So are weights that MindSpore's side had in other memory after its steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ...errors import BadInput, UnknownRow, Unsupported
from ...mappings import table
from ...training.step.parameter_groups import is_norm
from ..replay.module_calls import state_name
from ..result import Cause, Finding, ModuleVerdict
from ..tensor_verdict import Verdict
from ..trace import ALONE
from .alignment import Alignment, Lack, Unlike
from .layers import row_of, torch_class
from .match_tensors import Crossed, statistic
from .model_structure import Structure, join, parent, squeezed

OPTIONS = ("bias", "affine", "elementwise_affine")  # torch's arguments that decide which tensors a layer has
SHOWN = 4  # names, in one sentence
STAGES = {Lack.FROZEN: "gradients", Lack.TRAINS: "gradients"}
FAULTS = {
    Lack.MISSING: "parameter-missing",
    Lack.CONSTANT: "tensor-not-parameter",
    Lack.SHARED: "shared-weights",
    Lack.EXTRA: "parameter-extra",
    Lack.UNSHARED: "shared-weights",
    Lack.FROZEN: "parameter-frozen",
    Lack.TRAINS: "requires-grad-frontend",
    Lack.SHAPE: "parameter-shape",
}


def unlike(crossed: Crossed, freezes: bool = False) -> Iterator[Unlike]:
    """Every tensor that differs between the two nets, torch's first, each in its model's order."""
    writer = _Writer(crossed)
    missing, idle = set(crossed.missing()), left_alone(crossed, freezes)
    for name, held in crossed.torch_tensors.items():
        if name in missing:
            yield writer.missing(name)
            continue
        tensor = crossed.parameters.get(name)
        if tensor is None:
            continue
        trains = crossed.mindspore_tensors[tensor.mindspore].trains
        if name in crossed.unfit:
            yield writer.shape(name)
        elif held.trains != trains and name not in idle:
            yield writer.frozen(name) if held.trains else writer.trains(name)
    for name in crossed.extra():
        yield writer.extra(name)


def left_alone(crossed: Crossed, freezes: bool = False) -> tuple[str, ...]:
    """The parameters that torch's model does not compute with, so that its optimizer leaves them alone, and that
    MindSpore's net freezes, which would otherwise decay them: both do the same. freezes: it is frozen for the step."""
    return tuple(
        name
        for name, tensor in crossed.parameters.items()
        if name not in crossed.unfit
        and (held := crossed.torch_tensors[name]).trains
        and not held.reached
        and (freezes or not crossed.mindspore_tensors[tensor.mindspore].trains)
    )


class _Writer:
    def __init__(self, crossed: Crossed) -> None:
        self.crossed = crossed
        self.torch, self.mindspore = crossed.torch, crossed.mindspore
        self.partner = {path: its for path, (its, _, _) in crossed.pairs.items()}
        for path, its in list(self.partner.items()):  # a list is not called: it goes by what is in it
            if path.rpartition(".")[2].isdigit() and its.rpartition(".")[2].isdigit():
                self.partner.setdefault(parent(path), parent(its))
        self.back = {its: path for path, its in self.partner.items()}
        self.names = set(crossed.torch_tensors)  # which a tensor of MindSpore's alone must not be recorded as

    def missing(self, name: str) -> Unlike:
        """A tensor that torch alone has."""
        shape, kind = self.crossed.torch_tensors[name].shape, self._kind(name)
        owner, own = self._owner(name, self.partner)
        its = self.partner[owner]
        module = self._alone(name, self.torch, self.partner, set(self.crossed.parameters))
        if module:
            what = self.torch.by_path[module].kind
            text = f"MindSpore's net has no counterpart of torch's {module} ({what})"
            fix = f"{place(its)}: add a counterpart of torch's {module} ({what})"
            return Unlike(Lack.MISSING, name, "", kind, module, owner, self._at(text, its), fix)
        plain = self._attribute(own, its, shape)
        if plain:
            path = join(its, plain)
            text = (
                f"MindSpore's {path} is a Tensor and no Parameter: it is neither trained nor loaded; torch's {name} "
                f"trains, of shape {list(shape)}"
            )
            fix = f"{place(path)}: mindspore.Parameter(…)"
            return Unlike(Lack.CONSTANT, name, path, kind, "", owner, self._at(text, its, plain), fix)
        shared = self.mindspore.by_path[its].shared.get(self._mindspore_name(kind, own))
        if shared is not None:
            text = f"MindSpore's {join(its, own)} is {shared}; torch's {name} is a parameter of its own"
            fix = f"{place(join(its, own))}: a Parameter of its own"
            return Unlike(Lack.SHARED, name, "", kind, "", owner, self._at(text, its), fix)
        text = f"MindSpore's {its or 'net'} has no {own}; torch's{_other(owner, its)} has one of shape {list(shape)}"
        fix = _written(its, kind, own, True) or f"{place(its)}: a Parameter for {own}, of shape {list(shape)}"
        if statistic(name):
            fix = f"{place(its)}: {_short(kind)}, which keeps such statistics"
        return Unlike(Lack.MISSING, name, "", kind, "", owner, self._at(text, its), fix)

    def extra(self, path: str) -> Unlike:
        """A tensor that MindSpore alone has."""
        shape = list(self.crossed.mindspore_tensors[path].shape)
        its, own = self._owner(path, self.back)
        owner = self.back[its]
        kind = torch_class(self.mindspore.by_path[parent(path)].kind)
        name, lack = join(owner, self._torch_name(kind, own)), Lack.EXTRA
        shared = self.torch.by_path[owner].shared.get(self._torch_name(kind, own))
        module = self._alone(path, self.mindspore, self.back, {t.mindspore for t in self.crossed.parameters.values()})
        if module:
            what = self.mindspore.by_path[module].kind
            text = f"MindSpore's {module} ({what}) has no counterpart in torch's model"
            name, fix = path, f"leave out {place(module)}, or give torch's model one"
        elif shared is not None:
            text = f"MindSpore's {path} is a parameter of its own; torch's {name} is {shared}"
            fix = f"{place(path)}: the Parameter that stands for torch's {shared}"
            lack = Lack.UNSHARED
        else:
            has = f"torch's{_other(owner, its)} has none"
            text = f"MindSpore's {its or 'net'} has a {own} of shape {shape}; {has}"
            if statistic(path):
                text = f"MindSpore's {its} uses its {own} in evaluation; {has}, and uses the batch's statistics"
            fix = _written(its, kind, own, False) or f"leave out {place(path)}, or give torch's model one"
        while name in self.names:
            name += " (MindSpore's)"
        self.names.add(name)
        if statistic(path) and not module:
            fix = f"{place(its)}: {_short(kind)}(…, use_batch_statistics=True)"
        return Unlike(lack, name, path, kind, module, owner, self._at(text, its, own), fix)

    def frozen(self, name: str) -> Unlike:
        """A tensor that trains in torch alone."""
        path = self.crossed.parameters[name].mindspore
        text = f"MindSpore's {path} does not train (requires_grad=False); torch's{_other(name, path)} does"
        kind = self._kind(name)
        fix = f"{place(path)}.requires_grad = True"
        if is_norm(kind):
            fix = _written(parent(path), kind, name.rpartition(".")[2], True) or fix
        return Unlike(Lack.FROZEN, name, path, kind, "", parent(name), self._made(text, path), fix)

    def trains(self, name: str) -> Unlike:
        """A tensor that trains in MindSpore alone."""
        path = self.crossed.parameters[name].mindspore
        how = "a buffer" if name.rpartition(".")[2] in self.torch.by_path[parent(name)].buffers else "frozen"
        text = f"MindSpore's {path} trains; torch's{_other(name, path)} does not: it is {how}"
        fix = f"{place(path)}.requires_grad = False, before the optimizer is made"
        return Unlike(Lack.TRAINS, name, path, self._kind(name), "", parent(name), self._made(text, path), fix)

    def shape(self, name: str) -> Unlike:
        """A tensor of another shape."""
        path = self.crossed.parameters[name].mindspore
        torch, mindspore = (
            list(self.crossed.torch_tensors[name].shape),
            list(self.crossed.mindspore_tensors[path].shape),
        )
        text = f"MindSpore's {path} has shape {mindspore}; torch's{_other(name, path)} has {torch}"
        fix = f"{place(path)}: of shape {torch}"
        return Unlike(Lack.SHAPE, name, path, self._kind(name), "", parent(name), self._made(text, path), fix)

    @staticmethod
    def _torch_name(kind: str, own: str) -> str:
        """Torch's name of what a MindSpore layer holds; its own where no row says it."""
        row = row_of(kind)
        return next((s.torch for s in (row.state if row else ()) if s.torch and s.mindspore == own), own)

    @staticmethod
    def _mindspore_name(kind: str, own: str) -> str:
        """MindSpore's name of what a torch layer holds."""
        row = row_of(kind)
        return next((s.mindspore for s in (row.state if row else ()) if s.mindspore and s.torch == own), own)

    def _kind(self, name: str) -> str:
        return torch_class(self.torch.by_path[parent(name)].kind)

    @staticmethod
    def _owner(name: str, paired: dict[str, str]) -> tuple[str, str]:
        """The innermost module around a tensor that has a counterpart, and the tensor's name in it."""
        path = parent(name)
        while path and path not in paired:
            path = parent(path)
        return path, name[len(path) + 1 :] if path else name

    @staticmethod
    def _alone(name: str, structure: Structure, paired: dict[str, str], known: set[str]) -> str:
        """The outermost module around a tensor that has no counterpart, nor any tensor with one; empty for a tensor of
        a module that has one."""
        found, path = "", parent(name)
        while path and path not in paired:
            inside = [n for n in structure.tensors() if n.startswith(f"{path}.")]
            if any(n in known for n in inside):
                break
            found, path = path, parent(path)
        return found

    def _attribute(self, own: str, its: str, shape: tuple[int, ...]) -> str:
        """The plain tensor of a Cell that stands where torch has a parameter: of its name, else the only one of its
        shape."""
        held = {n: h.shape for n, h in self.mindspore.by_path[its].attributes.items()}
        alike = [n for n, its_shape in held.items() if squeezed(its_shape) == squeezed(shape)]
        return own if own in alike else alike[0] if len(alike) == 1 else ""

    def _at(self, text: str, its: str, own: str = "") -> str:
        """The text with the place of a Cell, or of what it has of its own, in the user's file."""
        cell = self.mindspore.by_path[its]
        held = cell.attributes.get(own) or cell.tensors.get(own)
        made = (held.made if held is not None else "") or cell.made
        return f"{text} ({made})" if made else text

    def _made(self, text: str, path: str) -> str:
        return self._at(text, parent(path), path.rpartition(".")[2])


def compared(findings: Iterable[Finding], alignment: Alignment) -> list[Finding]:
    """The findings, without the gradients of a module that ran alone by what both sides leave alone: torch's are zeros,
    and there are none by what MindSpore's net freezes."""
    unused = {f"{name}.grad" for name in alignment.left_alone}
    return [
        finding
        for finding in findings
        if not (finding.part == ALONE and finding.error is None and state_name(finding.name) in unused)
    ]


def explained(findings: Iterable[Finding], alignment: Alignment) -> list[Finding]:
    """The findings; those that fail because a tensor differs between the nets say so, and what to write."""
    found = []
    for finding in findings:
        name = state_name(finding.name).removesuffix(".grad") if finding.part == ALONE else finding.name
        each = alignment.lacks.get(name) if finding.verdict is Verdict.FAIL and finding.error is None else None
        if each is None:
            found.append(finding)
            continue
        if each.lack in (Lack.FROZEN, Lack.TRAINS) and finding.stage == "update" and finding.part.of_buffers:
            continue  # a buffer to one side and a weight to the other: it stands among the weights
        found.append(replace(finding, why=f"{each.text}; to mend it: {each.fix}", unlike=each.lack))
    return found


def place(path: str) -> str:
    """A path in the net as people write it: layer1.0.bn2 is net.layer1[0].bn2."""
    return "net" + "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in path.split(".") if part)


def _other(torch: str, mindspore: str) -> str:
    """Torch's name, where it is not the same."""
    return f" {torch or 'model'}" if torch != mindspore or not torch else ""


def _written(path: str, kind: str, own: str, there: bool) -> str:
    """The call of MindSpore's layer with the option by which it has, or has not, such a tensor; empty for none."""
    for option in OPTIONS if "bias" in own or own == "beta" else OPTIONS[1:]:
        try:
            call = table.translate(f"torch.nn.{kind}", {option: there}, partial=True)
        except (UnknownRow, BadInput, Unsupported):
            continue
        if call.kwargs:
            written = ", ".join(f"{name}={value!r}" for name, value in call.kwargs.items())
            return f"{place(path)}: {call.target.replace('mindspore.', '', 1)}(…, {written})"
    return ""


def _short(kind: str) -> str:
    """MindSpore's layer of a torch class, as people write it."""
    row = row_of(kind)
    return row.mindspore.replace("mindspore.", "", 1) if row is not None and row.mindspore else f"torch's {kind}"


def causes(alignment: Alignment) -> list[Cause]:
    """One cause for each sort of difference between the nets: the tensors of one module together, and what several
    modules of a class share once."""
    modules: dict[tuple[Lack, str], list[Unlike]] = {}
    for each in alignment.unlike:
        modules.setdefault((each.lack, each.module or parent(each.name)), []).append(each)
    sorts: dict[tuple[object, ...], list[list[Unlike]]] = {}
    for (lack, path), tensors in modules.items():
        own = tuple(each.name[len(path) :] for each in tensors)
        sorts.setdefault((lack, bool(tensors[0].module), tensors[0].owner, own), []).append(tensors)
    return [_cause(alike) for alike in sorts.values()]


def out_of_reach(findings: Iterable[Finding], replaced: object) -> list[Cause]:
    """The weights whose updates fail and that got other memory while MindSpore's side took its steps.

    replaced: their names, as MindSpore's trace has them.
    """
    failed = {finding.name for finding in findings if finding.stage == "update" and finding.verdict is Verdict.FAIL}
    names = [name for name in replaced if name in failed] if isinstance(replaced, list) else []
    if not names:
        return []
    text = (
        f"what was written into {_few(names)} while the net or the step ran is in other memory than before, and an "
        "optimizer that has run updates that of before"
    )
    fix = "ops.assign(weight, values) in a construct, weight.copy_(values) between steps; no set_data, no weight[…] = x"
    evidence = "where MindSpore has the weight, before and after the steps"
    return [Cause("update", names[0], "set-data-not-trained", text, fix, evidence)]


def without_consequences(
    causes: Iterable[Cause], modules: Iterable[ModuleVerdict], left: Sequence[Unlike]
) -> list[Cause]:
    """The causes; where the nets differ, unexplained ones are left out as consequences of that, unless a module that
    has no part in the difference failed alone.

    left: the differences that torch's model could not take over from MindSpore's net; they explain why the modules
    around them fail.
    """
    alone = {module.name for module in modules if module.own and not explains(left, module.name)}
    return [cause for cause in causes if cause.fault or cause.ratio is not None or cause.place in alone]


def explains(unlike: Iterable[Unlike], path: str) -> bool:
    """Whether a tensor inside the module of this torch path differs."""
    return any(not path or each.within == path or each.within.startswith(f"{path}.") for each in unlike)


def _cause(alike: Sequence[Sequence[Unlike]]) -> Cause:
    tensors, first = alike[0], alike[0][0]
    where = [each[0].module or (parent(each[0].name) if len(each) > 1 else each[0].name) for each in alike]
    place, text = where[0] or "the model itself", first.text
    if first.module:
        text += f", with {_few([each.name for each in tensors])}"
    elif len(tensors) > 1:
        text += f"; the same holds for {_few([each.name for each in tensors[1:]])}"
    if len(where) > 1:
        place += f" and {len(where) - 1} more"
        text += f"; and in {_few(where[1:])}"
    count = sum(map(len, alike))
    evidence = f"read from the two nets, before a step: {count} tensor{'s' if count > 1 else ''}"
    return Cause(STAGES.get(first.lack, "init"), place, _fault(first), text, first.fix, evidence)


def _fault(each: Unlike) -> str:
    own = each.name.rpartition(".")[2]
    if each.lack is Lack.MISSING and own == "bias" and ("Conv" in each.owner or each.owner == "Linear"):
        return "conv-bias-default"
    if each.lack is Lack.EXTRA and "InstanceNorm" in each.owner:
        return "in-affine-default"
    return FAULTS[each.lack]


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{', '.join(names[:SHOWN])}{more}"
