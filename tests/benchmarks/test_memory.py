"""What a chat costs in memory while its turn is under way, and what idle chats cost. Printed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

CHATS = 1000
TURNS = 10

SCRIPT = f"""
import asyncio, gc, json, os, sys
from chatfold import Agent, Engine
from chatfold.settings import Settings
from events.messages import Usage
from generation.providers.contract import Finish, TextDelta, TextEnd

def text():
    return os.urandom(500).hex()

def rss():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

class Model:
    name = "scripted"
    holding, under_way = False, 0
    def __init__(self):
        self.reached, self.gate = asyncio.Event(), asyncio.Event()
    async def close(self):
        pass
    async def stream(self, request):
        if self.holding:
            self.under_way += 1
            if self.under_way == {CHATS}:
                self.reached.set()
            await self.gate.wait()
        yield TextDelta(block=0, text=text())
        yield TextEnd(block=0)
        yield Finish(reason="stop", usage=Usage(input=100, output=50))

async def main(url, fill):
    model = Model()
    agent = Agent(name="a", model="scripted", system="Be kind.")
    settings = Settings(capacity=2 * {CHATS}, lease=600.0, warm_mb=1)
    async with Engine(url, agents=[agent], providers={{"scripted": model}}, settings=settings) as engine:
        async def live(name):
            await engine.create_chat("a", chat_id=name)
            for _ in range({TURNS} - 1):
                await engine.send_message(name, text())
                await engine.settled(name)
        names = [f"chat-{{number}}" for number in range({CHATS})]
        if fill:
            for first in range(0, {CHATS}, 50):
                await asyncio.gather(*map(live, names[first:first + 50]))
            return
        gc.collect()
        before = rss()
        model.holding = True
        for first in range(0, {CHATS}, 50):
            await asyncio.gather(*(engine.send_message(name, text()) for name in names[first:first + 50]))
        await model.reached.wait()
        gc.collect()
        print(json.dumps({{"running": (rss() - before) / {CHATS}}}))
        model.gate.set()
        await asyncio.gather(*map(engine.settled, names))

asyncio.run(main(sys.argv[1], sys.argv[2] == "fill"))
"""


@pytest.mark.bench
@pytest.mark.timeout(600)
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="resident memory is read from /proc")
def test_memory_of_a_chat_whose_turn_is_under_way(tmp_path: Path) -> None:
    """At most 1.4 times its text and 10 kB, all in: state, prompt, tasks. Each process but the measured one is gone."""
    url = f"sqlite:///{tmp_path / 'chats.db'}?synchronous=normal"
    run_in_a_process(url, "fill")
    running = json.loads(run_in_a_process(url, "measure").splitlines()[-1])["running"]
    text_bytes = (2 * TURNS - 1) * 1000
    bar = 1.4 * text_bytes + 10_000
    print(f"{text_bytes / 1000:.0f} kB of text: {running / 1000:.1f} kB a chat; the bar is {bar / 1000:.1f}")
    assert running <= bar


def run_in_a_process(url: str, step: str) -> str:
    command = [sys.executable, "-c", SCRIPT, url, step]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=500).stdout
