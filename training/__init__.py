"""Run it: the recipe here; data, models, the step, whole runs and inference in their own folders."""
