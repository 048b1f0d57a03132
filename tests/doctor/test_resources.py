"""Every finding about instruction set, memory and disk."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from msmigrate.doctor import machine as resources
from msmigrate.doctor.machine import OK, PROBLEM, WARNING, Machine, cpu_flags

WIDE = frozenset({"avx2", "avx512f", "avx512_vnni", "amx_tile"})
VARIABLE = "ONEDNN_MAX_CPU_ISA"


@pytest.mark.parametrize(
    ("flags", "given", "state", "said"),
    [
        (frozenset({"avx2"}), None, OK, "no AVX-512 and no AMX here; 8 cores"),
        (frozenset(), "AVX512_CORE", OK, "the CPU does not say what it can do"),
        (WIDE, None, OK, "this CPU has AMX and AVX-512; msmigrate sets ONEDNN_MAX_CPU_ISA=AVX2 for MindSpore"),
        (WIDE - {"amx_tile"}, None, OK, "this CPU has AVX-512; msmigrate"),
        (WIDE, "AVX2", OK, "is set, and slows torch down"),
        (WIDE, "avx2_vnni", OK, "is set, and slows torch down"),
        (WIDE, "AVX512_CORE_AMX", WARNING, "is set: MindSpore's convolutions were 30 times slower with it"),
        (WIDE, "AVX3", WARNING, "which is none of oneDNN's names"),
        (WIDE, "", WARNING, "which is none of oneDNN's names"),
    ],
)
def test_the_instruction_set(flags: frozenset[str], given: str | None, state: str, said: str, machine: Machine) -> None:
    environment = {} if given is None else {VARIABLE: given}
    found = resources.instructions(replace(machine, flags=flags, environment=environment))
    assert found.state == state and said in found.found
    assert found.command == ("" if state == OK else f"unset {VARIABLE}")


def test_flags_are_those_of_the_first_core(tmp_path: Path) -> None:
    file = tmp_path / "cpuinfo"
    file.write_text("processor\t: 0\nflags\t\t: fpu avx2 amx_tile\nprocessor\t: 1\nflags\t\t: other\n")
    assert cpu_flags(file) == {"fpu", "avx2", "amx_tile"}
    file.write_text("processor\t: 0\nFeatures\t: fp asimd\n")  # an ARM core
    assert cpu_flags(file) == {"fp", "asimd"}
    assert cpu_flags(tmp_path / "none") == frozenset()


@pytest.mark.parametrize(
    ("free", "state", "said"),
    [
        (64 * 10**9, OK, "64.0 GB available"),
        (4 * 10**9, WARNING, "parity-step on ResNet50 takes 8.7 GB"),
        (900 * 10**6, PROBLEM, "900 MB available; one bare step"),
        (None, WARNING, "does not say"),
    ],
)
def test_memory(free: int | None, state: str, said: str, machine: Machine) -> None:
    found = resources.memory(replace(machine, memory=free))
    assert found.state == state and said in found.found


@pytest.mark.parametrize(("free", "state"), [(10**12, OK), (resources.TRACES // 2, WARNING), (10**6, PROBLEM)])
def test_disk(free: int, state: str, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(machine.folder)._replace(free=free)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    found = resources.temporary(machine)
    assert found.state == state and str(machine.temporary) in found.found
    assert found.command == ("" if state == OK else "export TMPDIR=FOLDER")


def test_no_temporary_folder(machine: Machine) -> None:
    found = resources.temporary(replace(machine, temporary=None))
    assert found.state == PROBLEM and found.command == "export TMPDIR=$HOME/tmp"


def test_a_folder_that_is_gone(machine: Machine, tmp_path: Path) -> None:
    found = resources.disk("disk for runs", tmp_path / "gone", 1, 1, "checkpoints")
    assert found.state == PROBLEM and "No such file" in found.found


def test_a_folder_that_cannot_be_written(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    found = resources.disk("disk for runs", machine.folder, 1, 1, "checkpoints")
    assert found.state == WARNING and "--out" in found.change


def test_a_file_system_without_room_for_names(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        f_files, f_favail = 100, 0
        f_blocks, f_bfree, f_bavail, f_frsize = 9, 9, 9, 4096

    monkeypatch.setattr(os, "statvfs", lambda path: Full)
    assert "no more files" in resources.disk("disk", machine.folder, 1, 1, "checkpoints").found
