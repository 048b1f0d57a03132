"""Prove it: record one training step in each framework, compare tensor by tensor, and judge."""
