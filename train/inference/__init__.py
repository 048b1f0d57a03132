"""Trained weights at work: evaluation and prediction."""
