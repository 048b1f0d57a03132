"""What a command does from start to end: options settled, processes started, results shown and written."""
