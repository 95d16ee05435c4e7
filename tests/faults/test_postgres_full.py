"""PostgreSQL on a disk that is full while a model is being called: the disk of its tables, and that of its own log."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from tests.faults.disks import MakeDisk, fill
from tests.faults.kit import LEASE, Effort, check, in_a_call, ride_out_a_full_disk
from tests.faults.servers import OwnServer


@pytest.fixture
def own_disk(disk: MakeDisk, own_server: OwnServer) -> Path:
    """A disk of the server's user."""
    made = disk(own_server.data.parent / "disk", 64)
    hand_over(made, own_server)
    return made


def hand_over(folder: Path, server: OwnServer) -> None:
    """Let a folder, and all in it, be the server's user's."""
    owner = server.data.stat()
    for path in (folder, *folder.rglob("*")):
        os.chown(path, owner.st_uid, owner.st_gid)


def execute(url: str, *statements: sql.SQL | sql.Composed) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


def use_up_log(url: str) -> None:
    """Write until the server comes to a file of its log that it has no space for."""
    while True:
        execute(url, sql.SQL("SELECT pg_switch_wal(), txid_current()"))


async def test_no_space_for_tables(own_server: OwnServer, own_disk: Path) -> None:
    execute(
        own_server.url,
        sql.SQL("CREATE TABLESPACE small LOCATION {}").format(str(own_disk)),
        sql.SQL("CREATE DATABASE small TABLESPACE small"),
    )
    async with in_a_call(own_server.url_of("small")) as scene:
        await ride_out_a_full_disk(scene, own_disk, "No space left on device")


async def test_no_space_for_the_log(own_server: OwnServer, own_disk: Path) -> None:
    """The server crashes; it is started again when there is space, as those who watch over servers do."""
    log = own_server.data / "pg_wal"
    await own_server.stop(signal.SIGINT)
    moved = Path(shutil.move(log, own_disk))
    hand_over(moved, own_server)
    log.symlink_to(moved)
    await own_server.start()
    async with in_a_call(own_server.url) as scene:
        filler = fill(own_disk)
        with pytest.raises(psycopg.OperationalError):
            use_up_log(own_server.url)
        await own_server.ended()
        effort = Effort()
        scene.call.answer.set()
        await asyncio.sleep(1.5 * LEASE)
        effort.assert_small()
        filler.unlink()
        await own_server.start()
        await check(scene)
