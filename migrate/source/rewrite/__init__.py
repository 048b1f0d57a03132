"""What ran of a model's functions, rewritten for MindSpore: by a handler for each callee or form of syntax."""
