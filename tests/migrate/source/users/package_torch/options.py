"""Settings of several kinds, made by statements when the file is imported."""

import argparse
from types import SimpleNamespace


class Entries(dict):
    def __getattr__(self, name):
        return self[name]

    def __setattr__(self, name, value):
        self[name] = value


class Layer:
    pass


class Plain:
    rates = (0.5, 2.0)

    def __init__(self, wide):
        self.wide = wide
        self.layer = Layer()
        self.layer.depth = 2

    def __str__(self):
        return f"{self.wide}"


def base():
    made = Entries(wide=9)
    made.rates = [0.5, 2.0]
    return made


def merge(found, more):
    for key, value in more.items():
        found[key] = value


__C = Entries()
entries = __C
__C.wide = 4
__C.layer = Entries()
__C.layer.depth = 2
__C.rates = [0.5, 2.0]
__C.seen = 0

merged = base()
merge(merged, {"wide": 4, "layer": Entries(depth=2)})

named = SimpleNamespace(wide=4, rates=[0.5, 2.0])
named.layer = SimpleNamespace()
vars(named.layer)["depth"] = 2

parser = argparse.ArgumentParser()
parser.add_argument("--wide", type=int, default=3)
parser.add_argument("--rates", type=float, nargs="+", default=[0.5, 2.0])
parsed = parser.parse_args(["--wide", "4"])
parsed.layer = argparse.Namespace(depth=2)

plain = Plain(4)
