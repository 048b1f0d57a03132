"""Images on their way to a step: sources, order, transforms and their draws, mixing, pipelines."""
