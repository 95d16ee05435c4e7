"""What is no step of a turn: compactions that were asked for, and calls beside the turns. It is told as what it is."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import CollectorRegistry

from chatfold import Engine, ModelConfig
from chatfold.naming import TitleNotProposed, Titles
from chatfold.observing import (
    CallBegun,
    CallEnded,
    DebugRecords,
    Effect,
    FolderSink,
    Observer,
    PrometheusObserver,
    SpanObserver,
)
from chatfold.testing import Fail, Wait, turn
from generation.errors import ClassifiedError
from generation.naming import TITLE_SYSTEM
from generation.side_calls import Question, ask
from generation.side_jobs import _effect
from generation.titles import title_of
from tests.chatfold.observing.kit import MODEL, REFUSED, engine_of, said

LABELLED = "Said hello"
BUSY = Fail(ClassifiedError(kind="overloaded", message="Busy.", provider="scripted", retryable=True, status_code=529))


class Calls(Observer):
    """Notes the calls of models."""

    def __init__(self) -> None:
        self.effects: list[str] = []
        self.told: list[tuple[str, str, str | None]] = []
        self.begun: list[CallBegun] = []
        self.wanted = 0
        self.ended = asyncio.Event()

    def effect_begun(self, effect: Effect) -> None:
        self.effects.append(effect.kind)

    def call_begun(self, call: CallBegun) -> None:
        self.begun.append(call)

    def first_part(self, call: CallBegun, *, at: int) -> None:
        self.told.append(("first", call.effect.kind, None))

    def call_ended(self, call: CallBegun, ended: CallEnded) -> None:
        assert call in self.begun
        self.told.append(("ended", call.effect.kind, ended.error.kind if ended.error is not None else ended.cause))
        self.wanted -= 1
        if self.wanted == 0:
            self.ended.set()

    async def after(self, calls: int, engine: Engine, text: str = "Hello.", chat: str | None = None) -> str:
        """Send a message, and wait until so many calls have ended."""
        self.wanted = calls
        self.ended.clear()
        chat = await said(engine, text, chat)
        async with asyncio.timeout(20):
            await self.ended.wait()
        return chat


async def test_calls_beside_the_turns_are_told_as_what_they_are_for() -> None:
    calls = Calls()
    async with engine_of(["Hello, ann.", turn(BUSY), "A greeting", LABELLED], [calls], titles=Titles()) as engine:
        await calls.after(4, engine)
    assert calls.effects == ["generate"], "no turn is disturbed by them"
    assert [call.effect.kind for call in calls.begun] == ["generate", "title", "title", "label"]
    assert {(call.effect.owner, call.effect.agent, call.effect.turn) for call in calls.begun} == {
        ("ann", "helper", "1.0")
    }
    assert [call.effect.attempt for call in calls.begun] == [1, 0, 0, 0]
    assert calls.told == [
        ("first", "generate", None), ("ended", "generate", None),
        ("ended", "title", "overloaded"), ("first", "title", None), ("ended", "title", None),
        ("first", "label", None), ("ended", "label", None),
    ]  # fmt: skip


async def test_a_title_on_request_is_told_too_and_how_it_failed() -> None:
    calls = Calls()
    async with engine_of(["Hello.", turn(REFUSED)], [calls]) as engine:
        chat = await said(engine)
        with pytest.raises(TitleNotProposed):
            await engine.propose_title(chat)
    assert calls.told[-1] == ("ended", "title", "auth")


@pytest.mark.parametrize("end", ["late", "asker"])
async def test_a_call_beside_the_turns_that_is_cut_has_one_end(end: str) -> None:
    calls, reached = Calls(), asyncio.Event()
    async with engine_of(["Hello.", turn("One ", Wait(asyncio.Event(), reached.set))], [calls]) as engine:
        chat = await said(engine)
        loaded = await engine.runtime.journal.load(chat, transcript=True)  # type: ignore[arg-type]
        assert loaded is not None
        seconds = 0.01 if end == "late" else 20.0
        question = Question(system=TITLE_SYSTEM, text="Hi", tokens=9, accept=title_of, deadline=seconds)
        model = ModelConfig(provider="scripted", name="any")
        effect = _effect(engine.runtime, loaded, "title", loaded.state)
        asked = asyncio.create_task(ask(engine.runtime, (model,), question, [], effect))
        await reached.wait()
        if end == "asker":
            asked.cancel()
        await asyncio.wait({asked})
    assert [told for told in calls.told if told[0] == "ended"][1:] == [
        ("ended", "title", "timeout" if end == "late" else "cancelled")
    ]


async def test_metrics_count_them_beside_the_turns() -> None:
    registry, calls = CollectorRegistry(), Calls()
    metrics = PrometheusObserver(registry)

    def value(name: str, **labels: str) -> float:
        return registry.get_sample_value(f"chatfold_{name}", {**MODEL, **labels}) or 0.0

    async with engine_of(["Hello.", "A greeting", LABELLED, "A summary."], [metrics, calls], titles=Titles()) as engine:
        chat = await calls.after(3, engine)
        spent = value("tokens_total", type="output")
        await engine.compact(chat)
        await engine.settled(chat)
    by_operation = {
        kind: value("model_calls_total", operation=kind) for kind in ("generate", "title", "label", "compact")
    }
    assert by_operation == dict.fromkeys(by_operation, 1)
    assert spent > 0
    assert value("tokens_total", type="output") > spent
    assert value("stage_duration_seconds_count", stage="side_call") == 2
    assert value("stage_duration_seconds_count", stage="provider_attempt") == 2
    assert value("ttft_seconds_count") == value("message_count_count") == 2, "of the turn and the compaction alone"
    assert registry.get_sample_value("chatfold_chats", {"state": "streaming"}) == 0
    assert value("turn_outcomes_total", outcome="completed") == 1
    assert value("steps_total") == 1


async def test_debug_records_have_runs_of_their_own(tmp_path: Path) -> None:
    sink, calls = FolderSink(tmp_path), Calls()
    script = ["Hello.", "A greeting", LABELLED, "A summary.", "Again.", LABELLED, "Another summary."]
    async with engine_of(script, [DebugRecords(sink), calls], titles=Titles()) as engine:
        chat = await calls.after(3, engine)
        await engine.compact(chat)
        await engine.settled(chat)
        await calls.after(2, engine, "And now?", chat)
        await engine.compact(chat)
        await engine.settled(chat)
    second = next(run.turn for run in sink.runs(chat) if run.turn not in ("", "1.0"))
    assert [(run.kind, run.turn, run.steps, run.state) for run in sink.runs(chat)] == [
        ("compaction", "", 1, "completed"),
        ("label", second, 1, "completed"),
        ("turn", second, 1, "completed"),
        ("compaction", "", 1, "completed"),
        ("label", "1.0", 1, "completed"),
        ("title", "1.0", 1, "completed"),
        ("turn", "1.0", 1, "completed"),
    ]


async def test_spans_of_them_stand_alone() -> None:
    exporter, calls, tracers = InMemorySpanExporter(), Calls(), TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    async with engine_of(
        ["Hello.", "A greeting", LABELLED, "A summary."], [SpanObserver(tracers), calls], titles=Titles()
    ) as engine:
        chat = await calls.after(3, engine)
        await engine.compact(chat)
        await engine.settled(chat)
    spans = exporter.get_finished_spans()
    by_id = {span.context.span_id: span.name for span in spans if span.context is not None}
    found = {
        ((span.attributes or {}).get("chatfold.effect"), by_id.get(span.parent.span_id) if span.parent else None)
        for span in spans
        if span.name.startswith("chat ")
    }
    assert found == {
        ("generate", "invoke_agent helper"), ("title", None), ("label", None), ("compact", "compact helper"),
    }  # fmt: skip
    assert sorted(span.name for span in spans if not span.name.startswith("chat ")) == [
        "compact helper", "invoke_agent helper",
    ]  # fmt: skip


async def test_nobody_is_told_where_nobody_observes() -> None:
    async with engine_of(["Hello."]) as engine:
        chat = await said(engine)
        loaded = await engine.runtime.journal.load(chat, transcript=True)  # type: ignore[arg-type]
        assert loaded is not None
        assert _effect(engine.runtime, loaded, "title", loaded.state) is None
