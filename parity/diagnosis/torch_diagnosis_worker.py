"""Look for the causes of what failed, by trying hypotheses on the torch model; leaves FOLDER/causes.json.

python -m msmigrate.parity.diagnosis.torch_diagnosis_worker JOB.json
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Sequence

import torch
from torch import nn

from ...errors import BadTrace
from ...training.step.parameter_groups import is_norm
from ...workers.worker import progress, run
from .. import compared_draws
from ..align import torch_user_model
from ..align.alignment import Alignment, Lack, Unlike, read_alignment
from ..align.mismatched_tensors import without_consequences
from ..align.user_model import Paired
from ..compare_traces import SIDES
from ..job import ParityJob
from ..result import Cause, ModuleVerdict
from ..run import CAUSES, read_failed, write_causes
from ..run_folder import MINDSPORE, START, WEIGHTS
from ..trace import Trace
from .causes import (
    initial_weights,
    torch_data,
    torch_gradients,
    torch_loss,
    torch_modules,
    torch_optimizer,
    torch_precision,
)
from .causes.torch_precision import WHOLE
from .context import Context, cell_of, in_code
from .hypotheses import ranked, tested

STATISTICS = ("running_mean", "running_var")
Explainer = Callable[[Context], list[Cause]]
# by the first stage whose failures they explain; a module's gradients and buffers are explained with its outputs
EXPLAINERS: dict[str, tuple[Explainer, ...]] = {
    "data": (torch_data.explain,),
    "init": (initial_weights.explain,),
    "forward": (torch_precision.explain, torch_loss.returned, torch_modules.explain),
    "loss": (torch_loss.explain,),
    "gradients": (torch_gradients.explain,),
    "update": (torch_optimizer.explain,),
}


def main(options: ParityJob) -> None:
    """Run every explainer, and write the causes that they return."""
    progress("looking for causes")
    failed = read_failed(options.folder)
    findings, modules = failed.findings, failed.modules
    model, paired = load_model(options)
    left: list[Unlike] = []
    if paired is not None and paired.alignment.unlike:  # the report has explained these differences
        findings = [finding for finding in findings if finding.unlike is None]
        left = adapt(model, paired.alignment, Trace(options.folder / MINDSPORE))
    context = Context(options, findings, modules, model, paired)
    if failed.sides != SIDES:  # neither is a port of the other: only the places that differ are named
        write_causes(options.folder / CAUSES, torch_modules.of_another(context, failed.sides[1]))
        return
    causes = compared_draws.causes(findings, {module.name: in_code(cell_of(module)) for module in modules})
    for stage, explainers in EXPLAINERS.items():
        if stage != "update" or options.continue_from is None:  # a continued run's optimizers start anew
            causes += [cause for explainer in explainers for cause in explain(explainer, context)]
    if paired is not None and paired.alignment.unlike:
        causes = without_consequences(causes, modules, left)
    write_causes(options.folder / CAUSES, ranked(distinct(without_victims(causes, modules)), findings))


def explain(explainer: Explainer, context: Context) -> list[Cause]:
    """The causes from one explainer. One that fails must not silence the others: it is logged and passed over."""
    try:
        return explainer(context)
    except Exception:
        traceback.print_exc()
        return []


def without_victims(causes: Sequence[Cause], modules: Iterable[ModuleVerdict]) -> list[Cause]:
    """The causes; where a tested one affects the whole net, unexplained ones are left out as consequences of it, unless
    the module failed alone."""
    if not any(cause.place == WHOLE and cause.fault for cause in causes):
        return list(causes)
    alone = {module.name for module in modules if module.own}
    return [cause for cause in causes if cause.fault or tested(cause) or cause.place in alone]


def distinct(causes: Iterable[Cause]) -> list[Cause]:
    """Each cause once; for one place in one stage those that were tested or, if none was, the first."""
    found = list(dict.fromkeys(causes))
    # a Dropout with another rate draws other numbers, so the rate explains them
    explained = {cause.place for cause in found if cause.ratio is not None and cause.stage == "forward"}
    found = [cause for cause in found if cause.fault != compared_draws.FAULT or cause.place not in explained]
    known = {(cause.stage, cause.place) for cause in found if tested(cause)}
    kept, placed = [], set(known)
    for cause in found:
        at = (cause.stage, cause.place)
        if tested(cause) or at not in placed:
            kept.append(cause)
        placed.add(at)
    return kept


def load_model(options: ParityJob) -> tuple[nn.Module, Paired | None]:
    """The torch model at the run's starting weights, float32; for a pair, with the other parts that the user brought.

    Raises BadTrace where the run left no starting weights.
    """
    given = torch_user_model.build(options)
    model: nn.Module = given.model
    if options.pair is not None or (options.folder / START).exists():  # START: another recording of a zoo's model
        torch_user_model.load_start(model, options.folder)
        return model, None if options.pair is None else Paired(given, read_alignment(options))
    try:
        model.load_state_dict(torch.load(options.folder / WEIGHTS, map_location="cpu", weights_only=True))
    except (OSError, RuntimeError) as error:
        raise BadTrace(
            f"{options.folder}: its starting weights do not load: {' '.join(str(error).split())[:300]}"
        ) from error
    return model, None


def adapt(model: nn.Module, alignment: Alignment, mindspore: Trace) -> list[Unlike]:
    """Make the model, in place, like MindSpore's net: without a shift where the net has none, frozen where the net is,
    and with the net's own parameters and their values. Returns the differences that remain."""
    return [each for each in alignment.unlike if not _adapted(model, each, mindspore)]


def _adapted(model: nn.Module, each: Unlike, mindspore: Trace) -> bool:
    path, _, own = each.name.rpartition(".")
    try:
        module = model.get_submodule(path)
    except AttributeError:
        return False
    tensor = getattr(module, own, None)
    if each.module or (tensor is not None and not isinstance(tensor, torch.Tensor)):
        return False
    if each.lack is Lack.EXTRA:
        known = own in module._parameters or own in module._buffers
        return tensor is None and known and _with_its_own(module, own, each.name, mindspore)
    if each.lack is Lack.MISSING and own in STATISTICS and own in module._buffers:
        setattr(module, own, None)
        module.track_running_stats = False
        return True
    if not isinstance(tensor, nn.Parameter):
        return False
    if each.lack is Lack.UNSHARED:
        module.register_parameter(own, nn.Parameter(tensor.detach().clone()))
        return True
    scale = own == "weight" and is_norm(type(module).__name__)
    if each.lack is Lack.MISSING and (scale or "bias" in own):
        tensor.data.fill_(1.0 if scale else 0.0)
        tensor.requires_grad_(False)
        return True
    if each.lack in (Lack.FROZEN, Lack.TRAINS):
        tensor.requires_grad_(each.lack is Lack.TRAINS)
        return True
    return False


def _with_its_own(module: nn.Module, own: str, name: str, mindspore: Trace) -> bool:
    entry = mindspore.entries.get(("init", "values", name, 0))
    if entry is None or entry.sampled:
        return False
    values = torch.from_numpy(mindspore.array(entry.key).reshape(entry.shape).copy())
    if own in module._buffers:
        setattr(module, own, values)
        module.track_running_stats = True
        return True
    # its gradient was not recorded, because torch's module has no such parameter
    module.register_parameter(own, nn.Parameter(values, requires_grad=False))
    return True


if __name__ == "__main__":
    run(main, ParityJob.read)
