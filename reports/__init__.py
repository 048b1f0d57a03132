"""Say it: verdicts, plans and tables for people (terminal) and for machines (JSON)."""
