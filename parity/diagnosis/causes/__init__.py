"""Explainers: for each stage of the step, why its tensors differ. Each has `explain(context)`, which returns causes."""
