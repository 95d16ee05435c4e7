"""The names that a condition may use: what each means, what kind of thing it is, and where it is read. Pure.

Names of the state may be asked of the state after an event, and by ``before.NAME`` of the state before it; names of the
event are asked of the event alone. Whatever else control holds can be named as control names it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args, get_origin

import msgspec
from msgspec import Struct

from chatstate.classify import X, classify
from events.content import Content
from events.control import Control, Indexes, names_of_calls
from events.effects import Effects
from events.envelope import Recorded, Status
from events.reasons import Reason
from events.records import AttemptKind, ErrorInfo, FinishCause, ReleaseReason, SideCallKind
from events.state import ChatState
from events.vocabulary import EVENT_TYPES, AttemptStarted, results_of
from generation.decide import RULES

Value: TypeAlias = str | int | bool | tuple[str, ...] | None


class Moment(NamedTuple):
    """One event with the states around it. States without a transcript are enough."""

    before: ChatState
    recorded: Recorded
    after: ChatState


class Kind(Enum):
    """What kind of thing a name is; the text is how it is said."""

    WORD = "a word"
    NUMBER = "a number"
    YES_NO = "true or false"
    WORDS = "several words"
    TEXT = "text"


class StateName(NamedTuple):
    """A name that is read in a state.

    Attributes:
        kind: What kind of thing it is.
        about: What it means.
        read: Gives it; None where there is nothing.
        words: All that it may be, where that is known.
    """

    kind: Kind
    about: str
    read: Callable[[ChatState], Value]
    words: tuple[str, ...] = ()


class EventName(NamedTuple):
    """A name that is read in an event; as ``StateName``."""

    kind: Kind
    about: str
    read: Callable[[Moment], Value]
    words: tuple[str, ...] = ()


def _control(read: Callable[[Control], Value]) -> Callable[[ChatState], Value]:
    return lambda state: read(state.control)


_STATE: Final[dict[str, StateName]] = {
    "status": StateName(
        Kind.WORD,
        "the status; none before there is a chat",
        _control(lambda control: control.status if control.exists else "none"),
        (*get_args(Status), "none"),
    ),
    "state": StateName(
        Kind.WORD, "the execution state", _control(lambda control: str(classify(control))), tuple(map(str, X))
    ),
    "tokens": StateName(
        Kind.NUMBER, "tokens in the model's context", _control(lambda control: control.indexes.context_tokens)
    ),
    "queue": StateName(Kind.NUMBER, "how many messages are queued", _control(lambda control: len(control.queue))),
    "open_calls": StateName(
        Kind.WORDS,
        "the tools of calls without a result",
        _control(lambda control: tuple(call.name for call in control.indexes.open_calls)),
    ),
    "asks": StateName(
        Kind.WORDS,
        "what the client is asked for",
        _control(lambda control: tuple(item.kind for item in control.action.items) if control.action else ()),
        ("client_call", "approval", "budget"),
    ),
    "last_error": StateName(
        Kind.WORD,
        "the kind of the error that ended the last turn",
        _control(lambda control: control.last_error.kind if control.last_error else None),
    ),
    "running": StateName(
        Kind.WORD,
        "the kind of the attempt under way",
        _control(lambda control: control.running.kind if control.running else None),
        get_args(AttemptKind),
    ),
}


def _fields(of: type[Struct], read: Callable[[Control], Any]) -> Iterator[tuple[str, StateName]]:
    """Yield the fields of a part of control that are words, numbers, or true or false."""
    for each in msgspec.structs.fields(of):
        kind, words = _kind_of(each.type)
        if kind is not None:
            value = _control(lambda control, name=each.name: getattr(read(control), name))  # type: ignore[misc]
            yield each.name, StateName(kind, f"`{of.__name__}.{each.name}`", value, words)


_SCALARS: Final = {bool: Kind.YES_NO, int: Kind.NUMBER, str: Kind.WORD, tuple[str, ...]: Kind.WORDS}


def _kind_of(annotation: Any) -> tuple[Kind | None, tuple[str, ...]]:
    if get_origin(annotation) is Literal:
        return Kind.WORD, get_args(annotation)
    annotation = getattr(annotation, "__supertype__", annotation)
    if annotation in _SCALARS:
        return _SCALARS[annotation], ()
    options = [each for each in get_args(annotation) if each is not type(None)]
    return _kind_of(options[0]) if len(options) == 1 else (None, ())


STATE_NAMES: Final[Mapping[str, StateName]] = MappingProxyType(
    {
        **dict(_fields(Control, lambda control: control)),
        **dict(_fields(Indexes, lambda control: control.indexes)),
        **_STATE,
    }
)
"""Names of the state. Times are microseconds UTC, and durations microseconds, as control has them."""


def _attribute(name: str, inner: str) -> Callable[[Moment], Value]:
    def read(moment: Moment) -> Value:
        value: Value = getattr(getattr(moment.recorded.event, name, None), inner, None)
        return value

    return read


def _own(name: str) -> Callable[[Moment], Value]:
    def read(moment: Moment) -> Value:
        value: Value = getattr(moment.recorded.event, name, None)
        return value

    return read


def _tools(moment: Moment) -> tuple[str, ...]:
    """Return the tools of the calls that an event makes, starts or answers."""
    event = moment.recorded.event
    states = (moment.before, moment.after)
    known = names_of_calls(call for state in states for call in state.control.indexes.open_calls)
    made = event.tool_calls(moment.recorded.version) if isinstance(event, Effects) else ()
    keys = [
        *(event.calls if isinstance(event, AttemptStarted) else ()),
        *(part.call for part in results_of(event)),
        *(answer.call for answer in getattr(event, "answers", ())),
    ]
    return tuple(dict.fromkeys([*(part.name for _, part in made), *(known[key] for key in keys if key in known)]))


def _error(moment: Moment) -> str | None:
    error = getattr(moment.recorded.event, "error", None)
    return error.kind if isinstance(error, ErrorInfo) else None


def _reason(moment: Moment) -> tuple[str, ...]:
    event = moment.recorded.event
    own = getattr(event, "reason", None)
    answers = [*results_of(event), *getattr(event, "answers", ())]
    lost = Reason.WORKER_LOST if getattr(event, "unknown", ()) else None
    found = [own, lost, *(answer.reason for answer in answers)]
    return tuple(dict.fromkeys(each for each in found if isinstance(each, str)))


def _failed(moment: Moment) -> tuple[str, ...]:
    """Return the tools whose calls ended in an error of their own, as an event tells."""
    calls = names_of_calls(moment.before.control.indexes.open_calls)
    failed = (part.call for part in results_of(moment.recorded.event) if part.failed)
    return tuple(dict.fromkeys(calls.get(call, "?") for call in failed))


def text_of_event(recorded: Recorded) -> str:
    """Return all texts and values that an event holds, each on a line; what is not at hand is left out."""
    return "\n".join(_texts(recorded.event))


def _texts(value: object) -> Iterator[str]:
    match value:
        case Content():
            if value.available:
                yield value.held if isinstance(value.held, str) else json.dumps(value.held, ensure_ascii=False)
        case Struct():
            for name in value.__struct_fields__:
                yield from _texts(getattr(value, name))
        case tuple() | list():
            for each in value:
                yield from _texts(each)
        case _:
            return


EVENT_NAMES: Final[Mapping[str, EventName]] = MappingProxyType(
    {
        "event": EventName(
            Kind.WORD, "the type of the event", lambda moment: moment.recorded.envelope.type, tuple(EVENT_TYPES)
        ),
        "trigger": EventName(
            Kind.WORD,
            "the transition's name",
            lambda moment: moment.recorded.event.trigger,
            tuple(cls.trigger for cls in EVENT_TYPES.values()),
        ),
        "actor": EventName(
            Kind.WORD,
            "who caused it: user, worker, system",
            lambda moment: moment.recorded.envelope.actor.kind,
            ("user", "worker", "system"),
        ),
        "rule": EventName(
            Kind.WORD, "the rule of its decision", _attribute("decision", "rule"), tuple(rule.id for rule in RULES)
        ),
        "action": EventName(Kind.WORD, "the action that was decided", _attribute("decision", "action")),
        "kind": EventName(
            Kind.WORD,
            "the kind of the attempt that it starts, or of a side call",
            _own("kind"),
            (*get_args(AttemptKind), *get_args(SideCallKind)),
        ),
        "cause": EventName(Kind.WORD, "why a turn is finished", _own("cause"), get_args(FinishCause)),
        "reason": EventName(
            Kind.WORDS,
            "why a worker let go, and why calls have no result of their own",
            _reason,
            (*get_args(ReleaseReason), *map(str, Reason)),
        ),
        "tool": EventName(Kind.WORDS, "the tools of calls that it makes, starts or answers", _tools),
        "failed": EventName(Kind.WORDS, "the tools of calls that ended in an error of their own", _failed),
        "error": EventName(Kind.WORD, "the kind of the error that it tells of", _error),
        "text": EventName(
            Kind.TEXT, "all texts, arguments and results that it holds", lambda moment: text_of_event(moment.recorded)
        ),
    }
)
"""Names of the event."""
