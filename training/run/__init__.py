"""A whole run: launching processes, the loop, checkpoints, watchpoints, the job and the log of a run."""
