"""A chat as canonical text: the same for the same behaviour, and easy to compare line by line. For snapshots.

Owns the form of the text. What is another each time is left out unless it is asked for: times, ids that chance gives,
and counts of tokens; ``chatfold.testing.canonical_fields`` says which fields. Ids of messages and calls stay: they
follow from versions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final, get_args

from msgspec import Struct, structs

from chatfold.testing.asserts import AnyLog, read_events
from chatfold.testing.canonical_fields import (
    INDENT,
    KINDS,
    Kept,
    Shown,
    fact,
    facts_of,
    kept_of,
    lines_of,
    own_lines,
    since,
)
from chatstate.classify import classify
from events.effects import Effects
from events.envelope import Recorded
from events.errors import InvalidValue
from events.ids import message_id
from events.records import Fact, LimitName, Policy
from events.replay import replay
from events.state import ChatState
from events.vocabulary import Event, PolicyRecorded, QueuedMessageEdited, ToolResultRecorded, decision_of

__all__ = ["COUNTED", "Kept", "canonical_text", "checked_kinds"]

COUNTED: Final = frozenset({"context_tokens", "first_context_tokens", *get_args(LimitName)})
"""What decisions read that follows from tokens."""

LOG, TRANSCRIPT, END = "== log", "== transcript", "== at the end"
"""The headings of the text's three parts."""

_NOT_DECLARED: Final = frozenset({"agent", "name", "tools"})
"""Fields of a policy and of a tool in it that stand elsewhere."""


def canonical_text(log: AnyLog, *, keep: Collection[Kept] = ()) -> str:
    """Return a chat as text: its events with all they say and the decisions behind them, and where they leave it.

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
    state, shown, told = None, Shown(keep), set[str]()
    for step in replay(events):
        recorded, envelope = step.recorded, step.recorded.envelope
        began = envelope.recorded_at if state is None else shown.began
        shown = Shown(keep, began, envelope.version, envelope.recorded_at)
        before, after = classify(step.before.control), classify(step.after.control)
        moves = f"{before} -> {after}" if before != after else str(after)
        yield f"{envelope.version:>4} {envelope.type:<24} {moves:<10} {'  '.join(_said(recorded, shown))}".rstrip()
        if isinstance(recorded.event, PolicyRecorded):
            yield from _declared(recorded.event.policy, keep)
        if (decision := decision_of(recorded.event)) is not None:
            read = {name: value for name, value in decision.evidence.items() if "usage" in keep or name not in COUNTED}
            yield f"{INDENT}{decision.rule} {decision.action}{_facts(read)}"
        yield from own_lines(recorded.event, shown)
        told.update(_told(recorded.event, shown))
        state = step.after
    if state is not None:
        yield from _transcript(state, told, shown)
        yield from _end(state, shown)


def _said(recorded: Recorded, shown: Shown) -> Iterator[str]:
    actor = recorded.envelope.actor
    yield actor.kind
    if "times" in shown.keep:
        yield fact("at", since(recorded.envelope.recorded_at, shown.began))
    if "ids" in shown.keep and actor.id is not None:
        yield fact("actor", actor.id)
    if said := facts_of(recorded.event, shown):
        yield said


def _facts(facts: Mapping[str, Fact]) -> str:
    said = [fact(name, value) for name, value in sorted(facts.items())]
    return f": {' '.join(said)}" if said else ""


def _declared(policy: Policy, keep: frozenset[Kept]) -> Iterator[str]:
    """Yield what was declared, a line for the agent and one for each tool; of texts the digests that are recorded.

    Other than of other records, defaults are told too: they are those of then.
    """
    for named, declared in (f"agent {policy.agent}", policy), *((f"tool {tool.name}", tool) for tool in policy.tools):
        said = {name: value for name, value in _flat(declared, keep).items() if name not in _NOT_DECLARED}
        yield f"{INDENT}{named}{_facts(said)}"


def _flat(record: Struct, keep: frozenset[Kept]) -> dict[str, Fact]:
    """Return the fields of a record that say something, those of a record in it as ``outer.inner``."""
    flat: dict[str, Fact] = {}
    for name, value in structs.asdict(record).items():
        kept = kept_of(type(record), name)
        if kept is not None and kept not in keep:
            continue
        if isinstance(value, Struct):
            flat |= {f"{name}.{inner}": said for inner, said in _flat(value, keep).items()}
        elif value is not None and value is not False and value != "":
            flat[name] = value
    return flat


def _told(event: Event, shown: Shown) -> Iterator[str]:
    """Yield what an event told in full: its messages by their ids, and its result."""
    if isinstance(event, ToolResultRecorded):
        yield _block(lines_of(event.result.kind, event.result, shown))
    elif isinstance(event, QueuedMessageEdited):
        yield _block(lines_of(f"[{event.id}]", event.message.message, shown))
    elif isinstance(event, Effects):
        messages = (*event.added, *(queued.message for queued in event.queued))
        for place, message in enumerate(messages, len(event.answers)):
            yield _block(lines_of(f"[{message_id(shown.version, place)}]", message, shown))


def _block(lines: Iterable[str]) -> str:
    return "\n".join(lines)


def _transcript(state: ChatState, told: Collection[str], shown: Shown) -> Iterator[str]:
    """Yield what is left of the messages, and in full what no event told: each text stands in one place."""
    yield TRANSCRIPT
    for item in state.need_transcript("canonical text").messages:
        yield f"[{item.id}] {item.message.role}"
        if _block(lines_of(f"[{item.id}]", item.message, shown)) not in told:
            if said := facts_of(item.message, shown):
                yield f"{INDENT}{said}"
            for part in item.message.parts:
                lines = [*lines_of(part.kind, part, shown)]
                yield from () if _block(lines) in told else lines


def _end(state: ChatState, shown: Shown) -> Iterator[str]:
    control = state.control
    yield END
    yield f"{control.status} {classify(control)}"
    if control.last_error is not None:
        yield f"error {control.last_error.kind}"
    if control.action is not None:
        yield from (f"asks for {item.kind} {item.call or ''}".rstrip() for item in control.action.items)
    yield from (f"queued [{item.id}]" for item in control.queue)
    if "usage" in shown.keep:
        yield f"tokens {facts_of(control.usage, shown)}"
