"""How much memory this machine can still give; no framework is asked."""

from __future__ import annotations

from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")
FILES = ("max", "current", "stat")


def free_memory() -> int | None:
    """Bytes that this machine, or the container around this process, can still give; None where it does not say."""
    found = []
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                found.append(int(line.split()[1]) * 1024)
    except (OSError, ValueError, IndexError):
        pass
    try:
        limit, used, stat = ((CGROUP / f"memory.{name}").read_text(encoding="ascii") for name in FILES)
        cached = next(int(line.split()[1]) for line in stat.splitlines() if line.startswith("inactive_file "))
        found.append(int(limit) - int(used) + cached)
    except (OSError, ValueError, StopIteration):
        pass
    return min(found, default=None)
