"""Run every module alone in both frameworks, on what torch's run gave it, so that each is judged by itself."""
