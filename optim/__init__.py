"""torch's optimizers and learning-rate schedules, computed by MindSpore as torch computes them."""
