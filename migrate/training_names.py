"""Under which names a MindSpore checkpoint holds what belongs to no single tensor of a training run."""

from __future__ import annotations

STEPS = "msmigrate.steps"  # optimizer steps taken
EPOCH = "msmigrate.schedule_epoch"  # how often the schedule has moved
GROUPS = "msmigrate.training"  # the parameter groups as torch has them, as JSON, for the way to torch
RUN = "msmigrate.run"  # what `train` notes of its run
