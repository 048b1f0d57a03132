"""The formats of the files that hold weights: read and write each, without either framework."""
