"""Recipe and load, handed on."""
