"""From a torch model's own source to MindSpore source: observe what runs, rewrite it, and write the new file."""
