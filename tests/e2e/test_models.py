"""How a model is configured and what reaches its service: efforts that chats choose, options, limits."""

from typing import Any

import pytest

from chatfold import Agent, Engine
from chatfold.testing.servers import Answer, Gate, Usage
from events.vocabulary import PolicyRecorded
from generation.agents import Limits
from generation.errors import AgentDeclarationError
from generation.models import ModelConfig
from generation.providers.openai_chat import OpenAIChatProvider
from tests.e2e.checks import check
from tests.e2e.kit import MODEL, Place, Scene, stage, texts

EFFORT = {
    "anthropic": lambda body: body.get("output_config", body.get("thinking", {})).get("effort"),
    "openai": lambda body: body.get("reasoning", {}).get("effort"),
    "openai-chat": lambda body: body.get("reasoning_effort"),
}
"""Where a service reads the effort."""


def efforts(scene: Scene) -> list[Any]:
    return [EFFORT[scene.place.provider](request.body) for request in scene.server.requests]


async def test_what_is_rewritten_in_the_queue_keeps_the_choices_of_its_turn(place: Place) -> None:
    """Whatever else happens to the queue: each turn has the effort that its own message was sent with, or rewritten."""
    gate = Gate()
    script = [Answer("Well.", gate=gate, gate_after=0), *(Answer("Well.") for _ in range(5))]
    async with stage(place, script, model=place.model(effort="medium", max_effort="max")) as scene:
        engine = scene.engine
        chat = await scene.start("one")
        await gate.reached()

        async def queue(text: str, effort: str | None, author: str) -> str:
            receipt = await engine.send_message(chat, text, effort=effort, author=author)
            return receipt.queued[0]

        low = await queue("two", "low", "ada")
        high = await queue("three", "high", "bob")
        gone = await queue("four", "max", "ada")
        bare = await queue("five", None, "bob")
        other = await queue("six", "medium", "ada")
        await engine.edit_queued(chat, low, "two, corrected")
        await engine.edit_queued(chat, other, "six, harder", effort="max")
        await engine.delete_queued(chat, gone)
        await engine.reorder_queue(chat, [bare, high, other, low])
        entries = [(entry.id, entry.effort, entry.message.author) for entry in await engine.queue(chat)]
        assert entries == [(bare, None, "bob"), (high, "high", "bob"), (other, "max", "ada"), (low, "low", "ada")]
        gate.release()
        state = await scene.settled(chat)
        assert texts(state, "user") == ["one", "five", "three", "six, harder", "two, corrected"]
        authors = [item.message.author for item in state.messages if item.message.role == "user"]
        assert authors == [None, "bob", "bob", "ada", "ada"]
        assert efforts(scene) == ["medium", "medium", "high", "max", "low"]
        await check(scene, chat)


async def test_an_edited_message_keeps_its_author(place: Place) -> None:
    async with stage(place, [Answer("One."), Answer("Two."), Answer("Three.")]) as scene:
        chat = await scene.start("Hi")
        await scene.settled(chat)
        sent = await scene.engine.send_message(chat, "And?", author="ada", command_id="k")
        await scene.settled(chat)
        await scene.engine.edit_message(chat, sent.messages[0], "And then?")
        state = await scene.settled(chat)
        assert [item.message.author for item in state.messages if item.message.role == "user"] == [None, "ada"]


async def test_a_chosen_effort_holds_up_to_the_most_that_is_allowed(place: Place) -> None:
    gate = Gate()
    script = [Answer("1", gate=gate, gate_after=0), *(Answer(str(number)) for number in range(2, 7))]
    model = place.model(effort="medium", max_effort="high")
    async with stage(place, script, model=model) as scene:
        chat = await scene.start("one")
        await gate.reached()
        # What waits in the queue brings its effort with it when its turn begins, and not before.
        await scene.engine.send_message(chat, "two", effort="low")
        await scene.engine.send_message(chat, "three")
        await scene.engine.send_message(chat, "four", effort="max")
        assert (await scene.control(chat)).effort is None
        gate.release()
        await scene.settled(chat)
        assert efforts(scene) == ["medium", "low", "low", "high"]
        assert (await scene.control(chat)).effort == "max"
        await scene.engine.set_model(chat, effort="low")
        await scene.engine.send_message(chat, "five")
        await scene.settled(chat)
        await scene.engine.set_model(chat, effort=None)
        await scene.engine.send_message(chat, "six")
        state = await scene.settled(chat)
        assert efforts(scene)[4:] == ["low", "medium"]
        policies = [policy.model for policy in state.need_transcript("policies").policies.values()]
        assert {(p.effort, p.effort_max) for p in policies if p is not None} == {
            ("medium", "high"),
            ("low", "high"),
            ("high", "high"),
        }
        await check(scene, chat)


async def test_an_effort_is_ignored_by_a_model_that_is_configured_without(place: Place) -> None:
    async with stage(place, [Answer("1"), Answer("2")]) as scene:
        chat = await scene.start("one", effort="max")
        await scene.settled(chat)
        await scene.engine.send_message(chat, "two", model=f"{place.provider}/another", effort="high")
        await scene.settled(chat)
        assert efforts(scene) == [None, None]
        assert (await scene.control(chat)).effort == "high"  # for when a model comes that heeds it


async def test_options_reach_the_service_with_answers_and_summaries(place: Place) -> None:
    options = {"user": "u7", "service_tier": "auto"}
    model = place.model(options=options, extra={"metadata": {"user_id": "u8"}} if place.provider == "anthropic" else {})
    async with stage(place, [Answer("One."), Answer("A summary.")], model=model) as scene:
        chat = await scene.start("Hello")
        await scene.settled(chat)
        await scene.engine.compact(chat)
        await scene.settled(chat)
        assert scene.server.refused == []
        for request in scene.server.requests:
            assert request.body["service_tier"] == "auto"
            if place.provider == "anthropic":
                assert request.body["metadata"] == {"user_id": "u8"}
            else:
                assert request.body["user"] == "u7"
        digests = [request.body.get("user") for request in scene.server.requests]
        assert digests[0] == digests[1]


async def test_summaries_have_the_options_of_the_model_that_writes_them(place: Place) -> None:
    writer = ModelConfig(
        provider=place.provider, name=MODEL, options={"user": "writer"}, effort="low", max_effort="low"
    )
    async with stage(
        place,
        [Answer("One."), Answer("A summary.")],
        model=place.model(options={"user": "speaker"}, effort="high", max_effort="high"),
        compaction_model=writer,
    ) as scene:
        chat = await scene.start("Hello")
        await scene.settled(chat)
        await scene.engine.compact(chat)
        state = await scene.settled(chat)
        sent = [request.body.get("user") or request.body["metadata"]["user_id"] for request in scene.server.requests]
        assert sent == ["speaker", "writer"]
        assert efforts(scene) == ["high", "low"]
        (policy,) = state.need_transcript("policies").policies.values()
        assert policy.model is not None
        assert policy.compaction_model is not None
        assert len({"", policy.model.options, policy.compaction_model.options}) == 3


async def test_a_fallback_limit_bounds_a_model_that_says_none(place: Place) -> None:
    script = [Answer("First.", usage=Usage(input=900)), Answer("A summary."), Answer("Second.")]
    async with stage(place, script, limits=Limits(fallback_context_limit=1000)) as scene:
        chat = await scene.start("One?")
        await scene.settled(chat)
        await scene.engine.send_message(chat, "Two?")
        state = await scene.settled(chat)
        assert state.control.indexes.boundary_kind == "chat_summarized"
        assert len(scene.server.requests) == 3


async def test_without_any_limit_nothing_is_compacted_by_itself(place: Place) -> None:
    script = [Answer("First.", usage=Usage(input=10**9)), Answer("Second.")]
    async with stage(place, script) as scene:
        chat = await scene.start("One?")
        await scene.settled(chat)
        await scene.engine.send_message(chat, "Two?")
        state = await scene.settled(chat)
        assert state.control.indexes.boundary_kind is None


async def test_options_are_checked_when_it_is_known_what_a_provider_speaks() -> None:
    mine = OpenAIChatProvider(base_url="http://127.0.0.1:1", api_key="k")
    model = ModelConfig(provider="mine", name="m", options={"truncation": "auto"})
    engine = Engine("memory://", [Agent(name="a", model=model)], providers={"mine": mine})
    with pytest.raises(AgentDeclarationError, match=r"mine/m: options\.truncation: openai-chat takes no such option"):
        async with engine:
            pass
    await mine.close()


async def test_the_recorded_policy_tells_that_options_changed(place: Place) -> None:
    found = []
    for seed in ("a", "b"):
        place_of_its_own = Place(provider=place.provider, url=place.url, agent=f"{place.agent}{seed}")
        model = place.model(options={"user": seed})
        async with stage(place_of_its_own, [Answer("x")], model=model) as scene:
            chat = await scene.start()
            await scene.settled(chat)
            recorded = [each.event for each in await scene.engine.events(chat)]
            found += [event.policy.model for event in recorded if isinstance(event, PolicyRecorded)]
    one, two = found
    assert one is not None
    assert two is not None
    assert one.options != two.options
    assert "user" not in one.options
