"""Record pairs: both frameworks side by side, each in one process for all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import side_by_side
from msmigrate.parity.align.alignment import ALIGNMENT
from msmigrate.parity.align.match_layers import align_pair
from msmigrate.parity.align.model_structure import SIDES, file
from msmigrate.parity.build_result import report
from msmigrate.parity.result import Report
from pair_cases import RECIPE, make_inputs, options

HERE = Path(__file__).parent


def recorded(root: Path, names: Sequence[str]) -> Callable[[str], Report]:
    """Run the pairs side by side, aligning each when both have told their structure, as the parent process does."""
    make_inputs(root)
    for name in names:
        (root / name).mkdir()

    def align() -> None:
        for name in names:
            folder = root / name
            if not (folder / ALIGNMENT).exists() and all(file(folder, side).exists() for side in SIDES):
                align_pair(options(root, name))

    scripts = ("torch_pairs.py", "mindspore_pairs.py")
    side_by_side.run(root, *([HERE / script, root, *names] for script in scripts), meanwhile=align)
    return lambda name: report(RECIPE, options(root, name))
