"""What several files of the package take from here."""

WIDTH = 6  # of the middle
# layers of each part
DEPTHS = {
    # the deeper one
    "encoder": 2,
    "decoder": 1,
}
# below zero
SLOPE: float = 0.2


class Config:
    slope = 0.3


cfg = Config()
