"""What a command does from start to end; each is the public function of its name."""
