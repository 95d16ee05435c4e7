"""Failures of the service: retried after what it asks for, after a cut, and given up at last."""

from chatfold.stream import PreviewReset
from chatfold.testing.servers import Answer, Drop, Fail, Reply
from events.vocabulary import RetryScheduled
from generation.agents import Limits
from tests.e2e.checks import check
from tests.e2e.kit import Place, Scene, stage, texts


async def _retries(scene: Scene, chat: str) -> list[RetryScheduled]:
    return [each.event for each in await scene.engine.events(chat) if isinstance(each.event, RetryScheduled)]


async def test_429_waits_as_long_as_asked(place: Place) -> None:
    script: list[Reply] = [Fail(429, headers={"retry-after-ms": "200"}), Fail(429), Answer("Here.")]
    async with stage(place, script) as scene:
        chat = await scene.start("Hello")
        state = await scene.settled(chat)
        assert texts(state) == ["Here."]
        first, second = await _retries(scene, chat)
        assert (first.delay_us, second.delay_us) == (200_000, 100_000)
        assert first.error.status_code == 429
        assert first.error.retry_after_us == 200_000
        starts = [each for each in await scene.engine.events(chat) if each.event.type == "attempt_started"]
        assert starts[1].envelope.recorded_at >= first.not_before
        await check(scene, chat)


async def test_cut_stream_is_tried_again(place: Place) -> None:
    script: list[Reply] = [
        Answer("An answer that is cut in its middle.", cut_after=2),
        Drop(),
        Answer("A whole answer."),
    ]
    async with stage(place, script) as scene:
        chat = await scene.start("Hello")
        state = await scene.settled(chat)
        assert texts(state) == ["A whole answer."]
        assert len(await _retries(scene, chat)) == 2
        watcher = scene.watchers[chat]
        await watcher.until_version(state.control.version)
        assert sum(isinstance(item, PreviewReset) for item in watcher.items) <= 1
        await check(scene, chat)


async def test_error_in_the_middle_of_a_stream(place: Place) -> None:
    script: list[Reply] = [Answer("An answer that fails.", fail=Fail(500), fail_after=1), Answer("Fine.")]
    async with stage(place, script) as scene:
        chat = await scene.start("Hello")
        state = await scene.settled(chat)
        assert texts(state) == ["Fine."]
        assert len(await _retries(scene, chat)) == 1
        await check(scene, chat)


async def test_budget_of_attempts_spent_then_resume(place: Place) -> None:
    script: list[Reply] = [Fail(500), Fail(500), Fail(401), Answer("At last.")]
    async with stage(place, script, limits=Limits(max_model_attempts=2)) as scene:
        chat = await scene.start("Hello")
        state = await scene.settled(chat, "error")
        assert len(await _retries(scene, chat)) == 1
        assert state.control.last_error is not None
        assert state.control.last_error.message.text.endswith("Given up after 2 attempts; try again later.")
        await scene.engine.resume(chat)
        state = await scene.settled(chat, "error")
        assert state.control.last_error is not None
        assert state.control.last_error.kind == "auth"
        assert "attempt" not in state.control.last_error.message.text
        await scene.engine.send_message(chat, "Again")
        state = await scene.settled(chat)
        assert texts(state) == ["At last."]
        await check(scene, chat)
