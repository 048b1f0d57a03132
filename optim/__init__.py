"""torch's optimizers and learning-rate schedules, computed by MindSpore as torch computes them."""

from __future__ import annotations

from .adam import Adam, AdamW, NAdam, RAdam
from .lamb_lars import Lamb, Lars
from .optimizer import SGD, RMSprop
