"""Hooks over HTTP in many chats at once: slow, broken and denying ones, with approvals and client-run tools."""

from __future__ import annotations

import asyncio
import json
import threading
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from chatfold.hooks import HttpHook
from chatfold.testing.servers import Answer, RecordedRequest, Reply, Text, ToolCall
from events.content import Content
from events.records import ApprovalAnswer
from events.state import ChatState
from generation.tools.contract import Tool, client_tool
from tests.e2e.checks import check
from tests.e2e.kit import PATIENCE, Place, outputs, stage, texts
from tests.generation.hooks.service import hook_service

NAMES = ("slow", "failing", "garbage", "moving", "denying", "rewriting", "adding", "silent")

ASK = client_tool("ask", "Ask the client.", {"type": "object", "properties": {}})


@pytest.fixture
def here(tmp_path: Path) -> Place:
    return Place(provider="openai", url=f"sqlite:///{tmp_path / 'chats.db'}", agent=f"agent-{uuid.uuid4().hex}")


OTHERWISE_APPROVED = (
    "Not run: it was approved, but it may run with other arguments only, and a call runs with those that were approved "
    'or not at all. To have these approved, call it again with them: {"name":"\u00fc"}'
)


def respond(call: dict[str, Any]) -> tuple[int, bytes]:
    """Answer as the chat's name says."""
    match call["chat"].partition("-")[0]:
        case "slow":
            threading.Event().wait(0.05)
            return 200, b"{}"
        case "failing":
            return 500, b"{}"
        case "garbage":
            return 200, b'{"context": '
        case "moving":
            return 302, b""
        case "denying":
            return 200, json.dumps({"deny": "Nein, \U0001f600."}).encode()
        case "rewriting":
            return 200, json.dumps({"input": {"name": "\u00fc"}}).encode()
        case "adding":
            return 200, json.dumps({"context": "Ein \u2028 Wort."}).encode()
        case _:
            return 204, b""


def script(request: RecordedRequest) -> Reply:
    """Call three tools (one that runs, one that is approved, one that the client runs), then answer."""
    if request.tool_results:
        return Answer("Done.")
    return Answer(
        [Text("Calling."), ToolCall("greet", {"name": "x"}), ToolCall("grant", {"name": "y"}), ToolCall("ask")]
    )


async def test_many_chats_at_once(here: Place) -> None:
    ran: Counter[str] = Counter()

    async def greet(name: str) -> str:
        ran[name] += 1
        return f"Hello {name}"

    tools = [Tool.from_function(greet), Tool.from_function(greet, name="grant", needs_approval=True), ASK]
    with hook_service(respond) as service:
        async with stage(here, script, tools=tools, hooks=[HttpHook(service.url, ["pre_tool_use"])]) as scene:

            async def hold(chat: str) -> ChatState:
                await scene.engine.create_chat(here.agent, "Go", chat_id=chat)
                state = await scene.engine.settled(chat)
                while state.control.status == "requires_action":
                    action = state.control.action
                    assert action is not None
                    await scene.engine.submit_tool_results(
                        chat,
                        action.id,
                        {item.call: "said" for item in action.items if item.call and item.kind != "approval"},
                        approvals=[
                            ApprovalAnswer(call=item.call, approved=True, arguments=Content('{"name": "z"}'))
                            for item in action.items
                            if item.call and item.kind == "approval"
                        ],
                    )
                    state = await scene.engine.settled(chat)
                return state

            chats = [f"{name}-{number}" for name in NAMES for number in range(3)]
            async with asyncio.timeout(PATIENCE):
                states = dict(zip(chats, await asyncio.gather(*map(hold, chats)), strict=True))
            for chat, state in states.items():
                name = chat.partition("-")[0]
                if name in ("failing", "garbage", "moving"):
                    assert state.control.last_error is not None
                    assert state.control.last_error.kind == "hook_dispatch_failed"
                    assert texts(state) == ["Calling."]
                else:
                    assert state.control.status == "waiting", (chat, state.control.last_error)
                    assert texts(state) == ["Calling.", "Done."]
                    assert outputs(state) == {
                        "denying": ["Not run: Nein, \U0001f600.", "said", "Not run: Nein, \U0001f600."],
                        "rewriting": ["Hello \u00fc", "said", OTHERWISE_APPROVED],
                    }.get(name, ["Hello x", "said", "Hello z"])
            # In failed ones the other calls are still open.
            await check(scene, *(chat for chat, state in states.items() if state.control.status == "waiting"))
    assert ran == {"x": 9, "z": 9, "\u00fc": 3}, "what was denied, or not asked about, did not run"
    ids = Counter(call["id"] for call in service.calls)
    assert max(ids.values()) == 1
    assert {call["facts"]["tool"] for call in service.calls} == {"greet", "grant"}


async def test_a_turn_that_is_cancelled_while_a_service_is_asked_runs_nothing(here: Place) -> None:
    asked, go = threading.Event(), threading.Event()
    ran = 0

    async def greet(name: str) -> str:
        nonlocal ran
        ran += 1
        return name

    def hang(_: dict[str, Any]) -> tuple[int, bytes]:
        asked.set()
        go.wait(PATIENCE)
        return 204, b""

    with hook_service(hang) as service:
        hook = HttpHook(service.url, ["pre_tool_use"], timeout=PATIENCE)
        script: list[Reply] = [Answer([ToolCall("greet", {"name": "x"})]), Answer("Well.")]
        async with stage(here, script, tools=[Tool.from_function(greet)], hooks=[hook]) as scene:
            chat = await scene.start("Go")
            await asyncio.to_thread(asked.wait, PATIENCE)
            await scene.engine.interrupt(chat)
            await scene.settled(chat)
            go.set()
            await scene.engine.send_message(chat, "Go on")
            state = await scene.settled(chat)
            assert texts(state) == ["Well."]
            assert ran == 0
            await check(scene, chat)
