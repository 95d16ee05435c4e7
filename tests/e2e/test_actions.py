"""What the client owes and does not give: expiry."""

from chatfold.testing.servers import Answer, ToolCall
from generation.agents import Limits
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
