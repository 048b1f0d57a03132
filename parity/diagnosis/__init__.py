"""Why tensors failed: hypotheses that are tested on the traces of a run.

torch_diagnosis_worker.py asks the explainers of causes/. Each changes what torch computes by mutations (mutations/), on
a subject (torch_subjects.py: a module alone, a container, a layer inside the net; those of other stages are defined
with their causes), until one of them gives MindSpore's tensors (search.py). That one is the cause.
"""
