"""Spans for OpenTelemetry, by its conventions for generative AI (``chatfold.observing.conventions``).

A turn is an ``invoke_agent`` span, a trace of its own: it begins when the turn became owed, is made when the first
effect sets to it, and ends with the event that ended the turn, once nothing works on it here any more. Below it stand
``chat`` spans (calls of models) and ``execute_tool`` spans. A compaction that was asked for has a ``compact`` span
instead, and a call beside the turns stands alone. A turn that goes on in another process has a span in each.
Spans hold no content unless that is asked for. Needs the extra ``otel``, which is OpenTelemetry's API alone: what
becomes of the spans is set up by the application.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

try:
    from opentelemetry import context as otel_context
    from opentelemetry import trace
    from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode, TracerProvider
except ModuleNotFoundError as error:
    raise ImportError("spans need opentelemetry-api: pip install 'chatfold[otel]'") from error

from chatfold.observing import contents
from chatfold.observing import conventions as names
from chatfold.observing.turns import Turn, Turns
from chatfold.version import RELEASE
from events.ids import ChatId
from events.records import ModelPolicy
from generation.observing import CallBegun, CallEnded, Effect, Observer
from generation.tools.output import CallResult
from generation.tools.policy import ToolCall
from store.append import Outcome
from store.loading import LoadedChat

_Value: TypeAlias = str | int | float | bool | list[str]
_Key: TypeAlias = tuple[ChatId, int, int]

_NO_CONTEXT: Final = otel_context.Context()
_INTERRUPT: Final = "user_interrupt"
"""The cause by which a call is cancelled because its user wanted it: no failure, and nothing to be alarmed by."""
_NOT_ENDED: Final = frozenset({"error", "abandoned"})


class SpanObserver(Observer):
    """Makes spans of turns, model calls and tool calls.

    While a model is called or a tool runs, its span is the current one: what the application's tools and instrumented
    clients trace hangs below it.

    Args:
        provider: Gives the tracer; without one the application's global one.
        content: Whether spans hold what is asked and answered: messages, instructions, arguments, results.
    """

    def __init__(self, provider: TracerProvider | None = None, *, content: bool = False) -> None:
        self._tracer = trace.get_tracer("chatfold", RELEASE, provider, schema_url=names.SCHEMA_URL)
        self._content = content
        self._turns = Turns(self._turn_ended)
        self._spans: dict[Turn, Span] = {}
        self._calls: dict[CallBegun, Span] = {}
        self._tools: dict[tuple[_Key, str], Span] = {}

    def held(self, loaded: LoadedChat, *, wanted_at: int, at: int) -> None:
        """See :class:`Observer`."""
        self._turns.held(loaded.header.chat, loaded.header.listed_at)

    def let_go(self, chat: ChatId, *, lost: bool, at: int) -> None:
        """See :class:`Observer`."""
        if lost:
            self._turns.lose(chat, at)

    def appended(self, outcome: Outcome) -> None:
        """See :class:`Observer`."""
        self._turns.appended(outcome)

    def effect_begun(self, effect: Effect) -> None:
        """See :class:`Observer`."""
        turn = self._turns.join(effect)
        if turn not in self._spans:
            here = trace.get_current_span().get_span_context()
            operation = names.COMPACT if effect.manual else names.INVOKE_AGENT
            self._spans[turn] = self._tracer.start_span(
                f"{operation} {effect.agent}",
                _NO_CONTEXT,
                SpanKind.INTERNAL,
                {
                    names.OPERATION_NAME: operation,
                    names.AGENT_NAME: effect.agent,
                    names.CONVERSATION_ID: effect.chat,
                    names.TURN_ID: effect.turn or "",
                    names.EPOCH: effect.epoch,
                    **_of_model(effect.policy.model),
                },
                links=[Link(here)] if here.is_valid else None,
                start_time=turn.began_at * 1000,
            )

    def effect_ended(self, effect: Effect, *, at: int) -> None:
        """See :class:`Observer`."""
        self._turns.leave(effect)

    def call_begun(self, call: CallBegun) -> None:
        """See :class:`Observer`."""
        effect, request = call.effect, call.request
        attributes: dict[str, _Value] = {
            names.OPERATION_NAME: names.CHAT,
            names.CONVERSATION_ID: effect.chat,
            names.AGENT_NAME: effect.agent,
            names.REQUEST_STREAM: True,
            names.EFFECT: effect.kind,
            names.HISTORY_VERSION: effect.history_version,
            names.ATTEMPT: effect.attempt,
            **_of_model(call.model),
        }
        if request.max_output is not None:
            attributes[names.REQUEST_MAX_TOKENS] = request.max_output
        if self._content:
            attributes[names.INPUT_MESSAGES] = contents.input_messages(request)
            attributes[names.SYSTEM_INSTRUCTIONS] = contents.system_instructions(request)
            attributes[names.TOOL_DEFINITIONS] = contents.tool_definitions(request)
        name = f"{names.CHAT} {call.model.name}"
        self._calls[call] = self._begin(effect, name, SpanKind.CLIENT, attributes, call.at)

    def call_ended(self, call: CallBegun, ended: CallEnded) -> None:
        """See :class:`Observer`."""
        span = self._calls.pop(call, None)
        if span is None:
            return
        step, usage = ended.step, ended.step.usage
        attributes: dict[str, _Value] = {
            names.RESPONSE_FINISH_REASONS: [step.finish_reason],
            names.USAGE_INPUT: usage.input + usage.cache_read + usage.cache_write,
            names.USAGE_OUTPUT: usage.output,
            names.USAGE_CACHE_READ: usage.cache_read,
            names.USAGE_CACHE_CREATION: usage.cache_write,
            names.USAGE_REASONING: usage.reasoning,
        }
        if step.response_id is not None:
            attributes[names.RESPONSE_ID] = step.response_id
        if step.first_part_at is not None:
            attributes[names.RESPONSE_TIME_TO_FIRST_CHUNK] = max(0, step.first_part_at - call.at) / 1e6
        if self._content:
            attributes[names.OUTPUT_MESSAGES] = contents.output_messages(ended.parts(), step.finish_reason)
        span.set_attributes(attributes)
        if ended.error is None and ended.cause == _INTERRUPT:
            span.set_attribute(names.CANCELLED_BY, _INTERRUPT)
        else:
            _fail(span, ended.error.kind if ended.error is not None else ended.cause)
        span.end(max(step.ended_at or call.at, call.at) * 1000)

    def tool_begun(self, effect: Effect, call: ToolCall, *, at: int) -> None:
        """See :class:`Observer`."""
        attributes: dict[str, _Value] = {
            names.OPERATION_NAME: names.EXECUTE_TOOL,
            names.TOOL_NAME: call.name,
            names.TOOL_CALL_ID: call.key,
            names.TOOL_TYPE: "function",
            names.CONVERSATION_ID: effect.chat,
            names.AGENT_NAME: effect.agent,
        }
        if self._content and call.in_force is not None:
            attributes[names.TOOL_CALL_ARGUMENTS] = call.in_force
        name = f"{names.EXECUTE_TOOL} {call.name}"
        self._tools[effect.key, call.key] = self._begin(effect, name, SpanKind.INTERNAL, attributes, at)

    def tool_ended(self, effect: Effect, call: ToolCall, result: CallResult | None, *, at: int) -> None:
        """See :class:`Observer`."""
        span = self._tools.pop((effect.key, call.key), None)
        if span is None:
            return
        if result is None:
            span.set_attribute(names.CANCELLED_BY, "turn_stopped")  # whatever stopped it, the tool did not fail
        else:
            if self._content:
                span.set_attribute(names.TOOL_CALL_RESULT, contents.tool_result(result.answer))
            _fail(span, "tool_error" if result.answer.is_error else None)
        span.end(at * 1000)

    async def close(self) -> None:
        """See :class:`Observer`."""
        self._turns.end_all()

    def _begin(self, effect: Effect, name: str, kind: SpanKind, attributes: Mapping[str, _Value], at: int) -> Span:
        """Begin a span of an effect, and make it the current one of the task that runs, which is the effect's own."""
        turn = self._turns.of(effect)
        parent = self._spans.get(turn) if turn is not None else None
        above = trace.set_span_in_context(parent, _NO_CONTEXT) if parent is not None else _NO_CONTEXT
        span = self._tracer.start_span(name, above, kind, attributes, start_time=at * 1000)
        # Not detached: the task ends with its work, and what is set here with it.
        otel_context.attach(trace.set_span_in_context(span))
        return span

    def _turn_ended(self, turn: Turn) -> None:
        span = self._spans.pop(turn, None)
        if span is None or turn.outcome is None or turn.ended_at is None:
            return
        span.set_attribute(names.TURN_OUTCOME, turn.outcome)
        _fail(span, turn.outcome if turn.outcome in _NOT_ENDED else None)
        span.end(turn.ended_at * 1000)


def _of_model(model: ModelPolicy | None) -> dict[str, str]:
    if model is None:
        return {}
    provider = names.PROVIDERS.get(model.provider, model.provider)
    return {names.PROVIDER_NAME: provider, names.REQUEST_MODEL: model.name}


def _fail(span: Span, why: str | None) -> None:
    """Mark a span as failed, by a word that has few values; texts of errors may hold content."""
    if why is not None:
        span.set_attribute(names.ERROR_TYPE, why)
        span.set_status(Status(StatusCode.ERROR, why))
