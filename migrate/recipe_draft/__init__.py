"""A recipe drafted from a training script, which is read and not run."""
