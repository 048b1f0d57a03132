"""`python -m msmigrate` is the console script `msmigrate`."""

from .cli import main

main()
