"""A whole run: launching processes, the loop, checkpoints, watchpoints, what a run is told and says."""
