"""Make the MindSpore side: read a torch checkpoint, plan, and write what MindSpore reads."""
