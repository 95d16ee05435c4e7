"""The engine at a service that signs thinking together with all that stood before it."""

from __future__ import annotations

import uuid

import pytest

from chatfold.testing.servers import Answer, Reasoning, Reply, Text, ToolCall
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
