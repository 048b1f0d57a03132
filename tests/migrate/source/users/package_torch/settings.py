"""What several files of the package take from here."""

WIDTH = 6
DEPTHS = {"encoder": 2, "decoder": 1}
SLOPE: float = 0.2


class Config:
    slope = 0.3


cfg = Config()
