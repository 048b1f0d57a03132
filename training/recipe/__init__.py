"""The recipe: its types, reading it, and whether the mapping table can run it."""
