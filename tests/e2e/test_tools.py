"""Tools: two at once, one here and one at the client, the same ids in every turn, the limit of steps."""

from chatfold.inputs import result
from chatfold.testing.servers import Answer, Text, ToolCall
from events.records import ApprovalAnswer
from generation.agents import Limits
from tests.e2e.checks import check
from tests.e2e.kit import Place, calls, event_types, outputs, results, stage, texts
from tests.e2e.tools import ASK, Door, add


async def test_two_parallel_tools_end_in_the_other_order(place: Place) -> None:
    first, second = Door("first"), Door("second")
    answers = [
        Answer([Text("Both."), ToolCall("first", {"to": "left"}), ToolCall("second", {"to": "right"})]),
        Answer("Done."),
    ]
    async with stage(place, answers, tools=[first.tool(), second.tool()]) as scene:
        chat = await scene.start("Go")
        await first.until_begun()
        await second.until_begun()
        second.opened.set()
        await scene.until(chat, lambda control: any(call.recorded for call in control.indexes.open_calls))
        first.opened.set()
        state = await scene.settled(chat)
        assert outputs(state) == ["first to left", "second to right"]
        recorded = [e.event for e in await scene.engine.events(chat) if e.event.type == "tool_result_recorded"]
        assert [event.result.call[-1] for event in recorded] == ["2", "1"]  # type: ignore[union-attr]
        assert [text for _, text in scene.server.requests[1].tool_results] == ["first to left", "second to right"]
        assert texts(state) == ["Both.", "Done."]
        await check(scene, chat)


async def test_local_and_client_tool_in_one_answer(place: Place) -> None:
    answers = [
        Answer([ToolCall("ask_client", {"question": "Where?"}), ToolCall("add", {"a": 1, "b": 2})]),
        Answer("Thank you."),
    ]
    async with stage(place, answers, tools=[ASK, add]) as scene:
        chat = await scene.start("Go")
        state = await scene.settled(chat, "requires_action")
        action = state.control.action
        assert action is not None
        assert [item.kind for item in action.items] == ["client_call"]
        call = action.items[0].call
        assert call is not None
        await scene.engine.submit_tool_results(chat, action.id, {call: {"place": "here"}})
        state = await scene.settled(chat)
        # History has the results as they came; the model reads them in the order of the calls.
        given = [text for _, text in scene.server.requests[1].tool_results]
        assert ["here" in text for text in given] == [True, False]
        assert len(results(state)) == 2
        assert texts(state) == ["Thank you."]
        await check(scene, chat)


async def test_call_ids_repeat_in_every_turn(place: Place) -> None:
    script = [
        Answer([ToolCall("add", {"a": 1, "b": 1}), ToolCall("add", {"a": 1, "b": 2})]),
        Answer([ToolCall("add", {"a": 2, "b": 2})]),
        Answer("Four."),
        Answer([ToolCall("add", {"a": 4, "b": 4})]),
        Answer("Eight."),
    ]
    async with stage(place, script, tools=[add], repeat_call_ids=True) as scene:
        chat = await scene.start("Count")
        await scene.settled(chat)
        await scene.engine.send_message(chat, "On")
        state = await scene.settled(chat)
        assert {part.provider_call_id for part in calls(state)} == {"call_1", "call_2"}
        assert outputs(state) == [2, 3, 4, 8]
        given = scene.server.requests[-1].tool_results
        assert [text for _, text in given] == ["2", "3", "4", "8"]
        assert len({identity for identity, _ in given}) == 4
        assert texts(state) == ["Four.", "Eight."]
        await check(scene, chat)


async def test_approval_given_and_refused(place: Place) -> None:
    door = Door("door")
    door.opened.set()
    script = [
        Answer([ToolCall("door", {"to": "in"}), ToolCall("door", {"to": "out"})]),
        Answer("One of them."),
    ]
    async with stage(place, script, tools=[door.tool(needs_approval=True)]) as scene:
        chat = await scene.start("Go")
        state = await scene.settled(chat, "requires_action")
        assert door.runs == 0
        action = state.control.action
        assert action is not None
        keys = [item.call for item in action.items if item.call is not None]
        approvals = [ApprovalAnswer(call=keys[0], approved=True), ApprovalAnswer(call=keys[1], approved=False)]
        await scene.engine.submit_tool_results(chat, action.id, approvals=approvals)
        state = await scene.settled(chat)
        assert door.runs == 1
        assert {(part.call, part.is_error) for part in results(state)} == {(keys[0], False), (keys[1], True)}
        assert next(text for _, text in scene.server.requests[1].tool_results) == "door to in"
        assert texts(state) == ["One of them."]
        await check(scene, chat)


async def test_max_steps_then_resume(place: Place) -> None:
    script = [
        Answer([ToolCall("add", {"a": 1, "b": 1})]),
        Answer([ToolCall("add", {"a": 2, "b": 2})]),
        Answer("Four."),
    ]
    async with stage(place, script, tools=[add], limits=Limits(max_steps=1)) as scene:
        chat = await scene.start("Count")
        for steps in (1, 2):
            state = await scene.settled(chat)
            assert len(calls(state)) == steps
            assert state.control.owed
            await scene.engine.resume(chat)
        state = await scene.settled(chat)
        assert texts(state) == ["Four."]
        assert not state.control.owed
        watcher = scene.watchers[chat]
        await watcher.until_version(state.control.version)
        assert event_types(watcher.items).count("turn_finished") == 3
        await check(scene, chat)


async def test_client_error_result_goes_on(place: Place) -> None:
    script = [Answer([ToolCall("ask_client", {"question": "Ready?"})]), Answer("Sorry.")]
    async with stage(place, script, tools=[ASK]) as scene:
        chat = await scene.start("Go")
        state = await scene.settled(chat, "requires_action")
        action = state.control.action
        assert action is not None
        call = action.items[0].call
        assert call is not None
        await scene.engine.submit_tool_results(chat, action.id, [result(call, "no", is_error=True)])
        state = await scene.settled(chat)
        assert [part.is_error for part in results(state)] == [True]
        await check(scene, chat)
