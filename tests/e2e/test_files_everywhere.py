"""Files of users, tools and clients in a conversation that goes from service to service: each is sent what it takes."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Sequence

import pytest

from chatfold import result
from chatfold.testing.servers import Answer, RecordedRequest, Reply, Text, ToolCall
from events.content import Content
from events.parts import FilePart, TextPart
from generation.models import ModelConfig
from generation.tools.contract import ToolOutput, client_tool, tool
from generation.tools.files import ToolFile
from tests.e2e.checks import check
from tests.e2e.kit import Place, stage, texts
from tests.e2e.test_request_limits import paper

SOURCES = ("user", "tool", "client")
PICTURES = {name: base64.b64encode(b"\x89PNG\r\n\x1a\n" + name.encode()).decode() for name in SOURCES}
PAPERS = {name: base64.b64encode(b"%PDF-1.7\n" + name.encode()).decode() for name in SOURCES[:2]}
CLAUDE, RESPONSES, CHAT, KEEPING = "anthropic/model-one", "openai/model-one", "openai-chat/model-one", "openai/keeping"


def scan(pages: int = 0) -> ToolOutput:
    """Scan a paper."""
    data = paper(pages).data.text if pages else PAPERS["tool"]
    files = [
        ToolFile(data, "application/pdf", "scan.pdf"),
        ToolFile(PICTURES["tool"], "image/png"),
        ToolFile(b"tool,rows", "text/csv"),
    ]
    return ToolOutput("Scanned.", media=files, attachments=[ToolFile(b"for people alone", "text/plain", "own.txt")])


ASK = client_tool("ask", "Ask the client.", {"type": "object", "properties": {}})


@pytest.fixture
def place() -> Place:
    return Place(provider="anthropic", url="memory://", agent=f"agent-{uuid.uuid4().hex}")


def held(request: RecordedRequest) -> set[str]:
    """Which files a request holds, each of them once."""
    raw = request.raw.decode()
    found = {f"picture of {name}": raw.count(data) for name, data in PICTURES.items()}
    found |= {f"paper of {name}": raw.count(data) for name, data in PAPERS.items()}
    found |= {text: raw.count(text) for text in ("user,rows", "tool,rows")}
    assert all(times in (0, 1) for times in found.values()), found
    assert "for people alone" not in raw
    assert base64.b64encode(b"for people alone").decode() not in raw
    return {name for name, times in found.items() if times}


OF_USER = {"picture of user", "paper of user", "user,rows"}
ALL = OF_USER | {"picture of tool", "paper of tool", "tool,rows", "picture of client"}


async def test_files_go_with_the_conversation_to_each_service(place: Place) -> None:
    calls: list[Reply] = [Answer([Text("Scanning."), ToolCall("scan", {}), ToolCall("ask", {})])]
    plain: list[Reply] = [Answer(f"Well, {number}.") for number in range(9)]
    others: dict[str, Sequence[Reply]] = {"openai": plain, "openai-chat": plain}
    models = [
        *(ModelConfig(provider=name.partition("/")[0], name="model-one") for name in (RESPONSES, CHAT)),
        ModelConfig(provider="openai", name="keeping", options={"store": True}),
    ]
    async with stage(place, [*calls, *plain], tools=[tool(scan), ASK], others=others, models=models) as scene:
        engine, (responses, completions) = scene.engine, scene.others
        data = base64.b64encode(b"user,rows").decode()
        chat = await scene.start(
            [
                TextPart(text=Content("Compare.")),
                FilePart(media_type="image/png", data=Content(PICTURES["user"])),
                FilePart(media_type="application/pdf", data=Content(PAPERS["user"])),
                FilePart(media_type="text/csv", data=Content(data)),
            ]
        )
        action = (await scene.settled(chat, "requires_action")).control.action
        assert action is not None
        (call,) = action.client_calls
        picture = ToolFile(PICTURES["client"], "image/png")
        await engine.submit_tool_results(chat, action.id, [result(call, "This.", media=[picture])])
        await scene.settled(chat)
        assert [held(request) for request in scene.server.requests] == [OF_USER, ALL]

        async def say(chat: str, model: str) -> set[str]:
            server = {CLAUDE: scene.server, CHAT: completions}.get(model, responses)
            before = len(server.requests)
            await engine.send_message(chat, f"And you, {model}?", model=model)
            await scene.settled(chat)
            assert len(server.requests) == before + 1
            return held(server.requests[-1])

        for model in (RESPONSES, CHAT, CLAUDE, KEEPING):
            assert await say(chat, model) == ALL, model
        # It goes on from the response that the service keeps: with all that is in it.
        assert await say(chat, KEEPING) == set()
        fork = (await engine.fork(chat)).chat
        for model in (KEEPING, CHAT, CLAUDE):
            assert await say(fork, model) == ALL, model
        await engine.compact(chat)
        await scene.settled(chat)
        for model in (CLAUDE, RESPONSES, CHAT):
            assert await say(chat, model) == set(), model
        await engine.uncompact(chat)
        for model in (RESPONSES, CHAT, CLAUDE):
            assert await say(chat, model) == ALL, model
        await check(scene, chat, fork)


async def test_pages_that_one_service_does_not_take_are_another_ones_and_go_with_a_summary(place: Place) -> None:
    """The limit is of all papers of a conversation, the user's and the tools'."""
    plain: list[Reply] = [Answer(f"Well, {number}.") for number in range(9)]
    calls: list[Reply] = [Answer([ToolCall("scan", {"pages": 60})])]
    models = [ModelConfig(provider="openai", name="model-one")]
    async with stage(place, [*calls, *plain], tools=[tool(scan)], others={"openai": plain}, models=models) as scene:
        engine = scene.engine
        chat = await scene.start([TextPart(text=Content("Compare.")), paper(41)])
        error = (await scene.settled(chat, "error")).control.last_error
        assert error is not None
        assert (
            error.message.text == "The PDFs of the conversation have 101 pages, and Anthropic takes 100. Remove some."
        )
        await engine.send_message(chat, "And you?", model=RESPONSES)
        assert texts(await scene.settled(chat)) == ["Well, 0."]
        await engine.send_message(chat, "And you again?", model=CLAUDE)
        await scene.settled(chat, "error")
        assert len(scene.server.requests) == 1
        await engine.set_model(chat, RESPONSES)
        await engine.compact(chat)
        await scene.settled(chat)
        await engine.send_message(chat, "Now?", model=CLAUDE)
        assert texts(await scene.settled(chat))[-1] == "Well, 0."
        await check(scene, chat)
