"""A SQLite file on a disk that is full, or that only reads, while a model is being called."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from chatfold.engine import Engine
from store.errors import StoreUnavailable
from tests.faults.disks import MakeDisk, fill, remount
from tests.faults.kit import LEASE, Effort, check, in_a_call


@pytest.fixture
def small_disk(disk: MakeDisk, tmp_path: Path) -> Path:
    """A disk of some megabytes."""
    return disk(tmp_path / "disk", 3)


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
