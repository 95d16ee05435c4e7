"""Compaction at the services: what its request shares with the turn's, what it asks for, and how it fails."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TypeVar

import pytest

from chatfold.stream import EventItem, PartItem, PreviewReset
from chatfold.testing.servers import Answer, Fail, Gate, Reasoning, RecordedRequest, Reply, Text, ToolCall, Usage
from events.vocabulary import AttemptStarted, CompactionCommitted, RetryScheduled, TurnFailed, TurnFinished
from generation.estimate import tokens_of
from generation.models import ModelConfig
from generation.parts import LiveSummary
from generation.prompt_texts import summary_instruction
from tests.e2e.checks import check
from tests.e2e.kit import MODEL, Place, Scene, stage, text_of, texts
from tests.e2e.tools import add

T = TypeVar("T")

OVER = Usage(input=900)
"""Usage over the threshold of `small`."""


def small(place: Place, **more: object) -> ModelConfig:
    return place.model(context_limit=1000, compaction_threshold=50, **more)


def raw(request: RecordedRequest, name: str) -> bytes | None:
    """Return the bytes of a field of a request's body, without the marks of what shall be cached."""
    text = re.sub(r',"cache_control":\{"type":"ephemeral"\}', "", request.raw.decode())
    start = text.find(f'"{name}":')
    if start < 0:
        return None
    start += len(name) + 3
    _, end = json.JSONDecoder().raw_decode(text, start)
    return text[start:end].encode()


def messages_of(place: Place) -> str:
    return "input" if place.provider == "openai" else "messages"


def limit_of(place: Place) -> str:
    return {"anthropic": "max_tokens", "openai": "max_output_tokens", "openai-chat": "max_tokens"}[place.provider]


async def of_kind(scene: Scene, chat: str, kind: type[T]) -> list[T]:
    return [each.event for each in await scene.engine.events(chat) if isinstance(each.event, kind)]


async def test_its_request_begins_with_the_bytes_of_the_turns(place: Place) -> None:
    """Tools, system and options are the same, and so are the messages up to the tail: the cached prefix serves."""
    options = {"openai": {"parallel_tool_calls": False}, "openai-chat": {"seed": 7}}.get(place.provider, {})
    model = place.model(
        context_limit=100_000,
        compaction_threshold=50,
        max_output=9_000,
        effort="low",
        max_effort="high",
        options=options,
    )
    script = [
        Answer([Reasoning("Easy."), Text("I add.")]),
        Answer([Reasoning("A sum."), ToolCall("add", {"a": 1, "b": 2})], usage=Usage(input=60_000)),
        Answer("They added."),
        Answer("Three."),
    ]
    async with stage(place, script, model=model, tools=[add], system="Be terse.") as scene:
        chat = await scene.start("Hello, año")
        await scene.settled(chat)
        await scene.engine.send_message(chat, "Sum?")
        await scene.settled(chat)
        _, turn, summary, _ = scene.server.requests
        name = messages_of(place)
        before, after = raw(turn, name), raw(summary, name)
        assert before is not None
        assert after is not None
        assert after.startswith(before[:-1] + b",")
        for same in ("tools", "system", "instructions"):
            assert raw(summary, same) == raw(turn, same)
        assert raw(summary, "tools") is not None
        rest = {"tools", "system", "instructions", name, "tool_choice"}
        assert {key: raw(summary, key) for key in summary.body if key not in rest} == {
            key: raw(turn, key) for key in turn.body if key not in rest
        }
        assert summary.body["tool_choice"] in ("none", {"type": "none"})
        assert summary.user_texts[-1].endswith(summary_instruction())
        await check(scene, chat)


TOO_LARGE: dict[str, dict[str, Fail]] = {
    "413": dict.fromkeys(("anthropic", "openai", "openai-chat"), Fail(413, "Request too large.")),
    "400": {
        "anthropic": Fail(400, "prompt is too long: 210000 tokens > 200000 maximum"),
        "openai": Fail(400, "Your input exceeds the context window of this model.", code="context_length_exceeded"),
        "openai-chat": Fail(400, "This model's maximum context length is 8192 tokens."),
    },
}


@pytest.mark.parametrize("status", TOO_LARGE)
async def test_a_request_that_is_too_large_is_made_once_more_without_tools(place: Place, status: str) -> None:
    script: list[Reply] = [
        Answer("First.", usage=OVER),
        TOO_LARGE[status][place.provider],
        Answer("They met."),
        Answer("Second."),
    ]
    async with stage(place, script, model=small(place), tools=[add]) as scene:
        chat = await scene.start("Hello")
        await scene.settled(chat)
        await scene.engine.send_message(chat, "And?")
        state = await scene.settled(chat)
        assert texts(state) == ["First.", "Second."]
        assert ["tools" in request.body for request in scene.server.requests] == [True, True, False, True]
        _, large, again, _ = scene.server.requests
        assert raw(again, messages_of(place)) == raw(large, messages_of(place))
        assert not await of_kind(scene, chat, RetryScheduled)
        kinds = [event.kind for event in await of_kind(scene, chat, AttemptStarted)]
        assert kinds == ["generate", "compact", "generate"]
        await check(scene, chat)


async def test_too_large_without_tools_too_fails_the_turn(place: Place) -> None:
    large = TOO_LARGE["400"][place.provider]
    async with stage(place, [Answer("First.", usage=OVER), large, large], model=small(place), tools=[add]) as scene:
        chat = await scene.start("Hello")
        await scene.settled(chat)
        await scene.engine.send_message(chat, "And?")
        state = await scene.settled(chat, "error")
        assert len(scene.server.requests) == 3
        assert state.control.last_error is not None
        assert (state.control.last_error.kind, state.control.last_error.retryable) == ("config", False)


@pytest.mark.parametrize("status", [429, 503])
async def test_other_failures_keep_the_tools_and_wait(place: Place, status: int) -> None:
    script: list[Reply] = [
        Answer("First.", usage=OVER),
        Fail(status, "The context window is too long."),
        Answer("They met."),
        Answer("Second."),
    ]
    async with stage(place, script, model=small(place), tools=[add]) as scene:
        chat = await scene.start("Hello")
        await scene.settled(chat)
        await scene.engine.send_message(chat, "And?")
        await scene.settled(chat)
        assert ["tools" in request.body for request in scene.server.requests] == [True] * 4
        assert len(await of_kind(scene, chat, RetryScheduled)) == 1
        await check(scene, chat)


async def test_a_stream_that_is_cut_gives_no_summary(place: Place) -> None:
    script: list[Reply] = [
        Answer("First.", usage=OVER),
        Answer("They met and then", cut_after=1),
        Answer("They met."),
        Answer("Second."),
    ]
    async with stage(place, script, model=small(place)) as scene:
        chat = await scene.start("Hello")
        await scene.settled(chat)
        await scene.engine.send_message(chat, "And?")
        state = await scene.settled(chat)
        assert texts(state) == ["First.", "Second."]
        assert len(await of_kind(scene, chat, RetryScheduled)) == 1
        (committed,) = await of_kind(scene, chat, CompactionCommitted)
        assert text_of(committed.added[0]).endswith("They met.")
        await check(scene, chat)


async def test_the_summary_is_asked_for_within_what_the_context_has_left(place: Place) -> None:
    model = place.model(context_limit=10_000, compaction_threshold=50)
    script = [Answer("First.", usage=Usage(input=9_000, output=100)), Answer("They met."), Answer("Second.")]
    async with stage(place, script, model=model) as scene:
        chat = await scene.start("Hello")
        await scene.settled(chat)
        await scene.engine.send_message(chat, "And?")
        await scene.settled(chat)
        turn, summary, last = (request.body.get(limit_of(place)) for request in scene.server.requests)
        assert summary == 10_000 - 9_000 - 100 - tokens_of(len(summary_instruction().encode()))
        assert last == turn
        await check(scene, chat)


async def test_a_chat_that_is_over_after_its_compaction_fails_with_advice(place: Place) -> None:
    script = [
        Answer("First.", usage=OVER),
        Answer("They met."),
        Answer([ToolCall("add", {"a": 1, "b": 2})], usage=OVER),
    ]
    async with stage(place, script, model=small(place), tools=[add]) as scene:
        chat = await scene.start("Hello")
        await scene.settled(chat)
        await scene.engine.send_message(chat, "Sum?")
        state = await scene.settled(chat, "error")
        assert len(scene.server.requests) == 3, "it is compacted once, and not again and again"
        (failed,) = await of_kind(scene, chat, TurnFailed)
        assert failed.decision is not None
        assert failed.decision.rule == "D9"
        error = state.control.last_error
        assert error is not None
        assert (error.kind, error.retryable) == ("config", False)
        assert error.message.text.endswith("Raise the limit, choose a model with a larger context, or open a new chat.")


async def test_those_who_watch_see_the_summary_and_a_queued_message_is_answered_after_it(place: Place) -> None:
    gate = Gate("the summary's first words were sent")
    script = [
        Answer("Paris."),
        Answer("They asked for a capital.", gate=gate, gate_after=1),
        Answer("Lyon."),
    ]
    async with stage(place, script) as scene:
        chat = await scene.start("Capital of France?")
        await scene.settled(chat)
        await scene.engine.compact(chat)
        watcher = scene.watchers[chat]
        await watcher.until(
            lambda items: any(isinstance(item, PartItem) and isinstance(item.part, LiveSummary) for item in items)
        )
        await scene.engine.send_message(chat, "The second city?")
        gate.release()
        state = await scene.settled(chat)
        assert texts(state) == ["Paris.", "Lyon."]
        finished = await of_kind(scene, chat, TurnFinished)
        causes = [event.cause for event in finished]
        assert causes == ["complete", "compacted", "complete"]
        await watcher.until_version(state.control.version)
        items = watcher.items
        written = [item.part for item in items if isinstance(item, PartItem) and isinstance(item.part, LiveSummary)]
        assert "".join(part.text for part in written) == "They asked for a capital."
        at = next(
            place
            for place, item in enumerate(items)
            if isinstance(item, EventItem) and isinstance(item.recorded.event, CompactionCommitted)
        )
        assert isinstance(items[at - 1], PreviewReset), "the event says what became of what was shown"
        await check(scene, chat)


async def test_a_model_of_another_provider_summarises_what_this_one_did(place: Place) -> None:
    other = "openai" if place.provider != "openai" else "anthropic"
    script = [
        Answer([Reasoning("A sum."), Text("I add."), ToolCall("add", {"a": 1, "b": 2})]),
        Answer([Reasoning("Easy."), Text("Three.")], usage=OVER),
        Answer("Second."),
    ]
    summaries: dict[str, Sequence[Reply]] = {other: [Answer("They added one and two.")]}
    async with stage(
        place, script, model=small(place), tools=[add], others=summaries, compaction_model=f"{other}/{MODEL}"
    ) as scene:
        chat = await scene.start("Sum?")
        await scene.settled(chat)
        await scene.engine.send_message(chat, "And?")
        state = await scene.settled(chat)
        assert texts(state) == ["I add.", "Three.", "Second."]
        (summary,) = scene.others[0].requests
        assert "tools" not in summary.body
        assert "tool_choice" not in summary.body
        assert [text for _, text in summary.tool_results] == ["3"]
        assert summary.seen.reasoning == (), "reasoning is its own provider's"
        await check(scene, chat)
