"""Run it: the recipe, data, models, the step and whole runs in folders of their own; evaluating and predicting here."""
