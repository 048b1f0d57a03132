"""What MindSpore's CPU lacks or gets wrong, built from operators that work: targets of rows of the mapping table."""
