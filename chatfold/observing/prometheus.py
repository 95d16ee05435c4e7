"""Metrics for Prometheus. Owns their names, labels and buckets; which moments they count is ``generation.observing``'s.

Labels are taken from what the application declared (agents' models and tools), never from what a model or a user says:
their number is bounded. Needs the extra ``prometheus``; importing this module imports ``prometheus_client``.
"""

from __future__ import annotations

from typing import Final

try:
    from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram
except ModuleNotFoundError as error:
    raise ImportError("metrics need prometheus-client: pip install 'chatfold[prometheus]'") from error

from chatfold.observing.sizes import prompt_size, result_size
from chatfold.observing.turns import Turn, Turns
from events.ids import ChatId
from events.parts import ReasoningPart
from events.records import ModelPolicy
from events.vocabulary import Acquired, CompactionCommitted, RetryScheduled, StepCommitted
from generation.observing import CallBegun, CallEnded, Effect, Observer
from generation.tools.output import CallResult
from generation.tools.policy import ToolCall
from store.append import Outcome
from store.loading import LoadedChat

_BY_MODEL: Final = ("provider", "model")
_SECONDS: Final = (0.005, 0.02, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800)
_BYTES: Final = tuple(4.0**power for power in range(4, 13))
_MESSAGES: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000)
_TIMEOUTS: Final = frozenset({"timeout", "stream_silence_timeout"})


class PrometheusObserver(Observer):
    """Counts and measures what a worker does. One per process is enough for several engines.

    Args:
        registry: Where the metrics are registered; without one the process's own registry.
        prefix: What their names begin with.

    Raises:
        ValueError: The registry has metrics of these names already.
    """

    def __init__(self, registry: CollectorRegistry = REGISTRY, *, prefix: str = "chatfold") -> None:
        def counter(name: str, said: str, *labels: str) -> Counter:
            return Counter(f"{prefix}_{name}", said, labels, registry=registry)

        def histogram(name: str, said: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
            return Histogram(f"{prefix}_{name}", said, labels, buckets=buckets, registry=registry)

        self._chats = Gauge(f"{prefix}_chats", "Chats that this process runs.", ("state",), registry=registry)
        self._messages = histogram("message_count", "Messages of a request.", _MESSAGES, *_BY_MODEL)
        self._prompt = histogram("prompt_size_bytes", "Texts and files of a request.", _BYTES, *_BY_MODEL)
        self._results = histogram("tool_result_size_bytes", "Results of tools.", _BYTES, *_BY_MODEL, "tool_name")
        self._ttft = histogram("ttft_seconds", "From a call to the first part of its answer.", _SECONDS, *_BY_MODEL)
        self._compactions = counter("compaction_total", "Compactions by result.", *_BY_MODEL, "result")
        self._steps = counter("steps_total", "Answers committed.", *_BY_MODEL)
        self._retries = counter("stream_retries_total", "Retries scheduled.", *_BY_MODEL, "kind")
        self._errors = counter("tool_errors_total", "Calls of tools that gave an error.", "tool_name")
        self._dropped = counter("stream_buffer_dropped_total", "Live parts that found their preview full.")
        self._stages = histogram("stage_duration_seconds", "How long stages took.", _SECONDS, "stage", *_BY_MODEL)
        self._outcomes = counter("turn_outcomes_total", "Turns ended, by how.", *_BY_MODEL, "outcome")
        self._tokens = counter("tokens_total", "Tokens that services reported.", *_BY_MODEL, "type")
        self._calls = counter("model_calls_total", "Calls of models, by what for.", *_BY_MODEL, "operation")
        self._turns = Turns(self._turn_ended)
        self._held: set[ChatId] = set()
        self._streaming: set[CallBegun] = set()
        self._failed: dict[tuple[ChatId, int, int], tuple[str, str, str]] = {}
        self._tools: dict[tuple[ChatId, int, int, str], int] = {}

    def held(self, loaded: LoadedChat, *, wanted_at: int, at: int) -> None:
        """See :class:`Observer`."""
        self._turns.held(loaded.header.chat, loaded.header.listed_at)
        self._stage("acquisition", _model_of(loaded), at - wanted_at)
        self._held.add(loaded.header.chat)
        self._count_chats()

    def let_go(self, chat: ChatId, *, lost: bool, at: int) -> None:
        """See :class:`Observer`."""
        self._held.discard(chat)
        self._count_chats()
        if lost:
            self._turns.lose(chat, at)

    def _count_chats(self) -> None:
        streaming = len(self._streaming)
        self._chats.labels("streaming").set(streaming)
        self._chats.labels("waiting").set(max(0, len(self._held) - streaming))

    def appended(self, outcome: Outcome) -> None:
        """See :class:`Observer`."""
        model = _model_of(outcome.chat)
        for recorded in outcome.recorded:
            match recorded.event:
                case Acquired():
                    waited = self._turns.waited(outcome.chat.header.chat, recorded.envelope.recorded_at)
                    if waited is not None:
                        self._stage("queue_wait", model, waited)
                case StepCommitted(added=added) if added:
                    step = added[0].step
                    if step is not None:
                        self._steps.labels(step.provider, step.model).inc()
                case RetryScheduled(error=error, delay_us=delay):
                    self._retries.labels(*_labels(model), error.kind).inc()
                    self._stage("retry_backoff", model, delay)
                case CompactionCommitted(report=report):
                    step = report.step if report is not None else None
                    given = (step.provider, step.model) if step is not None else _labels(model)
                    self._compactions.labels(*given, "success").inc()
                case _:
                    pass
        self._turns.appended(outcome)

    def committed(self, chat: ChatId, *, began_at: int, at: int) -> None:
        """See :class:`Observer`."""
        self._stage("commit", None, at - began_at)

    def effect_begun(self, effect: Effect) -> None:
        """See :class:`Observer`."""
        self._turns.join(effect)

    def effect_ended(self, effect: Effect, *, at: int) -> None:
        """See :class:`Observer`."""
        stage = {"generate": "generation_step", "compact": "compaction", "tools": "tools", "context": "context"}
        self._stage(stage[effect.kind], effect.policy.model, at - effect.began_at)
        failed = self._failed.pop(effect.key, None)
        if failed is not None:
            self._compactions.labels(*failed).inc()
        self._turns.leave(effect)

    def call_begun(self, call: CallBegun) -> None:
        """See :class:`Observer`."""
        self._calls.labels(*_labels(call.model), call.effect.kind).inc()
        if call.effect.beside:
            return
        self._streaming.add(call)
        self._count_chats()
        self._stage("prepare", call.model, call.at - call.effect.began_at)
        self._messages.labels(*_labels(call.model)).observe(len(call.request.messages))
        self._prompt.labels(*_labels(call.model)).observe(prompt_size(call.request))

    def first_part(self, call: CallBegun, *, at: int) -> None:
        """See :class:`Observer`."""
        if call.effect.beside:
            return
        seconds = max(0, at - call.at) / 1e6
        self._ttft.labels(*_labels(call.model)).observe(seconds)
        self._stages.labels("time_to_first_token", *_labels(call.model)).observe(seconds)

    def call_ended(self, call: CallBegun, ended: CallEnded) -> None:
        """See :class:`Observer`."""
        labels, step = _labels(call.model), ended.step
        end = step.ended_at or call.at
        usage = step.usage
        for kind in ("input", "output", "cache_read", "cache_write", "reasoning"):
            if tokens := getattr(usage, kind):
                self._tokens.labels(*labels, kind).inc(tokens)
        self._stage("side_call" if call.effect.beside else "provider_attempt", call.model, end - call.at)
        if call.effect.beside:
            return
        self._streaming.discard(call)
        self._count_chats()
        if step.first_part_at is not None:
            self._stage("stream", call.model, end - step.first_part_at)
        thinking = sum(
            part.ended_at - part.started_at
            for part in ended.parts()
            if isinstance(part, ReasoningPart) and part.started_at is not None and part.ended_at is not None
        )
        if thinking:
            self._stage("thinking", call.model, thinking)
        # A compaction may ask twice: how its last call ended is how it ended.
        self._failed.pop(call.effect.key, None)
        if call.effect.kind == "compact" and ended.error is not None:
            self._failed[call.effect.key] = (*labels, "timeout" if ended.error.kind in _TIMEOUTS else "error")

    def tool_begun(self, effect: Effect, call: ToolCall, *, at: int) -> None:
        """See :class:`Observer`."""
        self._tools[(*effect.key, call.key)] = at

    def tool_ended(self, effect: Effect, call: ToolCall, result: CallResult | None, *, at: int) -> None:
        """See :class:`Observer`."""
        began_at = self._tools.pop((*effect.key, call.key), at)
        self._stage("tool_call", effect.policy.model, at - began_at)
        if result is None:
            return
        name = tool_label(effect, call.name)
        self._results.labels(*_labels(effect.policy.model), name).observe(result_size(result.answer))
        if result.answer.is_error:
            self._errors.labels(name).inc()

    def preview_dropped(self) -> None:
        """See :class:`Observer`."""
        self._dropped.inc()

    def _turn_ended(self, turn: Turn) -> None:
        model = turn.last.policy.model if turn.last is not None else None
        if not turn.manual:  # those are counted as compactions
            self._outcomes.labels(*_labels(model), turn.outcome).inc()
        if turn.ended_at is not None:
            self._stage("manual_compaction" if turn.manual else "chat_turn", model, turn.ended_at - turn.began_at)

    def _stage(self, stage: str, model: ModelPolicy | None, took_us: int) -> None:
        self._stages.labels(stage, *_labels(model)).observe(max(0, took_us) / 1e6)


def _labels(model: ModelPolicy | None) -> tuple[str, str]:
    return (model.provider, model.name) if model is not None else ("", "")


def _model_of(loaded: LoadedChat) -> ModelPolicy | None:
    """Return the model of a chat's recorded policy, where its transcript is at hand."""
    transcript, digest = loaded.state.transcript, loaded.state.control.policy
    policy = transcript.policies.get(digest) if transcript is not None else None
    return policy.model if policy is not None else None


def tool_label(effect: Effect, name: str) -> str:
    """Return a tool's name where the agent declares it and it is active: a model may call any name at all."""
    if any(tool.name == name for tool in effect.policy.tools):
        return name
    return "inactive" if name in effect.inactive else "unknown"
