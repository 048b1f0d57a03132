"""A recipe drafted from a training script that was read and not run."""
