"""Faults that were planted in the real MindSpore step, and the cause that diagnosis puts first."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
# recipe -> its untouched case, and fault -> what the first cause has to be
TINY = {
    "none-42": None,
    "norm_undecayed": "wd-skips-gamma-beta",
    "nesterov_ignored": "momentum-nesterov-ignored",
    "schedule_forgotten": "schedule-not-moving",
    "schedule_late": "schedule-late",
    "weight_decay_slight": "optimizer-argument",
    "rate_slight": "optimizer-argument",
    "sgd_momentum_slight": "optimizer-argument",
    "label_smoothing": "label-smoothing-k-1",
    "last_sample_ignored": "sample-left-out",
    "softmax_in_evaluation": "evaluation-output",
    "no_has_aux": "value-and-grad-has-aux",
    "not_unscaled": "gradient-factor",
    "gradient_flipped": "gradient-flipped",
    "gradient_missing": "parameter-frozen",
    "initializer_fan_in": "he-fan-out",
    "swapped_weights": "weights-swapped",
    "variance_scaled": "weights-scaled",
    "one_ulp": "weights-rounded",
    "convolution_transposed": "weight-transposed",
    "buffer_not_loaded": "bn-params-names",
    "mean_not_subtracted": "normalize-mean-missing",
    "labels_shifted": "labels-shifted",
    "channels_reversed": "bgr",
    "crop_shifted": "centercrop-rounding",
}
CLIPPED = {"none-clipped": None, "gradient_clipped_by_tensor": "clip-per-tensor", "clipping_off@1.001": "clip-argument"}
MIXED = {
    "none-mixed": None,
    "interpolation_other": "transform-argument",
    "crop_one_off": "random-transform",
    "flip_ignored": "random-transform",
    "erased_with_zero": "transform-argument",
    "key_of_the_neighbour": "draws-of-another-key",
    "shares_swapped": "mixup-lambda-complement",
    "share_slight": "mixup-lambda",
    "batch_not_reversed": "mixup-partner",
    "targets_not_smoothed": "mixup-targets-smoothing",
    "targets_not_mixed": "mixup-targets-not-mixed",
}
HALF = {
    "none-half": None,
    "half_left_out": "amp-missing",
    "overflow_not_skipped": "overflow-not-skipped",
    "clipped_before_unscaling": "clip-before-unscale",
    "scale_grows_late": "loss-scale-rule",
    "decay_slight@1.001": "ema-argument",
    "schedule_by_step_too": "cosine-step-epoch",
}
CYCLED = {
    "none-cycled": None,
    "momentum_not_cycled": "schedule-argument",
    "cycled_momentum_not_read": "schedule-argument",
}
ALL = {"tiny": TINY, "tiny_clipped": CLIPPED, "tiny_mixed": MIXED, "tiny_half": HALF, "tiny_cycled": CYCLED}


@pytest.mark.full
def test_every_fault_of_the_recorded_cases_has_its_cause_first(cases: Path, full_cases: Path) -> None:
    recorded = {case for text in json.loads((HERE.parent / "cases.json").read_text()).values() for case in text}
    words, expected = [], {}
    for recipe, faults in ALL.items():
        kept = {name: fault for name, fault in faults.items() if name.startswith("none-") or name in recorded}
        words += [str(HERE.parent / f"{recipe}.yaml"), *kept]
        expected |= kept
    command = [sys.executable, str(HERE / "torch_recorded_causes.py"), str(cases), str(full_cases), *words]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout.strip().splitlines()[-1])
    first = {case: causes[0]["fault"] if causes else None for case, causes in told.items()}
    assert first == expected
    assert all(len(causes) == 1 for case, causes in told.items() if expected[case])
