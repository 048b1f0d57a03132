"""What a model uses and what becomes of it in MindSpore: operators recorded or read, held against the mapping table."""
