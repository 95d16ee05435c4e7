"""An imported log: no worker runs it, no deadline fires, no command changes it, until it is adopted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

import pytest

from chatfold.engine import Engine
from chatfold.receipts import Receipt
from chatfold.transfer import import_file, load_log, stored_log
from chatstate.errors import ChatForeign
from events.ids import ChatId
from generation.agents import Limits
from generation.providers.script import turn
from generation.providers.scripted import ScriptedProvider
from generation.tools.contract import Tool
from store.contract import Store
from store.memory import MemoryStore
from tests.races.gates import GatedStore
from tests.races.kit import CHAT, ManualClock, Stop, calls, engine_on, settled, sound, texts

ASK = Tool(name="ask", description="Ask.", schema={"type": "object", "properties": {}}, runner="client")


async def imported(base: Store, state: str, clock: ManualClock, as_id: str | None = None) -> bytes:
    """Make a chat elsewhere, stop there, and import its log here. Returns the log file."""
    elsewhere = GatedStore(MemoryStore(clock=clock))
    stop = Stop()
    async with elsewhere.inner, AsyncExitStack() as stack:
        other = await stack.enter_async_context(engine_on(elsewhere, [], worker=False))
        if state in ("R0", "I0"):
            deaf = GatedStore(elsewhere.inner)
            deaf.deaf = True
            worker = await stack.enter_async_context(engine_on(deaf, [turn("Half", stop.at())]))
            await worker.create_chat("helper", "Hello", chat_id=CHAT)
            await stop.arrived()
            if state == "I0":
                await other.interrupt(CHAT)
        elif state == "A0":
            limits = Limits(action_timeout=30)
            worker = await stack.enter_async_context(engine_on(elsewhere, [calls("ask")], tools=[ASK], limits=limits))
            await worker.create_chat("helper", "Hello", chat_id=CHAT)
            await settled(worker)
        else:
            await other.create_chat("helper", "Hello", chat_id=CHAT)
        log = b"".join((await stored_log(elsewhere, CHAT)).lines())
        stop.go()
    await import_file(base, load_log(log), as_id=as_id)
    return log


COMMANDS: dict[str, Callable[[Engine], Awaitable[Receipt]]] = {
    "send": lambda engine: engine.send_message(CHAT, "Hi"),
    "send_interrupt": lambda engine: engine.send_message(CHAT, "Hi", busy="interrupt"),
    "edit": lambda engine: engine.edit_message(CHAT, "1.0", "Hi"),
    "interrupt": lambda engine: engine.interrupt(CHAT),
    "resume": lambda engine: engine.resume(CHAT),
    "submit": lambda engine: engine.submit_tool_results(CHAT, 6, {"5.0#0": "x"}),
    "edit_queued": lambda engine: engine.edit_queued(CHAT, "1.0", "Hi"),
    "reorder": lambda engine: engine.reorder_queue(CHAT, []),
    "delete_queued": lambda engine: engine.delete_queued(CHAT, "1.0"),
    "promote": lambda engine: engine.promote_queued(CHAT, "1.0"),
    "compact": lambda engine: engine.compact(CHAT),
    "uncompact": lambda engine: engine.uncompact(CHAT),
    "clear": lambda engine: engine.clear(CHAT),
    "archive": lambda engine: engine.archive(CHAT),
    "unarchive": lambda engine: engine.unarchive(CHAT),
    "title": lambda engine: engine.set_title(CHAT, "A talk"),
    "labels": lambda engine: engine.set_labels(CHAT, {"a": "b"}),
    "model": lambda engine: engine.set_model(CHAT, "scripted/other"),
    "agent": lambda engine: engine.set_agent(CHAT, "helper"),
    "pinned": lambda engine: engine.set_pinned(CHAT, True),
    "retention": lambda engine: engine.set_retention(CHAT, 1.0),
    "erase": lambda engine: engine.erase(CHAT, ["1.0"]),
    "create": lambda engine: engine.create_chat("helper", "Hello", chat_id=CHAT),
}


@pytest.mark.parametrize("state", ["P0", "R0", "I0", "A0"])
async def test_an_imported_log_is_not_run_and_not_changed(any_base: Store, clock: ManualClock, state: str) -> None:
    log = await imported(any_base, state, clock)
    provider, gated = ScriptedProvider([]), GatedStore(any_base)
    async with engine_on(gated, provider, poll=0.02) as engine:
        clock.advance(3600)
        worker = engine.worker
        assert worker is not None
        for _ in range(3):
            polled = gated.hold("find_due", after=True)
            await polled.arrived()
            polled.open()
        await worker._strays.find()
        for name, command in COMMANDS.items():
            with pytest.raises(ChatForeign):
                await command(engine)
            assert worker.running == (), name
        assert (await engine.state(CHAT, at=1)).control.version == 1
        fork = await engine.fork(CHAT)
        assert texts(await engine.state(fork.chat))[0] == "user: Hello"
    assert provider.requests == []
    assert gated.written[:-1] == []
    assert b"".join((await stored_log(any_base, CHAT)).lines()) == log
    await sound(any_base)


@pytest.mark.parametrize("as_id", [None, "here"])
@pytest.mark.parametrize("state", ["P0", "R0", "I0"])
async def test_an_adopted_log_runs_here(any_base: Store, clock: ManualClock, state: str, as_id: str | None) -> None:
    await imported(any_base, state, clock, as_id)
    chat = as_id or CHAT
    async with engine_on(GatedStore(any_base), ["Hi.", "Well."], poll=0.05) as engine:
        before = (await engine.state(chat)).control
        await engine.adopt(chat)
        finished = await settled(engine, chat)
        await engine.send_message(chat, "How are you?", command_id="s1")
        await settled(engine, chat)
        await engine.send_message(chat, "How are you?", command_id="s1")
        state_now = await settled(engine, chat)
    assert finished.control.status == "waiting"
    assert texts(finished) == ["user: Hello", *([] if state == "I0" else ["assistant: Hi."])]
    assert texts(state_now)[-2:] == ["user: How are you?", "assistant: Hi." if state == "I0" else "assistant: Well."]
    log = await sound(any_base, chat)
    adopted = next(r for r in log if r.event.type == "chat_adopted")
    assert state_now.control.epoch > before.epoch
    taken = [r for r in log if r.event.type == "acquired" and r.version > adopted.version]
    assert getattr(taken[0].event, "takeover", None) is (state != "P0")
    assert getattr(taken[0].event, "epoch", 0) == before.epoch + 2
    header = await any_base.load_header(ChatId(chat))
    assert header is not None
    assert not header.header.foreign


async def test_the_deadline_of_an_adopted_log_fires(base: Store, clock: ManualClock) -> None:
    await imported(base, "A0", clock)
    async with engine_on(GatedStore(base), ["Never mind."], tools=[ASK], poll=0.05) as engine:
        clock.advance(3600)
        await engine.adopt(CHAT)
        while (state := await settled(engine)).control.status != "waiting":
            clock.advance(1)
    assert texts(state)[-2:] == ["tool: result action_timed_out", "assistant: Never mind."]
    await sound(base)
