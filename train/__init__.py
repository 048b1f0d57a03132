"""Run it: the recipe, the data, the models, the loss, the optimizer and the step, in both frameworks."""
