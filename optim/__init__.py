"""torch's optimizers and learning-rate schedules, computed by MindSpore as torch computes them."""

from __future__ import annotations

from .adam import Adam, AdamW, Lamb, NAdam, RAdam
from .optimizer import SGD, Lars, RMSprop
