"""The compact effect: which model is asked, what becomes of one that cannot be used, and what those who watch see."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from chatfold.engine import Engine
from chatfold.settings import Settings
from chatfold.testing import Turn, turn
from events.messages import Usage
from events.paths import contents
from events.vocabulary import AttemptStarted, CompactionCommitted, Event, RetryScheduled, TurnFailed
from generation.agents import Agent
from generation.errors import ClassifiedError, ErrorKind, MissingExtra
from generation.models import ModelConfig
from generation.parts import LivePart, LiveResult, LiveSummary
from generation.prompt_types import ModelRequest, PromptText
from generation.providers.contract import Provider
from generation.providers.script import Cut, Fail, Say, Script, Think, Wait
from generation.providers.scripted import ScriptedProvider
from generation.tools.contract import tool
from store import open_store

CHAT = "chat"
OVER = turn("The first answer.", usage=Usage(input=900, output=10))
"""An answer after which the chat is to be compacted."""
SETTINGS = Settings(model_retry_unit=0.001)


@tool
async def look() -> str:
    """Look."""
    return "seen"


@dataclass(kw_only=True)
class Talk:
    """A chat of two turns, between which it is compacted."""

    engine: Engine
    own: ScriptedProvider
    shown: list[LivePart]

    async def events(self) -> list[Event]:
        return [each.event for each in await self.engine.events(CHAT)]

    async def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in await self.events() if isinstance(event, kind)]

    async def say(self, text: str) -> str:
        await self.engine.send_message(CHAT, text)
        return (await self.engine.settled(CHAT)).control.status


@asynccontextmanager
async def talk(
    script: Script, *, compaction: str | ModelConfig | None = None, others: Mapping[str, Provider] | None = None
) -> AsyncIterator[Talk]:
    own = ScriptedProvider(script)
    model = ModelConfig(provider="scripted", name="m", context_limit=1000)
    agent = Agent(name="a", model=model, compaction_model=compaction, tools=[look])
    store = open_store("memory://")
    async with Engine(store, [agent], providers={"scripted": own, **(others or {})}, settings=SETTINGS) as engine:
        shown: list[LivePart] = []
        add = engine.runtime.parts.add

        def kept(key: Any, part: LivePart) -> int | None:
            shown.append(part)
            return add(key, part)

        engine.runtime.parts.add = kept  # type: ignore[method-assign]
        await engine.create_chat("a", "Hi", chat_id=CHAT)
        await engine.settled(CHAT)
        shown.clear()
        yield Talk(engine=engine, own=own, shown=shown)


def asks_for_summary(request: ModelRequest) -> bool:
    part = request.messages[-1].parts[-1]
    return isinstance(part, PromptText) and "write a summary" in part.text


def failing(kind: ErrorKind, **more: Any) -> Turn:
    return turn(Fail(ClassifiedError(kind=kind, message=f"It is {kind}.", provider="other", **more)))


async def test_without_a_compaction_model_the_chats_own_is_asked() -> None:
    async with talk([OVER, "They met.", "Go on then."]) as chat:
        assert await chat.say("And?") == "waiting"
        first, summary, last = chat.own.requests
        assert [asks_for_summary(request) for request in (first, summary, last)] == [False, True, False]
        assert (summary.model, summary.tools, summary.tool_choice_none) == ("m", first.tools, True)


async def test_a_compaction_model_is_asked_without_the_tools_of_the_chats() -> None:
    other = ScriptedProvider(["They met."], name="other")
    async with talk([OVER, "Go on then."], compaction="other/s", others={"other": other}) as chat:
        assert await chat.say("And?") == "waiting"
        (summary,) = other.requests
        assert (summary.model, summary.tools) == ("s", ())
        (committed,) = await chat.of(CompactionCommitted)
        assert (committed.report.step.provider, committed.report.step.model) == ("other", "s")
        assert len(chat.own.requests) == 2


async def test_another_model_of_the_same_provider_gets_no_tools_either() -> None:
    async with talk([OVER, "They met.", "Go on then."], compaction="scripted/s") as chat:
        await chat.say("And?")
        assert [(request.model, bool(request.tools)) for request in chat.own.requests] == [
            ("m", True),
            ("s", False),
            ("m", True),
        ]


async def test_the_same_model_keeps_what_it_has_cached() -> None:
    same = ModelConfig(provider="scripted", name="m", context_limit=800)
    async with talk([OVER, "They met.", "Go on then."], compaction=same) as chat:
        await chat.say("And?")
        first, summary, _ = chat.own.requests
        assert summary.tools == first.tools
        assert summary.messages[: len(first.messages)] == tuple(first.messages)


UNUSABLE: dict[str, tuple[str, list[Turn]]] = {
    "there is no such provider": ("nobody/s", []),
    "it has no key": ("other/s", [failing("missing_key")]),
    "it is switched off": ("other/s", [failing("provider_disabled")]),
}


@pytest.mark.parametrize("name", UNUSABLE)
async def test_a_compaction_model_that_cannot_be_used_is_passed_by_with_a_line_in_the_log(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    reference, script = UNUSABLE[name]
    other = ScriptedProvider(script, name="other")
    with caplog.at_level(logging.WARNING):
        async with talk([OVER, "They met.", "Go on then."], compaction=reference, others={"other": other}) as chat:
            caplog.clear()
            assert await chat.say("And?") == "waiting"
            logged = [
                record.getMessage() for record in caplog.records if "compaction_model_unusable" in str(record.msg)
            ]
            assert len(logged) == 1
            assert len(other.requests) == len(script)
            (committed,) = await chat.of(CompactionCommitted)
            assert committed.report.step.model == "m"
            assert chat.own.requests[1].tools, "the chat's own model has its tools cached"
            starts = [event.kind for event in await chat.of(AttemptStarted)]
            assert starts == ["generate", "compact", "generate"]
            assert not await chat.of(RetryScheduled)
            assert not any(isinstance(part, LiveResult) for part in chat.shown)


@pytest.mark.parametrize("service", ["anthropic", "openai", "openai-chat"])
async def test_a_service_without_a_key_is_passed_by(service: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    async with talk([OVER, "They met.", "Go on then."], compaction=f"{service}/s") as chat:
        assert await chat.say("And?") == "waiting"
        assert len(chat.own.requests) == 3
        assert len(await chat.of(CompactionCommitted)) == 1


def without_sdk(sdk: str, patch: pytest.MonkeyPatch) -> None:
    """Let an SDK be one that is not installed."""
    for module in [module for module in sys.modules if module.startswith(f"generation.providers.{sdk}")]:
        patch.delitem(sys.modules, module)
    patch.setitem(sys.modules, sdk, None)


@pytest.mark.parametrize(("service", "sdk"), [("anthropic", "anthropic"), ("openai", "openai")])
async def test_an_sdk_that_is_missing_for_summaries_alone_keeps_no_worker_from_starting(
    service: str, sdk: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    without_sdk(sdk, monkeypatch)
    with caplog.at_level(logging.WARNING):
        async with talk([OVER, "They met.", "Go on then."], compaction=f"{service}/s") as chat:
            (line,) = (record for record in caplog.records if "compaction_model_unusable" in str(record.msg))
            assert f"pip install 'chatfold[{sdk}]'" in vars(line)["error"]
            assert await chat.say("And?") == "waiting"
            assert len(await chat.of(CompactionCommitted)) == 1
    # One that answers is needed at once.
    with pytest.raises(MissingExtra):
        async with Engine(open_store("memory://"), [Agent(name="a", model=f"{service}/s")]):
            raise AssertionError("it started")  # pragma: no cover


FAILS: list[ErrorKind] = ["auth", "config", "usage_limit", "content_filter", "generic"]


@pytest.mark.parametrize("kind", FAILS)
async def test_a_compaction_model_that_fails_when_it_is_used_fails_the_turn(kind: ErrorKind) -> None:
    other = ScriptedProvider([failing(kind)], name="other")
    async with talk([OVER, "They met."], compaction="other/s", others={"other": other}) as chat:
        assert await chat.say("And?") == "error"
        (failed,) = await chat.of(TurnFailed)
        assert (failed.error.kind, failed.error.provider) == (kind, "other")
        assert len(chat.own.requests) == 1, "nobody was asked instead"
        assert chat.shown == [
            LiveResult(name="chat_summarized", output={"source": "automatic", "error": f"It is {kind}."}, is_error=True)
        ]


async def test_a_compaction_model_that_is_overloaded_is_asked_again() -> None:
    other = ScriptedProvider([failing("overloaded", retryable=True), turn("They met.")], name="other")
    async with talk([OVER, "Go on then."], compaction="other/s", others={"other": other}) as chat:
        assert await chat.say("And?") == "waiting"
        assert len(other.requests) == 2
        assert len(await chat.of(RetryScheduled)) == 1
        assert len(chat.own.requests) == 2


async def test_a_broken_compaction_model_is_of_no_effect_until_it_is_needed() -> None:
    async with talk([turn("Hello."), turn("Still here.")], compaction="nobody/s") as chat:
        assert await chat.say("And?") == "waiting"
        assert [event.kind for event in await chat.of(AttemptStarted)] == ["generate", "generate"]


TOO_LARGE = Fail(ClassifiedError(kind="config", message="It is too large.", status_code=413))
RETRIES: dict[str, tuple[Sequence[Turn], list[bool], str]] = {
    "once without tools": ((turn(TOO_LARGE), turn("They met.")), [True, False], "waiting"),
    "exactly once": ((turn(TOO_LARGE), turn(TOO_LARGE)), [True, False], "error"),
    "only what is too large": ((failing("config", status_code=404),), [True], "error"),
}


@pytest.mark.parametrize("name", RETRIES)
async def test_a_summary_that_is_too_large_is_asked_for_once_more_without_tools(name: str) -> None:
    answers, tools, status = RETRIES[name]
    async with talk([OVER, *answers, turn("Go on then.")]) as chat:
        assert await chat.say("And?") == status
        asked = [request for request in chat.own.requests if asks_for_summary(request)]
        assert [bool(request.tools) for request in asked] == tools
        assert all(tuple(request.messages) == tuple(asked[0].messages) for request in asked)
        starts = [event.kind for event in await chat.of(AttemptStarted)]
        assert starts.count("compact") == 1, "both are one attempt"
        errors = [part for part in chat.shown if isinstance(part, LiveResult)]
        assert len(errors) == (status == "error")


async def test_a_model_that_had_no_tools_is_asked_once() -> None:
    other = ScriptedProvider([turn(TOO_LARGE)], name="other")
    async with talk([OVER], compaction="other/s", others={"other": other}) as chat:
        assert await chat.say("And?") == "error"
        assert len(other.requests) == 1


async def test_those_who_watch_see_the_summary_being_written() -> None:
    written = turn(Think("What matters?"), Say("They met, ", chunk=5), Say("and talked.", chunk=30))
    async with talk([OVER, written, "Go on then."]) as chat:
        await chat.say("And?")
        shown = [part for part in chat.shown if isinstance(part, LiveSummary)]
        assert [(part.block, part.text) for part in shown] == [(1, "They "), (1, "met, "), (2, "and talked.")]
        assert chat.shown[: len(shown)] == shown, "and nothing of its reasoning"


EMPTY: dict[str, tuple[list[Turn], str, str]] = {
    "nothing": ([turn(""), turn("They met.")], "gave an empty summary", "waiting"),
    "cut by its cap": ([turn("", finish="length")], "truncated at the output cap", "error"),
    "reasoning alone": ([turn(Think("Hm.")), turn("They met.")], "truncated at the output cap", "waiting"),
    "a stream that ends without its last part": ([turn("They m", Cut()), turn("They met.")], "closed", "waiting"),
}


@pytest.mark.parametrize("name", EMPTY)
async def test_a_summary_without_text_or_end_is_none(name: str) -> None:
    answers, words, status = EMPTY[name]
    async with talk([OVER, *answers, turn("Go on then.")]) as chat:
        assert await chat.say("And?") == status
        (result,) = [part for part in chat.shown if isinstance(part, LiveResult)]
        assert result.is_error
        ends = await chat.of(TurnFailed) if status == "error" else await chat.of(RetryScheduled)
        message = ends[0].error.message.text
        assert isinstance(result.output, dict)
        assert result.output["error"] == message
        assert words in message
        assert len(await chat.of(CompactionCommitted)) == (status == "waiting")


ERASED: dict[str, tuple[bool, slice, int]] = {
    "all of it": (False, slice(None), 2),
    "one message of it": (False, slice(1), 2),
    "only a message behind it": (False, slice(2, None), 1),
    "a queued message, and with it what was asked of it": (True, slice(2, None), 2),
}
"""Name -> whether its user asked for the summary, the messages that are erased, and how often a model is asked."""


@pytest.mark.parametrize("name", ERASED)
async def test_a_summary_of_what_was_erased_while_it_was_written_is_made_anew(name: str) -> None:
    asked_for, which, asked = ERASED[name]
    begun, go_on = asyncio.Event(), asyncio.Event()
    written = turn(Wait(go_on, begun.set), "What was read first.")
    usual = turn("What is there now.", usage=Usage(input=1, output=1))
    async with talk([OVER, written, *[usual] * 3]) as chat:
        if asked_for:
            await chat.engine.compact(CHAT, hint="Names matter.")
        await chat.engine.send_message(CHAT, "And?")
        await begun.wait()
        state = await chat.engine.state(CHAT)
        messages = [item.id for item in state.messages] + [item.id for item in state.control.queue]
        await chat.engine.erase(CHAT, messages[which])
        go_on.set()
        assert (await chat.engine.settled(CHAT)).control.status == "waiting"
        assert sum(map(asks_for_summary, chat.own.requests)) == asked
        (committed,) = await chat.of(CompactionCommitted)
        text = "".join(content.text for _, content in contents(committed.added[0]))
        assert ("What was read first." in text) == (asked == 1)
        told = [event.cut for event in await chat.of(AttemptStarted) if event.cut is not None]
        assert len(told) == asked - 1, "what was dropped has its cost told"
