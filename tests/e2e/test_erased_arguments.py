"""A call whose arguments were erased before it ran does not run, neither with its defaults nor with the model's own."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from chatfold import Agent, ApprovalAnswer, Content, Engine, Settings, tool
from chatfold.hooks import PythonHook
from chatfold.testing import ScriptedProvider, UseTool, turn
from events.state import ChatState
from generation.tools.contract import Tool
from tests.e2e.hooked import Recording
from tests.e2e.kit import PATIENCE, outputs, results

GONE = "The arguments of this call were erased, and the tool was not run without them."


class Disk:
    """Tools whose default does harm, and what they were run with."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.begun = asyncio.Event()
        self.asked = Recording()

    def delete(self) -> Tool:
        @tool(needs_approval=True)
        def delete(path: str = "/") -> str:
            """Delete a file."""
            self.ran.append(path)
            return path

        return delete

    def wipe(self) -> Tool:
        @tool(crash="rerun")
        async def wipe(path: str = "/") -> str:
            """Wipe a disk."""
            self.ran.append(path)
            self.begun.set()
            await asyncio.Event().wait()
            return path

        return wipe

    def engine(self, folder: Path, made: Tool, model: ScriptedProvider, *, worker: bool = True) -> Engine:
        """An engine on the one database of a test."""
        agent = Agent(name="helper", model="scripted", tools=[made])
        hooks: list[PythonHook | Any] = [self.asked.at("pre_tool_use")]
        url, settings = f"sqlite:///{folder / 'chats.db'}", Settings(grace=0.05)
        return Engine(url, [agent], providers={"scripted": model}, worker=worker, hooks=hooks, settings=settings)


async def settled(engine: Engine, chat: str) -> ChatState:
    return await asyncio.wait_for(engine.settled(chat), PATIENCE)


async def erase_all(engine: Engine, chat: str) -> None:
    await engine.erase(chat, [item.id for item in (await engine.state(chat)).messages])


@pytest.mark.parametrize("changed", [None, '{"path": "/tmp/y"}'], ids=["as it was", "changed"])
@pytest.mark.parametrize("erased", ["before", "after"])
async def test_what_was_approved_does_not_run_once_it_is_erased(
    tmp_path: Path, erased: str, changed: str | None
) -> None:
    disk, model = Disk(), ScriptedProvider([turn(UseTool("delete", {"path": "/tmp/x"})), "Sorry."])
    async with disk.engine(tmp_path, disk.delete(), model) as engine:
        chat = (await engine.create_chat("helper", "Delete x")).chat
        action = (await settled(engine, chat)).control.action
        assert action is not None
    answer = ApprovalAnswer(call=action.to_approve[0], approved=True, arguments=Content(changed) if changed else None)
    async with disk.engine(tmp_path, disk.delete(), model, worker=False) as engine:
        if erased == "before":
            await erase_all(engine, chat)
        await engine.submit_tool_results(chat, action.id, approvals=[answer])
        if erased == "after":
            await erase_all(engine, chat)
    async with disk.engine(tmp_path, disk.delete(), model) as engine:
        state = await settled(engine, chat)
    (result,) = results(state)
    if erased == "before" and changed:  # what the person wrote then was not erased
        assert (disk.ran, result.is_error) == (["/tmp/y"], False)
        return
    assert disk.ran == []
    assert (result.is_error, outputs(state), result.rewritten, result.reason) == (True, [GONE], None, None)
    assert disk.asked.calls == []


async def test_a_call_that_was_left_open_does_not_run_again_once_it_is_erased(tmp_path: Path) -> None:
    disk, model = Disk(), ScriptedProvider([turn(UseTool("wipe", {"path": "/tmp/x"})), "Sorry."])
    async with disk.engine(tmp_path, disk.wipe(), model) as engine:
        chat = (await engine.create_chat("helper", "Wipe x")).chat
        await asyncio.wait_for(disk.begun.wait(), PATIENCE)
    async with disk.engine(tmp_path, disk.wipe(), model, worker=False) as engine:
        await erase_all(engine, chat)
    async with disk.engine(tmp_path, disk.wipe(), model) as engine:
        state = await settled(engine, chat)
    assert (disk.ran, outputs(state)) == (["/tmp/x"], [GONE])
