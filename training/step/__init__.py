"""One training step in both frameworks: precision, gradients, optimizer, schedule, moving average."""
