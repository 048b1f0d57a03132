"""Weights from one framework's files to the other's: read, plan, write, and inspect."""
