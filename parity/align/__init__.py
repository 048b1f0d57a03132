"""Pairs of models that somebody else wrote: what each consists of, what corresponds, and how both are run."""
