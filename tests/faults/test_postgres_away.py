"""A server that was away for a while: whoever waited for it goes on soon after it is back."""

from __future__ import annotations

import asyncio
import signal
import time

import pytest

from store import postgres_pool
from store.errors import StoreUnavailable
from store.postgres import PostgresStore
from tests.faults.servers import OwnServer

AWAY = 8.0
"""Seconds: a wait that doubles from one second on would then be eight seconds long."""
SOON = 4.0


async def test_reads_go_on_soon_after_a_server_is_back(own_server: OwnServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_pool, "PATIENCE", 1.0)
    async with PostgresStore(own_server.url) as store:
        await store.read("SELECT 1", {})
        await own_server.stop(signal.SIGINT)
        away = time.monotonic() + AWAY
        while time.monotonic() < away:
            with pytest.raises(StoreUnavailable):
                await store.read("SELECT 1", {})
        await own_server.start()
        async with asyncio.timeout(SOON):
            while True:
                try:
                    await store.read("SELECT 1", {})
                except StoreUnavailable:
                    continue
                break
