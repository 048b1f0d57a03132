"""Record one step in one framework."""
