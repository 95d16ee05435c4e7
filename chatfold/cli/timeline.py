"""The timeline of a log: one line for each event, with the decision behind it. ``replay`` and ``demo`` print it.

Owns what is said of an event in a few words, and how the line is laid out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from chatfold.cli.output import Channel, one_line
from chatfold.cli.shapes import EventLine
from chatstate.classify import classify
from events.counting import counted
from events.effects import Effects
from events.envelope import Recorded
from events.messages import Message
from events.parts import ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from events.records import ErrorInfo
from events.replay import replay
from events.vocabulary import (
    Acquired,
    ActionRequired,
    AttemptStarted,
    CompactionRequested,
    Event,
    InterruptionFinished,
    PolicyRecorded,
    QueuedMessageEdited,
    Released,
    RetryScheduled,
    ToolResultRecorded,
    TurnFailed,
    TurnFinished,
    decision_of,
)

if TYPE_CHECKING:
    from rich.text import Text

    from events.content import Content

NOTE_WIDTH: Final = 72

WIDE: Final = 140
"""Columns that a timeline with everything on one line wants."""

STATUS_STYLES: Final = {
    "none": "dim",
    "pending": "yellow",
    "running": "cyan",
    "requires_action": "magenta",
    "waiting": "green",
    "error": "red",
}


def timeline(events: Iterable[Recorded]) -> Iterator[EventLine]:
    """Yield a line for each event of a log, from its first on."""
    for step in replay(events):
        before, after = classify(step.before.control), classify(step.after.control)
        yield line_of(step.recorded, before=str(before), after=str(after))


def line_of(recorded: Recorded, *, before: str | None = None, after: str | None = None) -> EventLine:
    """Return the line of one event."""
    envelope, event = recorded.envelope, recorded.event
    decision = decision_of(event)
    actor = envelope.actor
    return EventLine(
        version=envelope.version,
        recorded_at=envelope.recorded_at,
        event=envelope.type,
        trigger=event.trigger,
        actor=actor.kind if actor.id is None else f"{actor.kind}:{actor.id}",
        source=envelope.source,
        dest=envelope.dest,
        state_before=before,
        state_after=after,
        rule=decision.rule if decision is not None else None,
        action=decision.action if decision is not None else None,
        facts=decision.facts if decision is not None else None,
        passed=decision.passed if decision is not None else (),
        note=note(event),
    )


def time_of(microseconds: int) -> str:
    """Return a time as people read it, UTC, to the millisecond."""
    try:
        moment = datetime.fromtimestamp(microseconds // 1_000_000, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{microseconds} us"
    return f"{moment:%Y-%m-%d %H:%M:%S}.{microseconds % 1_000_000 // 1000:03d}"


_TO_SOURCE: Final = 43
"""Columns of an event's name and of the status before it: the longest of both take all, and a space."""


def print_timeline(channel: Channel, lines: Iterable[EventLine]) -> None:
    """Print a timeline: version, time, event, from -> to, decision rule and action, and what it was about."""
    for line in lines:
        channel.line(_laid_out(line, channel.width))


def _laid_out(line: EventLine, width: int | None) -> Text:
    from rich.text import Text

    # Where columns do not fit, the time goes without its date, and what the event was about gets a line of its own.
    narrow = width is not None and width < WIDE
    source = _with_state(line.source, line.state_before)
    dest = _with_state(line.dest, line.state_after)
    text = Text()
    text.append(f"{line.version:>4}  ", "bold")
    text.append(f"{time_of(line.recorded_at)[11 if narrow else 0 :]}  ", "dim")
    text.append(line.event)
    text.append("  " if narrow else " " * max(1, _TO_SOURCE - len(line.event) - len(source)))
    text.append(source, "dim")
    text.append(" -> ", "dim")
    text.append(dest if narrow else f"{dest:<18}", STATUS_STYLES.get(line.dest, ""))
    between = "\n      " if narrow else "  "
    for part, style in (
        (f"{line.rule} {line.action}" if line.rule is not None else "", "bold yellow"),
        (line.note, ""),
    ):
        if part:
            text.append(between)
            text.append(one_line(part, NOTE_WIDTH), style)
            between = "  "
    text.rstrip()
    return text


def _with_state(status: str, state: str | None) -> str:
    return status if state is None or status == "none" else f"{status} {state}"


def note(event: Event) -> str:
    """Return an event in a few words; texts are cut short, and erased ones are said to be."""
    said = _special(event)
    if said is None and isinstance(event, Effects):
        said = _effects(event)
    return one_line(said or "", NOTE_WIDTH)


def _special(event: Event) -> str | None:
    match event:
        case Acquired(takeover=takeover, epoch=epoch, unknown=unknown):
            return f"epoch {epoch}" + (", taken over from a dead holder" if takeover else "") + _unknown(unknown)
        case Released(reason=reason, unknown=unknown):
            return reason + _unknown(unknown)
        case PolicyRecorded(policy=policy):
            model = policy.model.reference if policy.model is not None else "no model"
            return f"agent {policy.agent}, {model}, {counted(len(policy.tools), 'tool')}"
        case AttemptStarted(attempt=attempt, calls=calls):
            return f"attempt {attempt}" + (f": {', '.join(calls)}" if calls else "")
        case ToolResultRecorded(result=result):
            return _result(result)
        case RetryScheduled(delay_us=delay, error=error):
            return f"again in {delay / 1e6:g} s: {said_of(error)}"
        case ActionRequired(items=items):
            return ", ".join(f"{item.kind} {item.call or ''}".strip() for item in items)
        case TurnFailed(error=error):
            kept = f"; kept: {_effects(event)}" if event.added else ""
            return f"{said_of(error)}{kept}"
        case CompactionRequested(hint=hint):
            return text_of(hint) if hint is not None else ""
        case QueuedMessageEdited(message=queued):
            return _message(queued.message)
        case TurnFinished() | InterruptionFinished() if not event.added:
            cause = getattr(event, "cause", None)
            promoted = ", the queue's head goes on" if event.promoted else ""
            return f"{cause or 'nothing to keep'}{promoted}"
        case _:
            return None


def _unknown(calls: Sequence[str]) -> str:
    return f"; outcome unknown: {', '.join(calls)}" if calls else ""


def _effects(event: Effects) -> str:
    said = [_message(message) for message in event.added]
    said += [f"queued: {_message(queued.message)}" for queued in event.queued]
    said += [f"{answer.call} answered: {answer.reason or 'as recorded'}" for answer in event.answers]
    if event.promoted:
        said.append(f"promoted {', '.join(event.promoted)}")
    return "; ".join(said)


def _message(message: Message) -> str:
    parts: list[str] = []
    for part in message.parts:
        match part:
            case TextPart(text=text):
                parts.append(text_of(text))
            case ReasoningPart():
                parts.append("(reasoning)")
            case ToolCallPart(name=name, arguments=arguments):
                parts.append(f"calls {name}({text_of(arguments)})")
            case ToolResultPart():
                parts.append(_result(part))
            case _:
                parts.append(f"({type(part).__name__.removesuffix('Part').lower()})")
    cut = "(interrupted) " if message.interrupted else ""
    return f"{message.role}: {cut}{' '.join(parts)}"


def _result(result: ToolResultPart) -> str:
    if result.output is None:
        return f"{result.call} {result.reason or 'no result'}"
    return f"{result.call} {'failed: ' if result.is_error else '= '}{text_of(result.output)}"


def said_of(error: ErrorInfo) -> str:
    """Return an error as people read it: its kind, its message, and the cause where that says more."""
    message = text_of(error.message)
    cause = text_of(error.detail) if error.detail is not None else ""
    return f"{error.kind}: {message}" + (f" ({cause})" if cause not in message else "")


def text_of(content: Content) -> str:
    """Return a content as text; one that is not at hand is said to be so."""
    import msgspec

    if not content.available:
        return f"({'erased' if content.erased else 'not loaded'}, {content.size} B)"
    value = content.value
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
