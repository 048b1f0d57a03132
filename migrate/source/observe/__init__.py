"""What a torch model computes, and how it was made: seen by running it."""
