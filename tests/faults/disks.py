"""Small disks: to be filled, and to be made ones that only read."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, TypeAlias

import pytest

_NEEDS_MOUNT: Final = "a small disk of its own is mounted, which takes root on Linux"

MakeDisk: TypeAlias = Callable[[Path, int], Path]
"""Mounts a disk of so many megabytes at a path that does not exist yet, and returns the path."""


@contextmanager
def disks() -> Iterator[MakeDisk]:
    """Give what mounts disks; in the end they are gone. The test is skipped where none can be mounted."""
    with ExitStack() as mounted:

        def make(path: Path, megabytes: int) -> Path:
            if sys.platform != "linux" or os.geteuid() != 0:
                pytest.skip(_NEEDS_MOUNT)
            path.mkdir()
            words = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(path)]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            if done.returncode:
                pytest.skip(f"{_NEEDS_MOUNT}: {done.stderr.strip()}")
            mounted.callback(subprocess.run, ["umount", "-l", str(path)], check=True)
            return path

        yield make


def remount(disk: Path, how: str) -> None:
    """Make a disk one that only reads, or writes again."""
    subprocess.run(["mount", "-o", f"remount,{how}", str(disk)], check=True)


def fill(disk: Path) -> Path:
    """Take all the space that is left; returns the file to be removed."""
    filler = disk / "filler"
    with filler.open("wb") as file:
        while space := shutil.disk_usage(disk).free:
            file.write(bytes(min(space, 1 << 16)))
            file.flush()
    return filler
