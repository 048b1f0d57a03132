"""What a torch model computes, and how it is made, observed by running it."""
