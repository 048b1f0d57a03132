"""Convert, and say on stdout how far it is, so that whoever kills this process knows where it was.

    python told_conversion.py SRC DST [force] [named] [two-steps] [no-fallocate] [wait]

`start` stands before anything is read, `write N` when N tenths are written, `sync` when the disk is waited for, `name`
when the file gets its name, `done` at the end. named: without files that have no name. two-steps: without the exchange
of two folders in one step. no-fallocate: without reserving the room beforehand. wait: at the start, for the end of
stdin.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from msmigrate import atomic_files
from msmigrate.errors import MsmigrateError
from msmigrate.migrate.checkpoint.convert import convert

SHARD = 4_000_000  # bytes


def say(text: str) -> None:
    os.write(1, f"{text}\n".encode())


def told(function: Any, before: str, after: str) -> Any:
    """The function, with something said before and after it."""

    def call(*args: Any, **kwargs: Any) -> Any:
        say(before)
        done = function(*args, **kwargs)
        say(after)
        return done

    return call


def main(source: str, destination: str, *flags: str) -> None:
    if "named" in flags:
        del os.O_TMPFILE
    if "no-fallocate" in flags:
        del os.posix_fallocate
    if "two-steps" in flags:
        atomic_files._renameat2 = lambda *_: False
    os.fsync = told(os.fsync, "sync", "name")
    shard = SHARD if destination.endswith("/") else None
    say("start")
    if "wait" in flags:
        sys.stdin.read()
    convert(
        source,
        destination,
        force="force" in flags,
        max_shard_size=shard,
        progress=lambda done, total: say(f"write {done * 10 // total}"),
    )
    say("done")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except MsmigrateError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
