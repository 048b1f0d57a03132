"""Taking a trained net out of training: MindIR, ONNX, MindSpore Lite and MindSpore Serving, each run and compared."""
