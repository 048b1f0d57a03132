"""One framework a process: what a worker and the process that started it say to each other (messages.py), the
worker's end (worker.py), the parent's (parent.py), and what MindSpore's processes set first
(mindspore_environment.py)."""
