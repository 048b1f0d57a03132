"""What diagnosis says of the recorded cases of tests/parity: torch_recorded_causes.py ROOT ROOT RECIPE CASE … [RECIPE]

Each case lies in one of the two folders. Prints one JSON object: case -> causes, the modules' own left out (nothing was
replayed there).
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

import torch
from msmigrate.parity.compare_traces import Traces, compare
from msmigrate.parity.diagnosis import torch_diagnosis_worker
from msmigrate.parity.diagnosis.causes import torch_modules
from msmigrate.parity.diagnosis.context import Context
from msmigrate.parity.job import ParityJob
from msmigrate.parity.run_folder import WEIGHTS
from msmigrate.parity.tensor_verdict import Verdict
from msmigrate.training.models import torch_models
from msmigrate.training.recipe import reader as recipes
from msmigrate.workers.worker import defer_compiler

EXPLAINERS = [
    each
    for explainers in torch_diagnosis_worker.EXPLAINERS.values()
    for each in explainers
    if each is not torch_modules.explain
]


def main(roots: list[Path], words: list[str]) -> None:
    torch.set_num_threads(1)
    told = {}
    for word in words:
        if word.endswith(".yaml"):
            recipe, first = recipes.load(Path(word)), None
            continue
        folder = next(root / word for root in roots if (root / word).exists())
        first = first or folder  # the untouched case of a recipe has the start that all its cases share
        model = torch_models.build(recipe.model.name, **recipe.model.args)
        model.load_state_dict(torch.load(first / WEIGHTS, weights_only=True))
        findings = [f for f in compare(Traces.load(folder)) if f.verdict is not Verdict.PASS]
        context = Context(ParityJob(recipe, folder), findings, [], model)
        told[word] = [asdict(cause) for explain in EXPLAINERS for cause in explain(context)]
    print(json.dumps(told))


if __name__ == "__main__":
    defer_compiler()  # torch's compiler, whose import takes longer than torch's
    main([*map(Path, sys.argv[1:3])], sys.argv[3:])
