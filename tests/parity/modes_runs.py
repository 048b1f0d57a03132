"""One recording of all cases of modes_cases.py, shared by the tests of a session."""

from __future__ import annotations

from pathlib import Path

import side_by_side

HERE = Path(__file__).parent


def record(root: Path, names: list[str]) -> Path:
    """Run both workers side by side; the traces of each case lie in a folder of its name."""
    scripts = ("modes_torch_worker.py", "modes_mindspore_worker.py")
    side_by_side.run(root, *([HERE / script, root, *names] for script in scripts))
    return root
