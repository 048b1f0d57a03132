"""The models a recipe may name, in both frameworks, under torch's names."""
