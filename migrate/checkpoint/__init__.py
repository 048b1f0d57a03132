"""Convert, make_plan, inspect_file by name."""
