"""How fast decisions are taken again: of one long log on one core, and of a thousand logs on the cores there are.

Measured from the files to the verdict: reading, checking each digest, decoding, folding, deciding and comparing. A turn
has ten events and four decisions. The bar of one log is CPU time, so that it holds on a busy machine too; that of many
is time that passes, on two cores that are free: the load is printed beside it.
"""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Final

import pytest

from chatfold.engine import Engine
from chatfold.replaying.checking import check_decisions, check_source
from chatfold.replaying.decisions import DecisionCheck
from chatfold.replaying.logs import LogSource
from chatfold.replaying.many import each
from generation.agents import Agent
from generation.providers.script import UseTool, turn
from generation.providers.scripted import ScriptedProvider
from generation.tools.contract import Tool

EVENTS: Final = 10_000
BAR: Final = 20_000
"""Decisions a second of CPU time."""
LOGS: Final = 1_000
LENGTH: Final = 200
SECONDS: Final = 10.0
"""For all the logs, on two cores."""
JOBS: Final = 2
SAID: Final = "word " * 60


def look_up(order: str) -> str:
    """Look an order up."""
    return f"order {order} is on its way {SAID}"


async def talk(turns: int) -> bytes:
    """Return the log of a chat with so many turns, each with a tool call."""
    answers = [said for n in range(turns) for said in (turn("Hm.", UseTool("look_up", {"order": f"A-{n}"})), SAID)]
    agent = Agent(name="support", model="scripted", tools=[Tool.from_function(look_up, crash="rerun")])
    async with Engine("memory://", [agent], providers={"scripted": ScriptedProvider(answers)}) as engine:
        await engine.create_chat("support", SAID, chat_id="long")
        await engine.settled("long")
        for _ in range(turns - 1):
            await engine.send_message("long", SAID)
            await engine.settled("long")
        return await engine.export_log("long")


@pytest.mark.bench
def test_decisions_of_a_long_log_on_one_core(tmp_path: Path) -> None:
    file = tmp_path / "long.jsonl"
    file.write_bytes(asyncio.run(talk(EVENTS // 10)))
    whole = alone = float("inf")
    for _ in range(3):
        start = time.process_time()
        log = LogSource("file", str(file)).read()
        checked = check_decisions(log)
        whole = min(whole, time.process_time() - start)
        assert (checked.events, checked.drifts, checked.altered) == (EVENTS + 1, (), None)
        events, check = list(log.bare()), DecisionCheck(transcript=False)
        start = time.process_time()
        assert not any(map(check.take, events))
        alone = min(alone, time.process_time() - start)
        assert check.decisions == checked.decisions == 4 * EVENTS // 10
    decisions = 4 * EVENTS // 10
    print(f"\n{EVENTS} events, {decisions} decisions, {file.stat().st_size / 1e6:.1f} MB: {whole:.3f} s")
    print(f"from file to verdict: {decisions / whole:,.0f} decisions/s, {EVENTS / whole:,.0f} events/s")
    print(f"fold, decide, compare: {decisions / alone:,.0f} decisions/s, {EVENTS / alone:,.0f} events/s")
    assert decisions / whole >= BAR


@pytest.mark.bench
def test_decisions_of_many_logs_on_two_cores(tmp_path: Path) -> None:
    log = asyncio.run(talk(LENGTH // 10))
    for number in range(LOGS):
        (tmp_path / f"{number}.jsonl").write_bytes(log)
    sources = [LogSource("file", str(file)) for file in sorted(tmp_path.glob("*.jsonl"))]
    start = time.perf_counter()
    results = list(each(check_source, sources, jobs=JOBS))
    took = time.perf_counter() - start
    decisions = sum(checked.decisions for checked in results)
    print(f"\n{LOGS} logs of {results[0].events} events, {decisions:,} decisions, on {JOBS} processes: {took:.1f} s")
    print(f"load of the machine: {os.getloadavg()[0]:.1f}")
    assert all(checked.sound and not checked.drifts for checked in results)
    assert took < SECONDS
