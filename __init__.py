"""msmigrate: move a PyTorch model to MindSpore and prove that it is still the same model."""

__version__ = "0.1.0"
