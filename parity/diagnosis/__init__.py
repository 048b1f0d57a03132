"""Why tensors failed: hypotheses that are tested on the traces of a run.

torch_diagnosis_worker.py runs the explainers of causes/. Each changes what torch computes by mutations (mutations/), on
a subject (torch_subjects.py: a module alone, a container, a layer inside the net; those of other stages are defined
with their causes), until one of them reproduces MindSpore's tensors (hypotheses.py). That one is the cause.
"""
