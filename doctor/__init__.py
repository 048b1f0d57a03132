"""What of this machine and this environment would stop msmigrate, or slow it down, and what to change."""
