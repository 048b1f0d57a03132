"""The names of what the processes of an export leave for each other."""

EXPORTED = "exported{}.npz"  # outputs of the exported file, by the size of a batch
TORCH64, TORCH32, TORCH32_OTHER = TORCH = ("torch64.npz", "torch32.npz", "torch32_other.npz")
