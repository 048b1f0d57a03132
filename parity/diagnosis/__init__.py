"""Why tensors failed: hypotheses that are tested on the traces of a run."""
