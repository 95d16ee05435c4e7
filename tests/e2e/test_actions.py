"""What the client owes and does not give: expiry."""

import pytest

from chatfold.testing.servers import Answer, ToolCall
from chatstate.errors import ActionStale, ToolResultsInvalid, TransitionNotAllowed
from events.vocabulary import ActionRequired
from generation.agents import Limits
from generation.tools.contract import client_tool
from tests.e2e.checks import check
from tests.e2e.kit import Place, outputs, stage, texts
from tests.e2e.tools import ASK


async def test_expired_action_goes_on(place: Place) -> None:
    script = [Answer([ToolCall("ask_client", {"question": "There?"})]), Answer("Nobody there.")]
    async with stage(place, script, tools=[ASK], limits=Limits(action_timeout=0.1, on_expiry="go_on")) as scene:
        chat = await scene.start("Go")
        state = await scene.until(chat, lambda control: control.status == "waiting")
        state_now = await scene.settled(chat)
        assert state.version == state_now.control.version
        assert outputs(state_now) == ["action_timed_out"]
        assert texts(state_now) == ["Nobody there."]
        await check(scene, chat)


async def test_expired_action_ends_the_turn(place: Place) -> None:
    script = [Answer([ToolCall("ask_client", {"question": "There?"})]), Answer("Late, but here.")]
    async with stage(place, script, tools=[ASK], limits=Limits(action_timeout=0.1, on_expiry="end_turn")) as scene:
        chat = await scene.start("Go")
        await scene.until(chat, lambda control: control.status == "waiting")
        state = await scene.settled(chat)
        assert outputs(state) == ["action_timed_out"]
        assert texts(state) == []
        await scene.engine.resume(chat)
        state = await scene.settled(chat)
        assert texts(state) == ["Late, but here."]
        await check(scene, chat)


async def test_the_earliest_deadline_and_the_strictest_ending_count(place: Place) -> None:
    brief = client_tool("brief", "Be brief.", {"type": "object", "properties": {}}, action_timeout=0.2)
    sign = client_tool("sign", "Sign.", {"type": "object", "properties": {}}, on_expiry="end_turn")
    script = [Answer([ToolCall("brief", {}), ToolCall("sign", {})]), Answer("Late, but here.")]
    async with stage(
        place, script, tools=[brief, sign], limits=Limits(action_timeout=3600, on_expiry="go_on")
    ) as scene:
        chat = await scene.start("Go")
        await scene.until(chat, lambda control: control.status == "waiting")
        state = await scene.settled(chat)
        assert outputs(state) == ["action_timed_out", "action_timed_out"]
        assert texts(state) == []
        (recorded,) = [e for e in await scene.engine.events(chat) if isinstance(e.event, ActionRequired)]
        assert isinstance(recorded.event, ActionRequired)
        assert recorded.event.deadline == recorded.envelope.recorded_at + 200_000
        assert recorded.event.on_expiry == "end_turn"
        late = {item.call: "late" for item in recorded.event.items if item.call is not None}
        with pytest.raises(TransitionNotAllowed):
            await scene.engine.submit_tool_results(chat, recorded.version, late)
        await scene.engine.resume(chat)
        await scene.settled(chat)
        await check(scene, chat)


async def test_an_answer_to_another_question_is_refused(place: Place) -> None:
    script = [
        Answer([ToolCall("ask_client", {"question": "One?"})]),
        Answer([ToolCall("ask_client", {"question": "Two?"})]),
        Answer("Thank you."),
    ]
    async with stage(place, script, tools=[ASK]) as scene:
        chat = await scene.start("Go")
        first = (await scene.settled(chat, "requires_action")).control.action
        assert first is not None
        answer = dict.fromkeys(first.client_calls, "here")
        await scene.engine.submit_tool_results(chat, first.id, answer)
        second = (await scene.settled(chat, "requires_action")).control.action
        assert second is not None
        before = (await scene.engine.state(chat)).control.version
        for action, given in ((first.id, answer), (second.id + 1, dict.fromkeys(second.client_calls, "here"))):
            with pytest.raises(ActionStale):
                await scene.engine.submit_tool_results(chat, action, given)
        with pytest.raises(ToolResultsInvalid, match="missing"):
            await scene.engine.submit_tool_results(chat, second.id, answer)
        assert (await scene.engine.state(chat)).control.version == before
        await scene.engine.submit_tool_results(chat, second.id, dict.fromkeys(second.client_calls, "here"))
        assert texts(await scene.settled(chat)) == ["Thank you."]
        await check(scene, chat)
