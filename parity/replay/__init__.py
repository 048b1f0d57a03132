"""Run every module alone in both frameworks, on the inputs it had in torch's run, so that each is judged by itself."""
