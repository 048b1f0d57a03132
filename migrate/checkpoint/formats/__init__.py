"""What stands in the files that hold weights: read and write each format, without either framework."""
