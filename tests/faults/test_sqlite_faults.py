"""A SQLite file on a disk that is full, or that only reads, while a model is being called."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from chatfold.engine import Engine
from store.errors import StoreUnavailable
from tests.faults.kit import LEASE, Effort, check, in_a_call

_NEEDS_MOUNT = "a small disk of its own is mounted, which takes root on Linux"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of some megabytes, mounted."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip(_NEEDS_MOUNT)
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(disk)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"{_NEEDS_MOUNT}: {mounted.stderr.strip()}")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def remount(disk: Path, how: str) -> None:
    """Make a disk one that only reads, or writes again."""
    subprocess.run(["mount", "-o", f"remount,{how}", str(disk)], check=True)


def fill(disk: Path) -> Path:
    """Take all the space that is left."""
    filler = disk / "filler"
    with filler.open("wb") as file:
        while space := shutil.disk_usage(disk).free:
            file.write(bytes(min(space, 1 << 16)))
            file.flush()
    return filler


async def test_a_full_disk(small_disk: Path) -> None:
    async with in_a_call(f"sqlite:///{small_disk}/chats.db") as scene:
        filler = fill(small_disk)
        effort = Effort()
        with pytest.raises(StoreUnavailable, match=r"chats\.db.*full"):
            await scene.engine.create_chat("helper", "Long. " * 20_000)
        scene.call.answer.set()
        await asyncio.sleep(1.5 * LEASE)
        effort.assert_small()
        filler.unlink()
        await check(scene)


async def test_a_disk_that_only_reads(small_disk: Path) -> None:
    url = f"sqlite:///{small_disk}/chats.db"
    async with in_a_call(url) as scene:
        await check(scene)
    remount(small_disk, "ro")
    try:
        with pytest.raises(StoreUnavailable, match=r"chats\.db"):
            await Engine(url).__aenter__()
    finally:
        remount(small_disk, "rw")
    async with Engine(url, worker=False) as engine:
        assert (await engine.state(scene.chat)).control.status == "waiting"
