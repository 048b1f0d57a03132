"""One framework a process: what a worker and the process that started it say to each other (messages.py), the
worker's end (worker.py) and the parent's (parent.py)."""
