"""The code of a model's functions that ran, rewritten for MindSpore by a handler for each callee or form of syntax."""
