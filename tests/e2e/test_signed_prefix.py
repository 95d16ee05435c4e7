"""The engine at a service that signs thinking together with all that stood before it."""

from __future__ import annotations

import uuid

import pytest

from chatfold.testing.servers import Answer, Gate, Reasoning, Reply, Text, ToolCall
from chatfold.testing.servers.anthropic_prefix import Coverage
from chatfold.testing.servers.anthropic_server import AnthropicServer
from tests.e2e.checks import check
from tests.e2e.kit import Place, stage, texts
from tests.e2e.tools import add


@pytest.fixture
def place(url: str) -> Place:
    """Only this provider signs."""
    return Place(provider="anthropic", url=url, agent=f"agent-{uuid.uuid4().hex}")


@pytest.mark.parametrize("covers", ["messages", "request"])
async def test_what_was_signed_comes_back_behind_the_same(place: Place, covers: Coverage) -> None:
    script: list[Reply] = [
        Answer(
            [Reasoning("A sum."), Text("Adding."), ToolCall("add", {"a": 1, "b": 2}), ToolCall("add", {"a": 3, "b": 4})]
        ),
        Answer([Reasoning(redacted=True), Reasoning("And on."), ToolCall("add", {"a": 3, "b": 7})]),
        Answer([Reasoning("Done."), Text("It is ten.")]),
        Answer([Reasoning("Cut."), Text("Half an answer.")], cut_after=1),
        Answer([Reasoning("Thanks."), Text("You are welcome.")]),
        Answer([Reasoning("Last."), Text("Bye.")]),
    ]
    async with stage(place, script, tools=[add], system="Be brief.") as scene:
        assert isinstance(scene.server, AnthropicServer)
        scene.server.issued.covers = covers
        chat = await scene.start("Add.")
        await scene.settled(chat)
        await scene.engine.send_message(chat, "Thanks.")
        await scene.settled(chat)
        await scene.engine.send_message(chat, "Bye.")
        state = await scene.settled(chat)
        assert texts(state) == ["Adding.", "It is ten.", "You are welcome.", "Bye."]
        assert len(scene.server.requests[-1].seen.reasoning) == 5
        await check(scene, chat)


@pytest.mark.parametrize("covers", ["messages", "request"])
async def test_what_was_signed_behind_something_else_stays_away(place: Place, covers: Coverage) -> None:
    """After an interruption that a resume went on from, a compaction that was undone, an edit, an erasure, a fork."""
    gate = Gate()
    think = [Answer([Reasoning(f"Thought {number}."), Text(f"Answer {number}.")]) for number in range(9)]
    script: list[Reply] = [
        Answer([Reasoning("Begun."), Text("A long and winding answer to it.")], gate=gate, gate_after=3),
        *think[:3],
        Answer("A summary."),
        *think[3:],
    ]
    async with stage(place, script, tools=[add], system="Be brief.") as scene:
        assert isinstance(scene.server, AnthropicServer)
        scene.server.issued.covers = covers
        engine = scene.engine
        chat = await scene.start("First?")
        await gate.reached()
        await engine.interrupt(chat)
        await scene.settled(chat)
        gate.release()
        await engine.resume(chat)
        await scene.settled(chat)
        for text in ("Second?", "Third?"):
            await engine.send_message(chat, text)
            await scene.settled(chat)
        await engine.compact(chat)
        await scene.settled(chat)
        await engine.send_message(chat, "Fourth?")
        await scene.settled(chat)
        await engine.uncompact(chat)
        await engine.send_message(chat, "Fifth?")
        state = await scene.settled(chat)
        last = scene.server.requests[-1].seen.reasoning
        users = [item for item in state.messages if item.message.role == "user"]
        await engine.erase(chat, [users[1].id])
        await engine.send_message(chat, "Sixth?")
        state = await scene.settled(chat)
        after = scene.server.requests[-1].seen.reasoning
        fork = (await engine.fork(chat)).chat
        await engine.send_message(fork, "Seventh?")
        await scene.settled(fork)
        in_fork = scene.server.requests[-1].seen.reasoning
        await engine.edit_message(chat, users[-1].id, "Another fifth?")
        await scene.settled(chat)
        # All but the fourth, which came behind the summary; the first, which came before what was erased; it, and the
        # sixth, which came after that.
        assert (len(last), len(after), len(in_fork)) == (4, 1, 2)
        await check(scene, chat, fork)
