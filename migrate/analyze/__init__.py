"""The operators that a model uses, recorded or read, and their counterparts in MindSpore by the mapping table."""
