"""A SQLite file on a disk that is full, or that only reads, while a model is being called."""

from __future__ import annotations

from pathlib import Path

import pytest

from chatfold.engine import Engine
from store.errors import StoreUnavailable
from tests.faults.disks import MakeDisk, remount
from tests.faults.kit import check, in_a_call, ride_out_a_full_disk


@pytest.fixture
def small_disk(disk: MakeDisk, tmp_path: Path) -> Path:
    """A disk of some megabytes."""
    return disk(tmp_path / "disk", 3)


async def test_a_full_disk(small_disk: Path) -> None:
    async with in_a_call(f"sqlite:///{small_disk}/chats.db") as scene:
        await ride_out_a_full_disk(scene, small_disk, r"chats\.db.*full")


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
