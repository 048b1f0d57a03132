"""The file of MindSpore source: definitions, imports, and the function that makes the model."""
