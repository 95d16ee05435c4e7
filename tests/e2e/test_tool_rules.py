"""Rules of tools through the whole engine: calls that must be alone, ends of turns, errors, files, budgets."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import pytest

from chatfold.inputs import result
from chatfold.stream import EventItem, PartItem, StreamItem
from chatfold.testing.servers import Answer, RecordedRequest, ToolCall
from events.content import Content
from events.records import ApprovalAnswer, Decision
from events.state import ChatState
from events.vocabulary import AttemptStarted, TurnFinished
from generation.parts import LiveResult
from generation.tools.contract import Tool, ToolOutput, client_tool, tool
from generation.tools.files import ToolFile
from tests.e2e.checks import check
from tests.e2e.kit import Place, Scene, calls, outputs, results, stage, texts
from tests.e2e.tools import ASK, Door, add

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
OBJECT: dict[str, Any] = {"type": "object", "properties": {}}
PICK = client_tool("pick", "Pick one.", OBJECT, exclusive=True)


def said(request: RecordedRequest) -> list[str]:
    """What the model reads of results."""
    return [text for _, text in request.tool_results]


async def decisions(scene: Scene, chat: str) -> list[Decision]:
    """The decisions to start something."""
    return [e.event.decision for e in await scene.engine.events(chat) if isinstance(e.event, AttemptStarted)]


def alone(name: str) -> Tool:
    """A local tool that must be alone; ``careful`` waits for approval too."""
    return Tool.from_function(lambda: "done alone", name=name, exclusive=True, needs_approval=name == "careful")


@pytest.mark.parametrize(
    ("exclusive", "others"),
    [
        ("solo", ["add", "ask_client"]),
        ("pick", ["add"]),
        ("pick", ["ask_client"]),
        ("careful", ["ask_client", "add"]),
        ("pick", ["pick"]),
    ],
    ids=str,
)
async def test_nothing_runs_beside_a_call_that_must_be_alone(place: Place, exclusive: str, others: list[str]) -> None:
    given: dict[str, dict[str, object]] = {"add": {"a": 1, "b": 2}, "ask_client": {"question": "Well?"}}
    first = [ToolCall(name, given.get(name, {})) for name in [exclusive, *others]]
    script = [Answer(first), Answer([ToolCall(exclusive, {})]), Answer("Thank you.")]
    tools = [alone("solo"), alone("careful"), PICK, ASK, add]
    async with stage(place, script, tools=tools) as scene:
        chat = await scene.start("Go")
        state = await scene.settled(chat, "waiting" if exclusive == "solo" else "requires_action")
        texts_of_refusals = said(scene.server.requests[1])
        assert len(texts_of_refusals) == len(first)
        assert f"{exclusive} must be called alone" in texts_of_refusals[0]
        for name, text in zip(others, texts_of_refusals[1:], strict=True):
            assert (f"{name} must be called alone" if name == exclusive else f"skipped because {exclusive}") in text
        assert all(part.is_error for part in results(state)[: len(first)])
        assert (await decisions(scene, chat))[1].facts["refused"] == len(first)
        action = state.control.action
        if action is not None:
            # Alone it runs, or is asked for: nothing else ever was.
            (item,) = action.items
            assert item.call is not None
            approvals = [ApprovalAnswer(call=call, approved=True) for call in action.to_approve]
            await scene.engine.submit_tool_results(
                chat, action.id, dict.fromkeys(action.client_calls, "picked"), approvals=approvals
            )
            state = await scene.settled(chat)
        assert outputs(state)[-1] == ("picked" if exclusive == "pick" else "done alone")
        assert texts(state) == ["Thank you."]
        await check(scene, chat)


async def test_a_stop_after_tool_ends_the_turn_unless_it_fails(place: Place) -> None:
    @tool(stop_after=True)
    def hand_over(to: str) -> ToolOutput:
        """Hand over."""
        return ToolOutput(f"to {to}", is_error=to == "nobody")

    script = [
        Answer([ToolCall("hand_over", {"to": "nobody"})]),
        Answer([ToolCall("hand_over", {"to": "ada"}), ToolCall("add", {"a": 1, "b": 2})]),
        Answer("After all."),
    ]
    async with stage(place, script, tools=[hand_over, add]) as scene:
        chat = await scene.start("Go")
        state = await scene.settled(chat)
        assert outputs(state) == ["to nobody", "to ada", 3]
        assert len(scene.server.requests) == 2
        ends = [e.event for e in await scene.engine.events(chat) if isinstance(e.event, TurnFinished)]
        assert [(end.cause, end.decision.rule) for end in ends] == [("stop_after_tool", "D4")]
        assert not state.control.owed
        await scene.engine.send_message(chat, "And now?")
        state = await scene.settled(chat)
        assert texts(state) == ["After all."]
        await check(scene, chat)


async def test_errors_of_tools_are_results_and_the_turn_goes_on(place: Place) -> None:
    @tool(timeout=0.05)
    async def sleeps() -> None:
        """Sleep."""
        await asyncio.Event().wait()

    @tool
    def raises() -> None:
        """Raise."""
        raise ValueError("broken \ud83d")

    @tool
    def gives_bytes() -> dict[str, bytes]:
        """Give bytes."""
        return {"raw": b"a\xffb"}

    script = [
        Answer(
            [
                ToolCall("nobody", {}),
                ToolCall("sleeps", {}),
                ToolCall("raises", {}),
                ToolCall("gives_bytes", {}),
                ToolCall("add", '{"a": 1, '),
                ToolCall("add", {"a": "x", "b": 2}),
                ToolCall("add", {"a": 1, "b": 2}),
            ]
        ),
        Answer("I see."),
    ]
    async with stage(place, script, tools=[sleeps, raises, gives_bytes, add], repeat_call_ids=True) as scene:
        chat = await scene.start("Go")
        state = await scene.settled(chat)
        found = results(state)
        assert [part.is_error for part in found] == [True, True, True, False, True, True, False]
        nobody, slept, raised, raw, broken, wrong, right = outputs(state)
        assert nobody == "Tool not found: nobody. Nothing was run."
        assert "0.05" in slept
        assert raised == "ValueError: broken \ufffd"
        assert (raw, found[3].repaired) == ({"raw": "a\ufffdb"}, ("$.raw",))
        assert broken.startswith("The arguments are not valid")
        assert "$.a" in wrong
        assert right == 3
        assert len(said(scene.server.requests[1])) == 7
        assert texts(state) == ["I see."]
        await check(scene, chat)


async def test_live_results_come_in_the_order_of_the_calls(place: Place) -> None:
    doors = [Door(name) for name in ("first", "second", "third")]
    script = [Answer([ToolCall(door.name, {"to": "go"}) for door in doors]), Answer("All.")]
    async with stage(place, script, tools=[door.tool() for door in doors]) as scene:
        chat = await scene.start("Go")
        for door in doors:
            await door.until_begun()
        await until_tools_run(scene, chat)
        for last, door in enumerate(reversed(doors)):
            door.opened.set()
            await scene.until(chat, lambda control, n=last: _recorded(control) > n or control.status == "waiting")  # type: ignore[misc]
        state = await scene.settled(chat)
        watcher = scene.watchers[chat]
        await watcher.until_version(state.control.version)
        shown = live_results(watcher.items)
        assert [part.name for part in shown] == ["first", "second", "third"]
        ended = [part.ended_at or 0 for part in shown]
        assert ended == sorted(ended, reverse=True)
        assert ended == [part.ended_at for part in results(state)]
        events = [e.event for e in await scene.engine.events(chat) if e.event.type == "tool_result_recorded"]
        assert [event.result.call[-1] for event in events] == ["2", "1", "0"]  # type: ignore[union-attr]
        assert outputs(state) == ["first to go", "second to go", "third to go"]
        await check(scene, chat)


async def until_tools_run(scene: Scene, chat: str) -> None:
    """Wait until the watcher knows that tools run: it shows all that they give from then on."""

    def started(items: list[StreamItem]) -> bool:
        events = [item.recorded.event for item in items if isinstance(item, EventItem)]
        return any(isinstance(event, AttemptStarted) and event.kind == "tools" for event in events)

    await scene.watchers[chat].until(started)


def live_results(items: list[StreamItem]) -> list[LiveResult]:
    """The results that were shown before their commit."""
    parts = [item.part for item in items if isinstance(item, PartItem)]
    return [part for part in parts if isinstance(part, LiveResult)]


def _recorded(control: Any) -> int:
    return sum(call.recorded for call in control.indexes.open_calls)


def files_in(place: Place, request: RecordedRequest) -> list[str]:
    """Where the request holds the image of a result."""
    if place.provider == "anthropic":
        blocks = [
            block
            for message in request.body["messages"]
            for block in message["content"]
            if block["type"] == "tool_result"
        ]
        return [part["source"]["data"] for block in blocks for part in block["content"] if part["type"] == "image"]
    if place.provider == "openai":
        items = [item["output"] for item in request.body["input"] if item["type"] == "function_call_output"]
        return [part["image_url"].partition(",")[2] for item in items for part in item if part["type"] == "input_image"]
    contents = [one["content"] for one in request.body["messages"] if one["role"] == "user"]
    parts = [part for content in contents if isinstance(content, list) for part in content]
    return [part["image_url"]["url"].partition(",")[2] for part in parts if part["type"] == "image_url"]


async def test_files_of_a_tool_and_of_the_client_reach_the_model(place: Place) -> None:
    watched = asyncio.Event()

    @tool
    async def screenshot() -> ToolOutput:
        """Take a picture."""
        await watched.wait()
        media = [ToolFile(base64.b64decode(PNG), "image/png", "page.png"), ToolFile(b"hello notes", "text/plain")]
        return ToolOutput("The page.", media=media, attachments=[ToolFile(b"a,b", "text/csv", "rows.csv")])

    script = [
        Answer([ToolCall("screenshot", {})]),
        Answer([ToolCall("ask_client", {"question": "What do you see?"})]),
        Answer("Two pictures."),
        Answer("Yes."),
    ]
    async with stage(place, script, tools=[screenshot, ASK]) as scene:
        chat = await scene.start("Look")
        await until_tools_run(scene, chat)
        watched.set()
        action = (await scene.settled(chat, "requires_action")).control.action
        assert action is not None
        (call,) = action.client_calls
        picture = ToolFile(PNG, "image/png")
        await scene.engine.submit_tool_results(chat, action.id, [result(call, "This.", media=[picture])])
        await scene.settled(chat)
        await scene.engine.send_message(chat, "Sure?")
        state = await scene.settled(chat)
        own, clients = results(state)
        assert [(file.media_type, file.data.text) for file in clients.media] == [("image/png", PNG)]
        assert [file.media_type for file in own.media] == ["image/png", "text/plain"]
        assert [(file.name.text, file.data.text) for file in own.attachments if file.name] == [("rows.csv", "YSxi")]
        assert [len(files_in(place, request)) for request in scene.server.requests] == [0, 1, 2, 2]
        assert files_in(place, scene.server.requests[-1]) == [PNG, PNG]
        raw = scene.server.requests[-1].raw.decode()
        assert "hello notes" in raw
        assert "YSxi" not in raw
        watcher = scene.watchers[chat]
        await watcher.until_version(state.control.version)
        (shown,) = live_results(watcher.items)
        assert [(file.media_type, file.name) for file in shown.media] == [
            ("image/png", "page.png"),
            ("text/plain", None),
        ]
        assert [file.name for file in shown.attachments] == ["rows.csv"]
        await check(scene, chat)


async def test_the_model_is_told_what_arguments_an_approval_changed(place: Place) -> None:
    door = Door("door")
    door.opened.set()
    script = [
        Answer([ToolCall("door", {"to": "in"}), ToolCall("door", {"to": "out"})]),
        Answer("Fine."),
    ]
    async with stage(place, script, tools=[door.tool(needs_approval=True)]) as scene:
        chat = await scene.start("Go")
        action = (await scene.settled(chat, "requires_action")).control.action
        assert action is not None
        first, second = action.to_approve
        approvals = [
            ApprovalAnswer(call=first, approved=True, arguments=Content('{"to": "up"}')),
            ApprovalAnswer(call=second, approved=True, arguments=Content('{ "to":"out" }')),
        ]
        await scene.engine.submit_tool_results(chat, action.id, approvals=approvals)
        state = await scene.settled(chat)
        assert outputs(state) == ["door to up", "door to out"]
        assert [part.rewritten.text if part.rewritten else None for part in results(state)] == ['{"to": "up"}', None]
        assert [part.arguments.text for part in calls(state)] == [json.dumps({"to": "in"}), json.dumps({"to": "out"})]
        changed, same = said(scene.server.requests[1])
        assert changed == '[The arguments of this call were changed to: {"to": "up"}]\n\ndoor to up'
        assert same == "door to out"
        await check(scene, chat)


def offered(request: RecordedRequest) -> list[str]:
    """Names of the tools that the model was offered."""
    tools: list[dict[str, Any]] = request.body.get("tools", [])
    return [each["name"] if "name" in each else each["function"]["name"] for each in tools]


async def test_tools_that_are_not_active_are_not_offered_and_not_run(place: Place) -> None:
    door = Door("door")
    script = [
        Answer(
            [
                ToolCall("ask_client", {"question": "?"}),
                ToolCall("door", {"to": "in"}),
                ToolCall("add", {"a": 1, "b": 1}),
            ]
        ),
        Answer("Two."),
        Answer([ToolCall("ask_client", {"question": "?"})]),
        Answer("Thank you."),
        Answer("Only that."),
        Answer("All."),
    ]
    tools = [ASK, door.tool(needs_approval=True), add]
    async with stage(place, script, tools=tools, active_tools=["add"]) as scene:
        chat = await scene.start("Go")
        state = await scene.settled(chat)
        assert outputs(state) == [
            "Tool not active in this turn: ask_client. Nothing was run.",
            "Tool not active in this turn: door. Nothing was run.",
            2,
        ]
        assert [tool.name for tool in _policy(state).tools] == ["add"]
        await scene.engine.set_active_tools(chat, ["ask_client"])
        await scene.engine.send_message(chat, "Ask")
        action = (await scene.settled(chat, "requires_action")).control.action
        assert action is not None
        await scene.engine.submit_tool_results(chat, action.id, dict.fromkeys(action.client_calls, "here"))
        await scene.settled(chat)
        await scene.engine.set_active_tools(chat, None)
        await scene.engine.send_message(chat, "And?")
        await scene.settled(chat)
        await scene.engine.set_active_tools(chat, [])
        await scene.engine.send_message(chat, "And?")
        state = await scene.settled(chat)
        assert [offered(request) for request in scene.server.requests] == [
            ["add"],
            ["add"],
            ["ask_client"],
            ["ask_client"],
            ["add"],
            ["add", "ask_client", "door"],
        ]
        assert door.runs == 0
        fork = (await scene.engine.fork(chat)).chat
        assert (await scene.engine.state(fork)).control.active_tools == ()
        await check(scene, chat)


def _policy(state: ChatState) -> Any:
    return state.need_transcript("policy").policies[state.control.policy]


async def test_a_long_result_is_cut_whoever_gave_it(place: Place) -> None:
    @tool
    def reads() -> str:
        """Read."""
        return "a" * 30_000 + "z" * 30_000

    script = [Answer([ToolCall("reads", {}), ToolCall("ask_client", {"question": "?"})]), Answer("Long.")]
    model = place.model(context_limit=1000)
    async with stage(place, script, tools=[reads, ASK], model=model) as scene:
        chat = await scene.start("Go")
        action = (await scene.settled(chat, "requires_action")).control.action
        assert action is not None
        assert action.result_budget == 16 * 1024
        long = {"text": "a" * 30_000 + "z" * 30_000}
        await scene.engine.submit_tool_results(chat, action.id, dict.fromkeys(action.client_calls, long))
        state = await scene.settled(chat)
        for part in results(state):
            assert part.output is not None
            assert 16_000 < part.output.size <= 16 * 1024
            assert "bytes of this result were left out here" in part.output.text
        await check(scene, chat)
