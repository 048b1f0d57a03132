"""Run it: recipe, data, models, step and whole runs in folders of their own; evaluating and predicting here."""
