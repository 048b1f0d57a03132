"""From a torch model's own source to MindSpore source: what ran, what it was, and how it is written there."""
