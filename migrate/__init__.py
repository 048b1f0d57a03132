"""Make the MindSpore side: read a torch checkpoint, plan the conversion, and write a file that MindSpore reads."""
