"""Metrics: each of them moves by what it counts, and by nothing else; labels are bounded."""

from __future__ import annotations

import asyncio

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from chatfold import result
from chatfold.observing import PrometheusObserver
from chatfold.observing.sizes import result_size
from generation.errors import ClassifiedError
from generation.parts import PartBuffer
from generation.providers.script import Fail, Say, Script, Think, UseTool, Wait, turn
from generation.tools.output import Answer
from tests.chatfold.observing.kit import MODEL, OVERLOADED, REFUSED, control_of, engine_of, said

STAGES = ["acquisition", "chat_turn", "commit", "generation_step", "prepare", "provider_attempt", "queue_wait"]


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.observer = PrometheusObserver(self.registry)

    def value(self, name: str, **labels: str) -> float:
        return self.registry.get_sample_value(f"chatfold_{name}", labels) or 0.0

    def stage(self, stage: str, **labels: str) -> float:
        return self.value("stage_duration_seconds_count", stage=stage, **labels)

    def total(self, name: str) -> float:
        """The sum over all labels."""
        found = (sample for metric in self.registry.collect() for sample in metric.samples)
        return sum(sample.value for sample in found if sample.name == f"chatfold_{name}")


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


async def test_an_answer(metrics: Metrics) -> None:
    async with engine_of([turn(Think("Hm."), "Hello, ann.")], [metrics.observer]) as engine:
        await said(engine)
    assert metrics.value("steps_total", **MODEL) == 1
    assert metrics.value("turn_outcomes_total", outcome="completed", **MODEL) == 1
    assert metrics.total("turn_outcomes_total") == 1
    assert metrics.value("ttft_seconds_count", **MODEL) == 1
    assert metrics.value("message_count_sum", **MODEL) == 1
    assert metrics.value("prompt_size_bytes_sum", **MODEL) == len("Hello." + "Be kind. the word that nobody may see")
    assert metrics.value("tokens_total", type="output", **MODEL) > 0
    for stage in ("generation_step", "prepare", "provider_attempt", "time_to_first_token", "stream", "chat_turn"):
        assert metrics.stage(stage, **MODEL) == 1, stage
    assert metrics.stage("commit", provider="", model="") == 1
    assert metrics.total("stream_retries_total") == metrics.total("tool_errors_total") == 0
    assert metrics.value("chats", state="streaming") == metrics.value("chats", state="waiting") == 0


async def test_chats_at_work(metrics: Metrics) -> None:
    until, reached = asyncio.Event(), asyncio.Event()
    async with engine_of([turn("One ", Wait(until, reached.set), "two.")], [metrics.observer]) as engine:
        created = await engine.create_chat("helper", owner="ann", message="Hello.")
        await reached.wait()
        assert metrics.value("chats", state="streaming") == 1
        assert metrics.value("chats", state="waiting") == 0
        until.set()
        await engine.settled(created.chat)
        assert metrics.value("chats", state="streaming") == 0


async def test_tools(metrics: Metrics) -> None:
    script: Script = [
        turn(UseTool("add", {"a": 1, "b": 20}), UseTool("fail", {"why": "so"}), UseTool("x" * 60)),
        "Done.",
    ]
    async with engine_of(script, [metrics.observer]) as engine:
        await said(engine)
    assert metrics.value("tool_result_size_bytes_sum", tool_name="add", **MODEL) == len("21")
    assert metrics.value("tool_result_size_bytes_sum", tool_name="fail", **MODEL) == len("ValueError: so")
    assert metrics.value("tool_errors_total", tool_name="fail") == 1
    assert metrics.value("tool_errors_total", tool_name="unknown") == 1, "a name that a model makes up is no label"
    assert metrics.value("tool_errors_total", tool_name="add") == 0
    assert metrics.stage("tool_call", **MODEL) == 3
    assert metrics.stage("tools", **MODEL) == 1
    assert metrics.value("steps_total", **MODEL) == 2
    assert metrics.value("turn_outcomes_total", outcome="completed", **MODEL) == 1


async def test_a_tool_that_is_not_active_has_a_label_of_its_own(metrics: Metrics) -> None:
    script: Script = ["Hello.", turn(UseTool("add", {"a": 1, "b": 20}), UseTool("made_up")), "Done."]
    async with engine_of(script, [metrics.observer]) as engine:
        chat = await said(engine)
        await engine.set_active_tools(chat, ["fail"])
        await said(engine, "And now?", chat)
    assert metrics.value("tool_errors_total", tool_name="inactive") == 1
    assert metrics.value("tool_errors_total", tool_name="unknown") == 1
    assert metrics.total("tool_errors_total") == 2


async def test_retries(metrics: Metrics) -> None:
    async with engine_of([turn(OVERLOADED), turn("Par", OVERLOADED), "Whole."], [metrics.observer]) as engine:
        await said(engine)
    assert metrics.total("stream_retries_total") == 2
    assert metrics.value("stream_retries_total", kind="overloaded", **MODEL) == 2
    assert metrics.stage("retry_backoff", **MODEL) == 2
    assert metrics.value("ttft_seconds_count", **MODEL) == 2, "an attempt without a part has no first one"
    assert metrics.stage("provider_attempt", **MODEL) == 3
    assert metrics.value("turn_outcomes_total", outcome="completed", **MODEL) == 1
    assert metrics.stage("chat_turn", **MODEL) == 1
    assert metrics.stage("queue_wait", **MODEL) >= 2


async def test_a_failed_turn(metrics: Metrics) -> None:
    async with engine_of([turn(REFUSED)], [metrics.observer]) as engine:
        await said(engine)
    assert metrics.value("turn_outcomes_total", outcome="error", **MODEL) == 1
    assert metrics.total("turn_outcomes_total") == 1
    assert metrics.total("steps_total") == 0


async def test_an_interrupted_turn(metrics: Metrics) -> None:
    never, reached = asyncio.Event(), asyncio.Event()
    async with engine_of([turn("One ", Wait(never, reached.set))], [metrics.observer]) as engine:
        created = await engine.create_chat("helper", owner="ann", message="Hello.")
        await reached.wait()
        await engine.interrupt(created.chat)
        await engine.settled(created.chat)
    assert metrics.value("turn_outcomes_total", outcome="interrupted", **MODEL) == 1
    assert metrics.total("turn_outcomes_total") == 1


async def test_an_edited_turn(metrics: Metrics) -> None:
    never, reached = asyncio.Event(), asyncio.Event()
    script: Script = [turn("One ", Wait(never, reached.set)), "Two."]
    async with engine_of(script, [metrics.observer]) as engine:
        created = await engine.create_chat("helper", owner="ann", message="Hello.")
        await reached.wait()
        await engine.edit_message(created.chat, "1.0", "Hello again.")
        await engine.settled(created.chat)
    assert metrics.value("turn_outcomes_total", outcome="abandoned", **MODEL) == 1
    assert metrics.value("turn_outcomes_total", outcome="completed", **MODEL) == 1
    assert metrics.total("turn_outcomes_total") == 2


async def test_a_turn_that_waits_for_its_client_is_one(metrics: Metrics) -> None:
    async with engine_of([turn(UseTool("pick")), "Red."], [metrics.observer]) as engine:
        created = await engine.create_chat("helper", owner="ann", message="Hello.")
        await engine.settled(created.chat)
        control = await control_of(engine, created.chat)
        assert control.action is not None
        assert metrics.total("turn_outcomes_total") == 0
        call = control.action.client_calls[0]
        await engine.submit_tool_results(created.chat, control.action.id, [result(call, "red")])
        await engine.settled(created.chat)
    assert metrics.value("turn_outcomes_total", outcome="completed", **MODEL) == 1
    assert metrics.total("turn_outcomes_total") == 1


async def test_compactions(metrics: Metrics) -> None:
    async with engine_of(["One.", "A summary.", "Two.", turn(REFUSED)], [metrics.observer]) as engine:
        chat = await said(engine)
        await engine.compact(chat)
        await engine.settled(chat)
        assert metrics.value("compaction_total", result="success", **MODEL) == 1
        assert metrics.total("turn_outcomes_total") == 1, "a compaction that was asked for is no turn"
        assert metrics.stage("chat_turn", **MODEL) == metrics.stage("manual_compaction", **MODEL) == 1
        await said(engine, "More.", chat)
        await engine.compact(chat)
        await engine.settled(chat)
    assert metrics.value("compaction_total", result="error", **MODEL) == 1
    assert metrics.total("compaction_total") == 2
    assert metrics.stage("compaction", **MODEL) == 2


async def test_a_compaction_that_asks_twice_is_one(metrics: Metrics) -> None:
    large = Fail(ClassifiedError(kind="config", message="Too large.", status_code=413))
    async with engine_of(["One.", turn(large), "A summary."], [metrics.observer]) as engine:
        chat = await said(engine)
        await engine.compact(chat)
        await engine.settled(chat)
    assert metrics.value("compaction_total", result="success", **MODEL) == 1
    assert metrics.total("compaction_total") == 1
    assert metrics.stage("provider_attempt", **MODEL) == 3


async def test_a_compaction_that_is_silent_and_one_that_is_cancelled(metrics: Metrics) -> None:
    never, reached = asyncio.Event(), asyncio.Event()
    silent = Fail(ClassifiedError(kind="stream_silence_timeout", message="Silent.", provider="scripted"))
    script: Script = ["One.", turn(silent), turn(Wait(never, reached.set))]
    async with engine_of(script, [metrics.observer]) as engine:
        chat = await said(engine)
        await engine.compact(chat)
        await engine.settled(chat)
        assert metrics.value("compaction_total", result="timeout", **MODEL) == 1
        await engine.compact(chat)
        await reached.wait()
        await engine.interrupt(chat)
        await engine.settled(chat)
    assert metrics.total("compaction_total") == 1


def test_live_parts_that_are_dropped(metrics: Metrics) -> None:
    from events.ids import ChatId
    from generation.parts import EpisodeKey, LiveText

    buffer = PartBuffer(lambda: 0.0, capacity=60, dropped=metrics.observer.preview_dropped)
    key = EpisodeKey(ChatId("c"), 1, 1)
    buffer.create(key)
    assert buffer.add(key, LiveText(block=0, text="short")) == 1
    assert metrics.value("stream_buffer_dropped_total") == 0
    assert buffer.add(key, LiveText(block=0, text="long" * 20)) is None
    assert buffer.add(key, LiveText(block=0, text="s")) is None
    assert metrics.value("stream_buffer_dropped_total") == 2


@pytest.mark.parametrize(
    ("answer", "size"),
    [
        (None, 0),
        (Answer(None), 0),
        (Answer("ä"), 2),
        (Answer("ValueError: so", is_error=True), 14),
        (Answer({"a": [1, 2]}), len('{"a":[1,2]}')),
    ],
)
def test_the_size_of_a_result(answer: Answer | None, size: int) -> None:
    assert result_size(answer) == size


async def test_metrics_hold_no_content(metrics: Metrics) -> None:
    script: Script = [turn(Say("the word of the model"), UseTool("fail", {"why": "the word of the tool"})), "Done."]
    async with engine_of(script, [metrics.observer]) as engine:
        await said(engine, "the word of the user")
    shown = generate_latest(metrics.registry).decode()
    assert "chatfold_steps_total" in shown
    assert "the word" not in shown
