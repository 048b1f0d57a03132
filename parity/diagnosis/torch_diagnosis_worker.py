"""Look for the causes of what failed, by trying hypotheses on the torch model; leaves FOLDER/causes.json.

python -m msmigrate.parity.diagnosis.torch_diagnosis_worker JOB.json
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Sequence

import torch
from safetensors import SafetensorError
from safetensors.numpy import load_file
from torch import nn

from ...errors import BadTrace
from ...workers.worker import progress, run
from .. import compared_draws
from ..align import torch_user_model
from ..align.alignment import Unlike, read_alignment
from ..align.user_model import Paired
from ..job import ParityJob
from ..options import STAGES
from ..result import Cause, ModuleVerdict
from ..run import CAUSES, read_failed, write_causes
from ..run_folder import MINDSPORE, START, WEIGHTS
from ..trace import Trace
from .causes import init, torch_data, torch_gradients, torch_loss, torch_modules, torch_optimizer, torch_precision
from .causes.torch_precision import WHOLE
from .causes.unlike_parameters import without_consequences
from .context import Context
from .torch_adapted_model import adapt

EXPLAINERS: tuple[Callable[[Context], list[Cause]], ...] = (
    torch_data.explain,
    init.explain,
    torch_precision.explain,
    torch_modules.explain,
    torch_loss.explain,
    torch_gradients.explain,
    torch_optimizer.explain,
)


def main(options: ParityJob) -> None:
    """Ask every explainer, and write what they say."""
    progress("looking for causes")
    findings, modules = read_failed(options.folder)
    model, paired = load_model(options)
    left: list[Unlike] = []
    if paired is not None and paired.alignment.unlike:  # which the report has explained
        findings = [finding for finding in findings if finding.unlike is None]
        left = adapt(model, paired.alignment, Trace(options.folder / MINDSPORE))
    context = Context(options, findings, modules, model, paired)
    causes = compared_draws.causes(findings)
    explainers = EXPLAINERS if options.continue_from is None else EXPLAINERS[:-1]  # whose optimizers start anew
    for explainer in explainers:
        causes += explain(explainer, context)
    if paired is not None and paired.alignment.unlike:
        causes = without_consequences(causes, modules, left)
    write_causes(options.folder / CAUSES, distinct(without_victims(causes, modules)))


def explain(explainer: Callable[[Context], list[Cause]], context: Context) -> list[Cause]:
    """What one explainer says. One that fails must not silence the others: it is written to the log and passed over."""
    try:
        return explainer(context)
    except Exception:
        traceback.print_exc()
        return []


def without_victims(causes: Sequence[Cause], modules: Iterable[ModuleVerdict]) -> list[Cause]:
    """The causes without those that nothing explains, where a tested one has put the whole net wrong: they follow from
    it, unless the module failed alone."""
    if not any(cause.place == WHOLE and cause.fault for cause in causes):
        return list(causes)
    alone = {module.name for module in modules if module.own}
    return [cause for cause in causes if cause.fault or _tested(cause) or cause.place in alone]


def distinct(causes: Iterable[Cause]) -> list[Cause]:
    """Each cause once, by stage; of one place in one stage those that were tested, and where none was, the first."""
    found = list(dict.fromkeys(causes))
    tested = {(cause.stage, cause.place) for cause in found if _tested(cause)}
    kept, placed = [], set(tested)
    for cause in found:
        at = (cause.stage, cause.place)
        if _tested(cause) or at not in placed:
            kept.append(cause)
        placed.add(at)
    return sorted(kept, key=lambda cause: STAGES.index(cause.stage))


def _tested(cause: Cause) -> bool:
    return cause.ratio is not None or cause.fault is not None


def load_model(options: ParityJob) -> tuple[nn.Module, Paired | None]:
    """The torch model at the run's starting weights, float32; of a pair, with what the user brought besides.

    Raises BadTrace where the run left no starting weights.
    """
    given = torch_user_model.build(options)
    model: nn.Module = given.model
    try:
        if options.pair is None:
            model.load_state_dict(torch.load(options.folder / WEIGHTS, map_location="cpu", weights_only=True))
            return model, None
        start = {name: torch.from_numpy(array) for name, array in load_file(options.folder / START).items()}
        with torch.no_grad():  # load_state_dict would want the counters too, and of some models a version
            for name, tensor in (*model.named_parameters(), *model.named_buffers()):
                if name in start:
                    tensor.copy_(start[name])
    except (OSError, RuntimeError, SafetensorError) as error:
        raise BadTrace(
            f"{options.folder}: its starting weights do not load: {' '.join(str(error).split())[:300]}"
        ) from error
    return model, Paired(given, read_alignment(options))


if __name__ == "__main__":
    run(main, ParityJob.read)
