"""Conditions on a moment of a log, as people type them: ``status == error and model_attempts > 3``.

Owns the names that a condition may ask for (``NAMES``, one table), and the grammar: comparisons joined by ``and``,
``or`` and ``not``, with parentheses. A condition is tried on a step of a replay: an event, and the states around it.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from chatstate.classify import classify
from events.effects import Effects
from events.parts import ReasoningPart, TextPart, ToolCallPart
from events.replay import ReplayStep
from events.state import ChatState

Condition: TypeAlias = Callable[[ReplayStep], bool]

Kind: TypeAlias = Literal["text", "number", "yes or no", "texts"]
"""What a name stands for; ``texts`` are several, and a comparison holds where it holds for one of them."""


class ConditionError(ValueError):
    """A condition that cannot be read.

    Attributes:
        text: The condition as it was given.
        place: Where in it, counted from 0.
        why: What is wrong there.
    """

    def __init__(self, text: str, place: int, why: str) -> None:
        super().__init__(text, place, why)
        self.text = text
        self.place = place
        self.why = why

    def __str__(self) -> str:
        """Say where, and why."""
        return f"the condition {self.text!r} cannot be read at character {self.place + 1}: {self.why}"


class Name(NamedTuple):
    """A name that a condition may ask for: what kind of value it has, how it is read, and what it means."""

    kind: Kind
    read: Callable[[ReplayStep], Any]
    meaning: str


def _state(kind: Kind, read: Callable[[ChatState], Any], meaning: str) -> Name:
    return Name(kind, lambda step: read(step.after), meaning)


def _decision(step: ReplayStep, field: str) -> str | None:
    decision = getattr(step.recorded.event, "decision", None)
    return None if decision is None else str(getattr(decision, field))


def _error(step: ReplayStep) -> str | None:
    error = getattr(step.recorded.event, "error", None)
    return None if error is None else str(error.kind)


def _parts(step: ReplayStep, kind: type) -> list[Any]:
    event = step.recorded.event
    messages = (*event.added, *(each.message for each in event.queued)) if isinstance(event, Effects) else ()
    return [part for message in messages for part in message.parts if isinstance(part, kind)]


def _texts(step: ReplayStep) -> list[str]:
    parts = (*_parts(step, TextPart), *_parts(step, ReasoningPart))
    return [str(part.text.value) for part in parts if part.text.available]


def _reasons(step: ReplayStep) -> list[str]:
    event = step.recorded.event
    answers = [answer.reason for answer in event.answers] if isinstance(event, Effects) else []
    own = getattr(event, "reason", None) or getattr(getattr(event, "result", None), "reason", None)
    return [str(reason) for reason in (*answers, own) if reason is not None]


NAMES: Final[Mapping[str, Name]] = MappingProxyType(
    {
        "version": _state("number", lambda s: s.control.version, "the event's version"),
        "event": Name("text", lambda step: step.recorded.envelope.type, "the event's type, as turn_failed"),
        "trigger": Name("text", lambda step: step.recorded.event.trigger, "the transition, as fail_turn"),
        "actor": Name("text", lambda step: step.recorded.envelope.actor.kind, "who caused it: user, worker, system"),
        "rule": Name("text", lambda step: _decision(step, "rule"), "the rule of the event's decision, as D7"),
        "action": Name("text", lambda step: _decision(step, "action"), "what that decision says to do"),
        "error": Name("text", _error, "the kind of the error that the event has, as rate_limit"),
        "reason": Name("texts", _reasons, "why a call was answered without its result, or the chat was released"),
        "tool": Name("texts", lambda step: [p.name for p in _parts(step, ToolCallPart)], "tools that the event calls"),
        "text": Name("texts", _texts, "texts and reasoning of messages that the event brings"),
        "status": _state("text", lambda s: s.control.status if s.control.version else "none", "the status after it"),
        "state": _state("text", lambda s: str(classify(s.control)), "the execution state after it, as R1"),
        "agent": _state("text", lambda s: s.control.agent, "the agent"),
        "model": _state("text", lambda s: s.control.model, "the model that the chat has chosen"),
        "holder": _state("text", lambda s: s.control.holder, "the worker that has it"),
        "messages": _state("number", lambda s: s.control.indexes.messages, "messages in history"),
        "tokens": _state("number", lambda s: s.control.indexes.context_tokens, "tokens of the newest prompt"),
        "output_tokens": _state("number", lambda s: s.control.usage.output, "tokens that models wrote in all"),
        "cost_micros": _state("number", lambda s: s.control.cost_micros, "cost in all, in micro-units of currency"),
        "steps": _state("number", lambda s: s.control.indexes.steps, "model steps of the turn"),
        "turns": _state("number", lambda s: s.control.turns, "turns that were opened"),
        "queued": _state("number", lambda s: len(s.control.queue), "messages in the queue"),
        "open_calls": _state("number", lambda s: len(s.control.indexes.open_calls), "calls without a result"),
        "attempt": _state("number", lambda s: s.control.attempt, "starts on the current history"),
        "model_attempts": _state("number", lambda s: s.control.model_attempts, "those that the retry budget counts"),
        "takeovers": _state("number", lambda s: s.control.takeovers, "times that its holder died on it"),
        "epoch": _state("number", lambda s: s.control.epoch, "the epoch"),
        "owed": _state("yes or no", lambda s: s.control.owed, "whether history owes a turn"),
        "interrupting": _state("yes or no", lambda s: s.control.interrupting, "whether its turn is being ended"),
        "archived": _state("yes or no", lambda s: s.control.archived, "whether it was put away"),
        "stop_after": _state("yes or no", lambda s: s.control.indexes.stop_after, "a stop-after tool gave its result"),
    }
)
"""The names, in the order of the documentation."""

_Compare: TypeAlias = Callable[[Any, Any], bool]

OPERATORS: Final[Mapping[str, _Compare]] = MappingProxyType(
    {
        "==": operator.eq,
        "!=": operator.ne,
        "<=": operator.le,
        ">=": operator.ge,
        "<": operator.lt,
        ">": operator.gt,
        "contains": operator.contains,
    }
)

_FITTING: Final[Mapping[Kind, tuple[str, ...]]] = MappingProxyType(
    {
        "number": ("==", "!=", "<", "<=", ">", ">="),
        "text": ("==", "!=", "contains"),
        "texts": ("==", "!=", "contains"),
        "yes or no": ("==", "!="),
    }
)

_WORDS: Final = MappingProxyType({"yes": True, "true": True, "no": False, "false": False})

_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<quoted>"[^"]*"|'[^']*')|(?P<sign>==|!=|<=|>=|[<>()])|(?P<word>[^\s()<>=!"']+))"""
)


class _Token(NamedTuple):
    place: int
    text: str
    quoted: bool = False


def parse_condition(text: str) -> Condition:
    """Return the condition that a text says.

    Names, operators and values: ``NAMES`` and ``OPERATORS``. A text stands bare or in quotes; ``none`` is a text that
    is not there; a name of the kind yes or no may stand alone. ``not`` binds closer than ``and``, that closer than
    ``or``.

    Raises:
        ConditionError: It says none; names the place.
    """
    reader = _Reader(text, _tokens(text))
    condition = reader.either()
    reader.ended()
    return condition


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    place, end = 0, len(text.rstrip())
    while place < end:
        found = _TOKEN.match(text, place)
        if found is None:
            start = place + len(text[place:]) - len(text[place:].lstrip())
            raise ConditionError(text, start, f"nothing begins with {text[start]!r}")
        kind = found.lastgroup or "word"
        said = found[kind]
        quoted = kind == "quoted"
        tokens.append(_Token(found.start(kind), said[1:-1] if quoted else said, quoted))
        place = found.end()
    return tokens


class _Reader:
    """Reads tokens one after the other, the loosest binding first."""

    def __init__(self, text: str, tokens: list[_Token]) -> None:
        self._text: Final = text
        self._tokens: Final = tokens
        self._at = 0

    def either(self) -> Condition:
        one = self._both()
        while self._took("or"):
            one = _either(one, self._both())
        return one

    def ended(self) -> None:
        if self._at < len(self._tokens):
            raise self._wrong("expected and, or, or the end")

    def _both(self) -> Condition:
        one = self._single()
        while self._took("and"):
            one = _both(one, self._single())
        return one

    def _single(self) -> Condition:
        if self._took("not"):
            inner = self._single()
            return lambda step: not inner(step)
        if self._took("("):
            inner = self.either()
            if not self._took(")"):
                raise self._wrong("expected )")
            return inner
        return self._comparison()

    def _comparison(self) -> Condition:
        name = self._next("expected a name")
        found = NAMES.get(name.text)
        if found is None or name.quoted:
            self._at -= 1
            raise self._wrong(f"there is no {name.text!r}; there are {', '.join(NAMES)}")
        sign = self._peek()
        if sign is None or sign.quoted or sign.text not in OPERATORS:
            if found.kind == "yes or no":
                return lambda step: bool(found.read(step))
            raise self._wrong(f"expected one of {' '.join(_FITTING[found.kind])} after {name.text}")
        if sign.text not in _FITTING[found.kind]:
            fitting = " ".join(_FITTING[found.kind])
            raise self._wrong(f"{name.text} is a {found.kind}; it is compared by {fitting}")
        self._at += 1
        value = self._value(found.kind)
        compare = OPERATORS[sign.text]
        if found.kind == "texts":
            return _of_any(found.read, compare, value, negated=sign.text == "!=")
        return _compared(found.read, compare, value)

    def _value(self, kind: Kind) -> object:
        token = self._next("expected a value")
        if kind == "number":
            if token.text.lstrip("-").isdecimal() and token.text.isascii():
                return int(token.text)
        elif kind == "yes or no":
            if token.text in _WORDS:
                return _WORDS[token.text]
        else:
            return None if token.text == "none" and not token.quoted else token.text
        self._at -= 1
        raise self._wrong(f"{token.text!r} is no {'whole number' if kind == 'number' else 'yes or no'}")

    def _peek(self) -> _Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _took(self, word: str) -> bool:
        token = self._peek()
        if token is None or token.quoted or token.text != word:
            return False
        self._at += 1
        return True

    def _next(self, missing: str) -> _Token:
        token = self._peek()
        if token is None:
            raise self._wrong(missing)
        self._at += 1
        return token

    def _wrong(self, why: str) -> ConditionError:
        token = self._peek()
        return ConditionError(self._text, len(self._text) if token is None else token.place, why)


def _either(one: Condition, other: Condition) -> Condition:
    return lambda step: one(step) or other(step)


def _both(one: Condition, other: Condition) -> Condition:
    return lambda step: one(step) and other(step)


def _compared(read: Callable[[ReplayStep], Any], compare: _Compare, value: object) -> Condition:
    if compare is operator.contains:
        return lambda step: (found := read(step)) is not None and value is not None and str(value) in found
    return lambda step: compare(read(step), value)


def _of_any(read: Callable[[ReplayStep], Any], compare: _Compare, value: object, *, negated: bool) -> Condition:
    """``== none`` holds where there are no texts at all, ``!= x`` where none of them is x."""
    if value is None:
        return lambda step: bool(read(step)) == negated
    if negated:
        return lambda step: value not in read(step)
    return lambda step: any(compare(each, value) for each in read(step))
