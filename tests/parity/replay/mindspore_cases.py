"""MindSpore's side of every case: mindspore_cases.py ROOT CASE…"""

import os
import sys
import traceback
from functools import partial
from pathlib import Path

from msmigrate.workers.worker import prepare_mindspore, wait_for

prepare_mindspore()

import mindspore  # noqa: E402
import mindspore_nets  # noqa: E402
import numpy as np  # noqa: E402
from cases import BY_PARTS, CASES, PATTERNS  # noqa: E402
from mindspore import Tensor  # noqa: E402
from msmigrate.parity import containers_alone  # noqa: E402
from msmigrate.parity.containers_alone import RAN  # noqa: E402
from msmigrate.parity.options import Narrowing  # noqa: E402
from msmigrate.parity.replay.mindspore_replay import replay  # noqa: E402
from msmigrate.parity.run_folder import MINDSPORE  # noqa: E402
from msmigrate.parity.trace import TraceWriter  # noqa: E402
from msmigrate.training.models.mindspore_models import canonical_parameters  # noqa: E402

ABOUT = {"recipe": "0", "versions": {}, "dtype": "float32"}


def main(root: Path, names: list[str]) -> None:
    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    mindspore.runtime.launch_blocking()  # as the worker does
    for name in names:
        model, faults, _ = CASES[name]
        net = mindspore_nets.build(model)
        state = np.load(wait_for(root / name / "start.npz"))
        held = canonical_parameters(net)
        for each in held:
            each.parameter.set_data(Tensor(state[each.name]))
        for fault, *args in faults:
            getattr(mindspore_nets, fault)(net, *args)
        writer = TraceWriter(root / name / MINDSPORE, ABOUT)
        for each in held:
            writer.add("init", "values", each.name, each.parameter.asnumpy())
        writer.close()
        narrowing = Narrowing.to(modules=PATTERNS.get(name.removeprefix(BY_PARTS), ()))
        needed = partial(chosen, root / name) if name.startswith(BY_PARTS) else None
        replay(root / name, net, held, ABOUT, narrowing, needed=needed)
        (root / name / RAN).touch()


def chosen(folder: Path) -> list[str]:
    """Which containers are to run alone, once that is known."""
    return containers_alone.chosen(wait_for(folder / containers_alone.FILE))


if __name__ == "__main__":
    code = 0
    try:
        main(Path(sys.argv[1]), sys.argv[2:])
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stderr.flush()
    os._exit(code)
