"""MindSpore's side of the cases of modes_cases.py: modes_mindspore_worker.py ROOT CASE …"""

import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msmigrate.workers.worker import prepare_mindspore, wait_for

prepare_mindspore()

import modes_mindspore_net  # noqa: E402
from mindspore import ops  # noqa: E402
from modes_cases import CASES, options_of  # noqa: E402
from msmigrate.parity.record import mindspore_worker  # noqa: E402
from msmigrate.parity.record.mindspore_worker import record_compiled  # noqa: E402
from msmigrate.training.models import mindspore_models  # noqa: E402


def with_eps(side: Any, *rest: Any) -> None:
    """A fault that the compiled step alone has."""
    side.net.bn1.bn_train = ops.BatchNorm(is_training=True, epsilon=1e-3, momentum=0.1)
    record_compiled(side, *rest)


def with_eps_in_evaluation(side: Any, *rest: Any) -> None:
    side.net.bn1.bn_infer = ops.BatchNorm(is_training=False, epsilon=1e-1)
    record_compiled(side, *rest)


def before_steps(change: Callable[[Any], None]) -> Callable[..., None]:
    """Something that happens to the side before every compiled step but the first, and before the weights are set."""

    def record(side: Any, *rest: Any) -> None:
        begin = side.begin

        def changed(start: Any) -> None:
            if start is not None:  # no step but the first has none
                change(side)
            begin(start)

        side.begin = changed
        record_compiled(side, *rest)

    return record


def lost(side: Any) -> None:
    for moment in side.train_step.optimizer.accum:
        moment.copy_(ops.zeros_like(moment))


def drifted(side: Any) -> None:
    for held in side.held:
        held.parameter.copy_(held.parameter * 1.01)


FAULTS = {
    "eps in graph": with_eps,
    "eps in evaluation": with_eps_in_evaluation,
    "momentum lost in graph": before_steps(lost),
    "weights drift in graph": before_steps(drifted),
}
build = mindspore_models.build


def main(root: Path, names: list[str]) -> None:
    for case in map(CASES.__getitem__, names):
        options = options_of(root, case.name)
        wait_for(options.folder)
        mindspore_models.build = build if case.recipe == "half" else modes_mindspore_net.build(case)
        mindspore_worker.record_compiled = FAULTS.get(case.wrong, record_compiled)
        mindspore_worker.main(options)


if __name__ == "__main__":
    code = 0
    try:
        main(Path(sys.argv[1]), sys.argv[2:])
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stderr.flush()
    os._exit(code)
