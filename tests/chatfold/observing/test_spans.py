"""Spans: a turn with its calls of models and tools below it, by the conventions, and without content unless asked."""

from __future__ import annotations

import asyncio
import json

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from chatfold import Agent, Engine, Settings, result, tool
from chatfold.observing import SpanObserver
from chatfold.observing import conventions as names
from generation.providers.script import Script, Think, UseTool, Wait, turn
from generation.providers.scripted import ScriptedProvider
from tests.chatfold.observing.kit import OVERLOADED, REFUSED, SECRET, control_of, engine_of, said


class Traces:
    def __init__(self, *, content: bool = False) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.observer = SpanObserver(self.provider, content=content)

    @property
    def spans(self) -> list[ReadableSpan]:
        return sorted(self.exporter.get_finished_spans(), key=lambda span: span.start_time or 0)

    def named(self, start: str) -> list[ReadableSpan]:
        return [span for span in self.spans if span.name.startswith(start)]


def get(span: ReadableSpan, name: str) -> object:
    assert span.attributes is not None
    return span.attributes.get(name)


def parent(span: ReadableSpan) -> int | None:
    return span.parent.span_id if span.parent is not None else None


def period(span: ReadableSpan) -> tuple[int, int]:
    assert span.start_time is not None
    assert span.end_time is not None
    return span.start_time, span.end_time


async def test_a_turn_with_a_tool() -> None:
    traces = Traces()
    script: Script = [turn(Think("Hm."), UseTool("add", {"a": 1, "b": 20})), "It is 21."]
    async with engine_of(script, [traces.observer]) as engine:
        chat = await said(engine)
    (agent,) = traces.named("invoke_agent")
    calls, tools = traces.named("chat"), traces.named("execute_tool")
    assert [span.name for span in calls] == ["chat any", "chat any"]
    assert [span.name for span in tools] == ["execute_tool add"]
    assert agent.name == "invoke_agent helper"
    assert agent.kind is SpanKind.INTERNAL
    assert parent(agent) is None
    assert {span.context.trace_id for span in traces.spans if span.context} == {agent.context.trace_id}
    for span in (*calls, *tools):
        assert parent(span) == agent.context.span_id
        assert get(span, names.CONVERSATION_ID) == chat
        (begun, over), (start, end) = period(span), period(agent)
        assert start <= begun <= over <= end
    assert [span.kind for span in (*calls, *tools)] == [SpanKind.CLIENT, SpanKind.CLIENT, SpanKind.INTERNAL]
    assert get(agent, names.OPERATION_NAME) == "invoke_agent"
    assert get(agent, names.TURN_OUTCOME) == "completed"
    assert get(calls[0], names.OPERATION_NAME) == "chat"
    assert get(calls[0], names.RESPONSE_FINISH_REASONS) == ("tool_calls",)
    assert get(calls[1], names.RESPONSE_FINISH_REASONS) == ("stop",)
    assert get(calls[0], names.REQUEST_MODEL) == "any"
    assert isinstance(get(calls[0], names.USAGE_INPUT), int)
    assert isinstance(get(calls[0], names.RESPONSE_TIME_TO_FIRST_CHUNK), float)
    assert get(tools[0], names.TOOL_NAME) == "add"
    assert get(tools[0], names.TOOL_CALL_ID) is not None
    assert all(span.status.status_code is StatusCode.UNSET for span in traces.spans)
    scope = agent.instrumentation_scope
    assert scope is not None
    assert scope.schema_url == "https://opentelemetry.io/schemas/1.41.0"


async def test_the_turn_begins_with_its_trigger() -> None:
    traces = Traces()
    async with engine_of(["Hello."], [traces.observer]) as engine:
        chat = await said(engine)
        first, *_, last = await engine.events(chat)
    (agent,) = traces.named("invoke_agent")
    assert agent.start_time == first.envelope.recorded_at * 1000
    assert agent.end_time == last.envelope.recorded_at * 1000


async def test_no_content_unless_asked() -> None:
    for content in (False, True):
        traces = Traces(content=content)
        script: Script = [turn("model's words", UseTool("fail", {"why": "tool's words"})), "more words"]
        async with engine_of(script, [traces.observer]) as engine:
            await said(engine, "user's words")
        held = [name for span in traces.spans for name in span.attributes or {} if name in names.CONTENT]
        shown = "\n".join(span.to_json() for span in traces.spans)
        assert ("words" in shown) is content
        assert (SECRET in shown) is content
        assert bool(held) is content
        if content:
            call, (used,) = traces.named("chat")[0], traces.named("execute_tool")
            assert json.loads(str(get(call, names.INPUT_MESSAGES))) == [
                {"role": "user", "parts": [{"type": "text", "content": "user's words"}]}
            ]
            (answer,) = json.loads(str(get(call, names.OUTPUT_MESSAGES)))
            assert [part["type"] for part in answer["parts"]] == ["text", "tool_call"]
            assert answer["finish_reason"] == "tool_calls"
            assert [each["name"] for each in json.loads(str(get(call, names.TOOL_DEFINITIONS)))][:2] == ["add", "fail"]
            assert get(used, names.TOOL_CALL_RESULT) == "ValueError: tool's words"


async def test_failures() -> None:
    traces = Traces()
    async with engine_of([turn(OVERLOADED), turn(REFUSED)], [traces.observer]) as engine:
        await said(engine)
    assert [get(span, names.ERROR_TYPE) for span in traces.named("chat")] == ["overloaded", "auth"]
    (agent,) = traces.named("invoke_agent")
    assert get(agent, names.TURN_OUTCOME) == "error"
    assert agent.status.status_code is StatusCode.ERROR


async def test_a_tool_error() -> None:
    traces = Traces()
    async with engine_of([turn(UseTool("fail", {"why": "so"})), "Done."], [traces.observer]) as engine:
        await said(engine)
    (used,) = traces.named("execute_tool")
    assert get(used, names.ERROR_TYPE) == "tool_error"
    assert get(traces.named("invoke_agent")[0], names.TURN_OUTCOME) == "completed"


async def test_an_overtaken_call_ends_in_the_turn_that_it_began_in() -> None:
    traces, never, reached = Traces(), asyncio.Event(), asyncio.Event()
    script: Script = [turn("One ", Wait(never, reached.set)), "Two."]
    async with engine_of(script, [traces.observer]) as engine:
        created = await engine.create_chat("helper", owner="ann", message="Hello.")
        await reached.wait()
        await engine.edit_message(created.chat, "1.0", "Hello again.")
        await engine.settled(created.chat)
    first, second = traces.named("invoke_agent")
    assert [get(span, names.TURN_OUTCOME) for span in (first, second)] == ["abandoned", "completed"]
    cut, whole = traces.named("chat")
    assert parent(cut) == first.context.span_id
    assert parent(whole) == second.context.span_id
    assert get(cut, names.ERROR_TYPE) == "history_changed"


async def test_a_users_interrupt_is_no_error() -> None:
    traces, never, reached = Traces(), asyncio.Event(), asyncio.Event()
    async with engine_of([turn("One ", Wait(never, reached.set))], [traces.observer]) as engine:
        created = await engine.create_chat("helper", owner="ann", message="Hello.")
        await reached.wait()
        await engine.interrupt(created.chat)
        await engine.settled(created.chat)
    (cut,), (agent,) = traces.named("chat"), traces.named("invoke_agent")
    assert get(cut, names.CANCELLED_BY) == "user_interrupt"
    assert get(agent, names.TURN_OUTCOME) == "interrupted"
    assert [span.status.status_code for span in (cut, agent)] == [StatusCode.UNSET, StatusCode.UNSET]
    assert not any(names.ERROR_TYPE in (span.attributes or {}) for span in (cut, agent))


async def test_a_tool_that_is_stopped_with_its_turn_did_not_fail() -> None:
    traces, reached = Traces(), asyncio.Event()

    @tool
    async def sleep() -> str:
        """Sleep."""
        reached.set()
        await asyncio.Event().wait()
        return "never"

    agent = Agent(name="helper", model="scripted/any", tools=[sleep])
    providers = {"scripted": ScriptedProvider([turn(UseTool("sleep"))])}
    settings = Settings(poll=0.05, grace=0.05)
    async with Engine(
        "memory://", [agent], providers=providers, settings=settings, observers=[traces.observer]
    ) as engine:
        created = await engine.create_chat("helper", "Hello.")
        await reached.wait()
        await engine.interrupt(created.chat)
        await engine.settled(created.chat)
    (stopped,) = traces.named("execute_tool")
    assert get(stopped, names.CANCELLED_BY) == "turn_stopped"
    assert stopped.status.status_code is StatusCode.UNSET


async def test_a_turn_that_waits_for_its_client_is_one() -> None:
    traces = Traces()
    async with engine_of([turn(UseTool("pick")), "Red."], [traces.observer]) as engine:
        created = await engine.create_chat("helper", owner="ann", message="Hello.")
        await engine.settled(created.chat)
        assert traces.named("invoke_agent") == []
        control = await control_of(engine, created.chat)
        assert control.action is not None
        await engine.submit_tool_results(
            created.chat, control.action.id, [result(control.action.client_calls[0], "red")]
        )
        await engine.settled(created.chat)
    (agent,) = traces.named("invoke_agent")
    assert [parent(span) for span in traces.named("chat")] == [agent.context.span_id] * 2


async def test_what_is_open_when_the_engine_closes_is_told() -> None:
    traces, never, reached = Traces(), asyncio.Event(), asyncio.Event()
    async with engine_of([turn("One ", Wait(never, reached.set))], [traces.observer]) as engine:
        await engine.create_chat("helper", owner="ann", message="Hello.")
        await reached.wait()
    (agent,) = traces.named("invoke_agent")
    assert get(agent, names.TURN_OUTCOME) == "abandoned"


async def test_what_a_tool_traces_hangs_below_its_span() -> None:
    traces = Traces()
    tracer = trace.get_tracer("application", tracer_provider=traces.provider)

    @tool
    def here() -> str:
        """Trace in a thread."""
        with tracer.start_as_current_span("in a thread"):
            return "done"

    @tool
    async def there() -> str:
        """Trace in the loop."""
        with tracer.start_as_current_span("in the loop"):
            return "done"

    from chatfold import Agent, Engine, Settings
    from generation.providers.scripted import ScriptedProvider

    agent = Agent(name="helper", model="scripted/any", tools=[here, there])
    script: Script = [turn(UseTool("here"), UseTool("there")), "Done."]
    providers = {"scripted": ScriptedProvider(script)}
    engine = Engine(
        "memory://", [agent], providers=providers, settings=Settings(poll=0.05), observers=[traces.observer]
    )
    async with engine:
        await said(engine)
    by_name = {span.name: span for span in traces.spans}
    assert parent(by_name["in a thread"]) == by_name["execute_tool here"].context.span_id
    assert parent(by_name["in the loop"]) == by_name["execute_tool there"].context.span_id


async def test_a_request_of_the_application_is_linked() -> None:
    traces = Traces()
    tracer = trace.get_tracer("application", tracer_provider=traces.provider)
    async with engine_of(["Hello."], [traces.observer]) as engine:
        with tracer.start_as_current_span("POST /messages") as request:
            chat = (await engine.create_chat("helper", owner="ann", message="Hi.")).chat
        await engine.settled(chat)
    (agent,) = traces.named("invoke_agent")
    assert parent(agent) is None
    assert [link.context.span_id for link in agent.links] == [request.get_span_context().span_id]


def test_the_names_are_those_of_the_conventions() -> None:
    from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
    from opentelemetry.semconv.attributes import error_attributes
    from opentelemetry.semconv.schemas import Schemas

    theirs = {value for value in vars(gen_ai_attributes).values() if isinstance(value, str)}
    ours = {value for value in vars(names).values() if isinstance(value, str) and value.startswith("gen_ai.")}
    assert ours - theirs == set()
    assert len(ours) >= 20
    assert error_attributes.ERROR_TYPE == names.ERROR_TYPE
    assert Schemas.V1_41_0.value == names.SCHEMA_URL
    operations = {each.value for each in gen_ai_attributes.GenAiOperationNameValues}
    assert {names.CHAT, names.EXECUTE_TOOL, names.INVOKE_AGENT} <= operations


@pytest.mark.parametrize("given", ["anthropic", "openai", "openai-chat"])
def test_names_of_providers(given: str) -> None:
    from opentelemetry.semconv._incubating.attributes.gen_ai_attributes import GenAiProviderNameValues

    assert names.PROVIDERS[given] in {each.value for each in GenAiProviderNameValues}
