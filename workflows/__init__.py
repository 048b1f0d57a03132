"""What a command does from start to end: options resolved, processes started, results shown and written."""
