"""A package of several files, as users have them."""

from .net import build as build
