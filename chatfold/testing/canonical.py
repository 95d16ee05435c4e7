"""A chat as canonical text: the same for the same behaviour, and easy to compare line by line. For snapshots.

Owns the form of the text. What is another each time is left out unless it is asked for: times, ids that chance gives,
and counts of tokens. Ids of messages and calls stay: they follow from versions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import timedelta
from typing import Any, Final, Literal, TypeAlias, get_args

from msgspec import Struct, structs

from chatfold.testing.asserts import AnyLog, read_events
from chatstate.classify import classify
from events.content import Content
from events.effects import Effects
from events.envelope import Recorded
from events.errors import InvalidValue
from events.messages import Message, Usage
from events.parts import FilePart, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from events.records import Fact, LimitName, Policy
from events.replay import replay
from events.state import ChatState
from events.vocabulary import (
    Acquired,
    ActionRequired,
    AttemptStarted,
    ChatCreated,
    PolicyRecorded,
    Released,
    RetryScheduled,
    ToolResultRecorded,
    TurnFailed,
    TurnFinished,
    decision_of,
)

__all__ = ["Kept", "canonical_text"]

Kept: TypeAlias = Literal["ids", "times", "usage"]
"""What can be kept in the text though it is another each time: ids and actors' names; seconds since the first event;
tokens and costs, also in what decisions read."""

KINDS: Final[tuple[Kept, ...]] = get_args(Kept)

COUNTED: Final = frozenset({"context_tokens", "first_context_tokens", *get_args(LimitName)})
"""What decisions read that follows from tokens."""

LOG, TRANSCRIPT, END = "== log", "== transcript", "== at the end"
"""The headings of the text's three parts."""

_INDENT: Final = " " * 6
_NOT_DECLARED: Final = frozenset({"agent", "name", "tools", "context_revision", "retry_unit_us"})
"""Fields of a policy and of a tool in it that stand elsewhere, or follow from files and settings."""
_CONTROLS: Final = {code: f"\\x{code:02x}" for code in (*range(9), *range(11, 32), 127, 0x85, 0x2028, 0x2029)}
"""Characters that would end a line, or be lost on the way through a file."""


def canonical_text(log: AnyLog, *, keep: Collection[Kept] = ()) -> str:
    """Return a chat as text: its transitions with the decisions behind them, its transcript, and where it stands.

    Args:
        log: The log, from the chat's first event on.
        keep: What to keep in it: ``ids``, ``times``, ``usage``.

    Raises:
        InvalidValue: Something else is to be kept, or the log is none.
        LogFileError: It is no log file.
        EventsError: An event cannot be read, or the log was altered.
        OSError: The file cannot be read.
    """
    kinds = frozenset(checked_kinds(keep))
    return "\n".join(_lines(read_events(log), kinds)) + "\n"


def checked_kinds(keep: Collection[Kept]) -> Collection[Kept]:
    """Return what is to be kept.

    Raises:
        InvalidValue: Something of it is nothing that can be.
    """
    given: object = keep
    if isinstance(given, str | bytes) or not isinstance(given, Collection):
        raise InvalidValue("$.keep", f"must be a list of {', '.join(KINDS)}, not {given!r:.40}")
    if strange := [name for name in keep if name not in KINDS]:
        raise InvalidValue("$.keep", f"what can be kept is {', '.join(KINDS)}; not {strange[0]!r}")
    return keep


def _lines(events: list[Recorded], keep: frozenset[Kept]) -> Iterator[str]:
    yield LOG
    state, first = None, 0
    for step in replay(events):
        envelope = step.recorded.envelope
        first = first if state is not None else envelope.recorded_at
        before, after = classify(step.before.control), classify(step.after.control)
        moves = f"{before} -> {after}" if before != after else str(after)
        words = [_actor(step.recorded, keep), *_said(step.recorded.event)]
        if "times" in keep:
            words.insert(0, f"+{timedelta(microseconds=envelope.recorded_at - first)}")
        yield f"{envelope.version:>4} {envelope.type:<24} {moves:<10} {'  '.join(filter(None, words))}".rstrip()
        if isinstance(step.recorded.event, PolicyRecorded):
            yield from _declared(step.recorded.event.policy)
        decision = decision_of(step.recorded.event)
        if decision is not None:
            read = {name: value for name, value in decision.evidence.items() if "usage" in keep or name not in COUNTED}
            yield f"{_INDENT}{decision.rule} {decision.action}{_facts(read)}"
        state = step.after
    if state is not None:
        yield from _transcript(state, keep)
        yield from _end(state, keep)


def _actor(recorded: Recorded, keep: frozenset[Kept]) -> str:
    actor = recorded.envelope.actor
    return f"{actor.kind}:{actor.id}" if "ids" in keep and actor.id is not None else actor.kind


def _facts(facts: Mapping[str, Fact]) -> str:
    shown = [f"{name}={json.dumps(value)}" for name, value in sorted(facts.items())]
    return f": {' '.join(shown)}" if shown else ""


def _declared(policy: Policy) -> Iterator[str]:
    """Yield what was declared, a line for the agent and one for each tool; of texts the digests that are recorded."""
    for named, declared in (f"agent {policy.agent}", policy), *((f"tool {tool.name}", tool) for tool in policy.tools):
        said = {name: value for name, value in _flat(declared).items() if name not in _NOT_DECLARED}
        yield f"{_INDENT}{named}{_facts(said)}"


def _flat(record: Struct) -> dict[str, Fact]:
    """Return the fields of a record that say something, those of a record in it as ``outer.inner``."""
    flat: dict[str, Fact] = {}
    for name, value in structs.asdict(record).items():
        if isinstance(value, Struct):
            flat |= {f"{name}.{inner}": fact for inner, fact in _flat(value).items()}
        elif value is not None and value is not False and value != "":
            flat[name] = value
    return flat


_SAID: Final[Mapping[type, Callable[[Any], Iterator[str]]]] = {
    Acquired: lambda event: iter(["took over" if event.takeover else ""]),
    ActionRequired: lambda event: iter(f"{item.kind} {item.call or ''}".rstrip() for item in event.items),
    AttemptStarted: lambda event: iter([event.kind, f"attempt {event.attempt}", *event.calls]),
    ChatCreated: lambda event: iter([f"agent {event.agent}"]),
    Released: lambda event: iter([event.reason]),
    RetryScheduled: lambda event: iter([event.error.kind]),
    ToolResultRecorded: lambda event: iter([f"{event.result.call} {_outcome(event.result)}"]),
    TurnFailed: lambda event: iter([event.error.kind]),
    TurnFinished: lambda event: iter([event.cause]),
}
"""What is said of an event beside its type and states, by its type; content is not."""


def _said(event: object) -> Iterator[str]:
    say = _SAID.get(type(event))
    if say is not None:
        yield from say(event)
    if isinstance(event, Effects):
        yield from (f"{answer.call} {answer.reason or 'answered'}" for answer in event.answers)
        yield from (f"promoted {message}" for message in event.promoted)


def _outcome(result: ToolResultPart) -> str:
    if result.output is None:
        return result.reason or "no result"
    return "failed" if result.is_error else "done"


def _transcript(state: ChatState, keep: frozenset[Kept]) -> Iterator[str]:
    yield TRANSCRIPT
    for item in state.need_transcript("canonical text").messages:
        yield f"[{item.id}] {'  '.join(_of_message(item.message, keep))}"
        for part in item.message.parts:
            yield from _indented(_part(part))


def _indented(text: str) -> Iterator[str]:
    """Yield lines of what was said, behind a mark: none may pass for a line of ours, nor for a doctest to be run."""
    for line in text.split("\n"):
        yield f"{_INDENT}| {line}" if line else f"{_INDENT}|"


def _of_message(message: Message, keep: frozenset[Kept]) -> Iterator[str]:
    yield message.role
    if message.visibility != "both":
        yield f"for the {message.visibility} alone"
    if message.interrupted:
        yield "interrupted"
    if message.boundary is not None:
        yield message.boundary
    if message.author is not None and "ids" in keep:
        yield f"by {message.author}"
    if message.step is not None:
        yield message.step.finish_reason
        if "usage" in keep:
            yield _usage(message.step.usage)


def _part(part: object) -> str:
    match part:
        case TextPart(text=text):
            return _text(text)
        case ReasoningPart(text=text, redacted=redacted):
            return "(reasoning, redacted)" if redacted else f"(reasoning) {_text(text)}"
        case ToolCallPart(name=name, arguments=arguments, runner=runner):
            return f"(call, {runner}) {name} {_text(arguments)}"
        case ToolResultPart(call=call, output=None):
            return f"(result of {call}) {_outcome(part)}"
        case ToolResultPart(call=call, output=Content() as output):
            files = "".join(f"\n{_part(file)}" for file in (*part.media, *part.attachments))
            return f"(result of {call}, {_outcome(part)}) {_text(output)}{files}"
        case FilePart(media_type=media_type, data=data):
            return f"(file, {media_type}, {data.size} B)"
        case _:
            return f"({type(part).__name__.removesuffix('Part').lower()}) {_text(getattr(part, 'text', None))}".rstrip()


def _text(content: Content | None) -> str:
    if content is None:
        return ""
    if not content.available:
        return f"({'erased' if content.erased else 'not loaded'}, {content.size} B)"
    value = content.value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text.translate(_CONTROLS)


def _usage(usage: Usage) -> str:
    named = {name: getattr(usage, name) for name in usage.__struct_fields__}
    return f"tokens {' '.join(f'{name}={count}' for name, count in named.items() if count)}"


def _end(state: ChatState, keep: frozenset[Kept]) -> Iterator[str]:
    control = state.control
    yield END
    yield f"{control.status} {classify(control)}"
    if control.last_error is not None:
        yield f"error {control.last_error.kind}"
        yield from _indented(_text(control.last_error.message))
    if control.action is not None:
        yield from (f"asks for {item.kind} {item.call or ''}".rstrip() for item in control.action.items)
    for item in control.queue:
        yield f"queued [{item.id}]"
        for part in state.need_transcript("canonical text").queued[item.id].message.parts:
            yield from _indented(_part(part))
    if "usage" in keep:
        yield _usage(control.usage)
