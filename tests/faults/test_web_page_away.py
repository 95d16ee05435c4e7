"""The stream of docs/web.md's application while its database is away: it goes on at its cursor."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from chatfold import Agent, Engine
from store import postgres_pool
from tests.e2e.web import load_module
from tests.faults.servers import OwnServer


async def test_the_stream_outlives_an_outage(
    own_server: OwnServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_pool, "PATIENCE", 0.5)
    module = load_module(tmp_path)
    waits: asyncio.Queue[float] = asyncio.Queue()
    sleep = asyncio.sleep

    async def noticed(seconds: float) -> None:
        waits.put_nowait(seconds)
        await sleep(0.1)

    monkeypatch.setattr(module, "asyncio", type("Noticed", (), {"sleep": staticmethod(noticed)}))
    async with Engine(own_server.url, [Agent(name="helper", model="scripted")]) as engine:
        chat = (await engine.create_chat("helper", "One.")).chat
        await engine.settled(chat)
        async with aclosing(module.follow(engine, chat, None)) as told:
            seen = await _versions(told, (await engine.state(chat)).control.version)
            await own_server.stop(signal.SIGINT)
            following = asyncio.create_task(anext(told))
            assert await waits.get() == 1  # StoreUnavailable was raised and caught
            await own_server.start()
            await engine.send_message(chat, "Two.")
            seen += [event["version"] for event in [_data(await following)] if "version" in event]
            await engine.settled(chat)
            seen += await _versions(told, (await engine.state(chat)).control.version)
    assert seen == list(range(1, seen[-1] + 1))


def _data(sent: Any) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(sent.data)
    return data


async def _versions(told: AsyncGenerator[Any], upto: int) -> list[int]:
    """Read events up to a version."""
    seen: list[int] = []
    async for sent in told:
        if sent.event == "event":
            seen.append(_data(sent)["version"])
            if seen[-1] == upto:
                break
    return seen
