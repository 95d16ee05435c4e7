"""Conditions over one event and the states around it, as they are typed: ``status == error and tokens > 1000``. Pure.

Owns the grammar and its errors. What may be named stands in ``chatfold.replaying.condition_names``::

    either   = both ("or" both)*
    both     = one ("and" one)*
    one      = "not" one | "(" either ")" | name | name comparison value
    name     = a name of the tables, or "before." and a name of the state
    value    = a word, a number (1_000 is one), true, false, none, or "a text in quotes"

A name alone holds where there is something: a number that is not 0, a word but ``none``, true, one of several. ``==``
of several words holds where one of them is the value. ``contains`` looks for a part, in small and capital letters
alike.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, NoReturn, TypeAlias

from chatfold.replaying.condition_names import (
    EVENT_NAMES,
    STATE_NAMES,
    EventName,
    Kind,
    Moment,
    StateName,
    Value,
    text_of_event,
)
from events.given import checked_kind
from generation.nearest import meant

__all__ = ["Condition", "ConditionError", "Moment", "OpenWord", "parse_condition", "text_of_event"]

BEFORE: Final = "before."

_Test: TypeAlias = Callable[[Moment], bool]


class ConditionError(ValueError):
    """A condition that cannot be read.

    Attributes:
        text: The condition.
        place: Where in it the fault is, from 0 on.
        why: What is wrong.
    """

    def __init__(self, text: str, place: int, why: str) -> None:
        super().__init__(text, place, why)
        self.text = text
        self.place = place
        self.why = why

    def __str__(self) -> str:
        """Say what is wrong, and at which character, from 1 on."""
        return f"condition {self.text!r}, character {self.place + 1}: {self.why}"


class OpenWord(NamedTuple):
    """A name that a condition compares with a word, where any word may be.

    Attributes:
        name: The name as it was typed.
        word: The word.
        read: Gives what the name is at a moment.
    """

    name: str
    word: str
    read: Callable[[Moment], Value]


class Condition:
    """A condition that was read: called with a moment, it says whether it holds there.

    Attributes:
        text: As it was typed.
        needs_content: Whether it reads texts: events must have been read with their contents.
        open: What it compares with words of which only a log can say whether there are such.
    """

    __slots__ = ("_test", "needs_content", "open", "text")

    def __init__(self, text: str, test: _Test, *, needs_content: bool, open: tuple[OpenWord, ...] = ()) -> None:
        self.text: Final = text
        self.open: Final = open
        self._test: Final = test
        self.needs_content: Final = needs_content

    def __call__(self, moment: Moment) -> bool:
        """Return whether it holds."""
        return self._test(moment)

    def __repr__(self) -> str:
        """Show it as it was typed."""
        return f"Condition({self.text!r})"


def parse_condition(text: str) -> Condition:
    """Read a condition.

    Raises:
        ConditionError: It cannot be read; says where, and what may have been meant.
        InvalidValue: It is no text.
    """
    checked_kind(text, str, "$.text", "a condition as text")
    parser = _Parser(text)
    test = parser.whole()
    return Condition(text, test, needs_content=parser.needs_content, open=tuple(parser.open))


class _Token(NamedTuple):
    kind: str
    text: str
    place: int


_TOKENS: Final = re.compile(
    r"""\s*(?:(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<sign>==|!=|<=|>=|<|>|\(|\))|(?P<word>[^\s()"'=!<>]+))""",
    re.DOTALL,
)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_NUMBER: Final = re.compile(r"-?\d[\d_]*\Z")
_CONSTANTS: Final[Mapping[str, bool | None]] = MappingProxyType({"true": True, "false": False, "none": None})
_END: Final = "the end"


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    place = 0
    while text[place:].strip():
        match = _TOKENS.match(text, place)
        if match is None or match.lastgroup is None:
            place += len(text[place:]) - len(text[place:].lstrip())
            raise ConditionError(text, place, _unreadable(text[place]))
        found.append(_Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup)))
        place = match.end()
    return [*found, _Token("end", _END, len(text))]


def _unreadable(sign: str) -> str:
    if sign in "\"'":
        return "the quotation mark is not closed"
    return f"{sign!r} means nothing here; it is == for equal, != for unequal"


class _Parser:
    """Reads one condition from its first token to its last."""

    def __init__(self, text: str) -> None:
        self._text: Final = text
        self._tokens: Final = _tokens(text)
        self._at = 0
        self.needs_content = False
        self.open: Final[list[OpenWord]] = []

    def whole(self) -> _Test:
        test = self._either()
        if self._next.kind != "end":
            self._fail(f"expected and, or, or the end, not {self._next.text!r}")
        return test

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _took(self, *texts: str) -> str | None:
        token = self._next
        if token.kind in ("sign", "word") and token.text in texts:
            self._at += 1
            return token.text
        return None

    def _fail(self, why: str, at: _Token | None = None) -> NoReturn:
        raise ConditionError(self._text, (at or self._next).place, why)

    def _either(self) -> _Test:
        tests = [self._both()]
        while self._took("or"):
            tests.append(self._both())
        return tests[0] if len(tests) == 1 else lambda moment: any(test(moment) for test in tests)

    def _both(self) -> _Test:
        tests = [self._one()]
        while self._took("and"):
            tests.append(self._one())
        return tests[0] if len(tests) == 1 else lambda moment: all(test(moment) for test in tests)

    def _one(self) -> _Test:
        negations = 0
        while self._took("not"):
            negations += 1
        if self._took("("):
            test = self._either()
            if not self._took(")"):
                self._fail(f"expected ), not {self._next.text!r}" if self._next.kind != "end" else "a ) is missing")
        else:
            test = self._comparison()
        return (lambda moment: not test(moment)) if negations % 2 else test

    def _comparison(self) -> _Test:
        token = self._next
        if token.kind != "word" or token.text in _CONSTANTS or token.text in ("and", "or", "contains"):
            self._fail("expected a name" + (f", not {token.text!r}" if token.kind != "end" else ""))
        name, read = self._named(token)
        self._at += 1
        sign = self._took(*_COMPARISONS)
        if sign is None:
            return lambda moment: read(moment) not in _NOTHING
        allowed, compare = _COMPARISONS[sign]
        if name.kind not in allowed:
            self._fail(f"{token.text} is {name.kind.value}, for which there is no {sign}", self._tokens[self._at - 1])
        value = self._value(token.text, name, sign)
        if sign == "==" and name.kind in _SAID and not name.words and isinstance(value, str):
            self.open.append(OpenWord(token.text, value, read))
        return lambda moment: compare(read(moment), value)

    def _named(self, token: _Token) -> tuple[StateName | EventName, Callable[[Moment], Value]]:
        inner = token.text.removeprefix(BEFORE)
        if (state := STATE_NAMES.get(inner)) is not None:
            of_state = state.read
            if inner != token.text:
                return state, lambda moment: of_state(moment.before)
            return state, lambda moment: of_state(moment.after)
        event = EVENT_NAMES.get(token.text)
        if event is None:
            if inner in EVENT_NAMES:
                self._fail(f"{inner} is a name of the event: there is none before", token)
            names = (*EVENT_NAMES, *STATE_NAMES)
            known = meant(inner, names) or f"; there are {', '.join(names)}"
            self._fail(f"there is no name {token.text!r}{known}", token)
        self.needs_content |= event.kind is Kind.TEXT
        return event, event.read

    def _value(self, shown: str, name: StateName | EventName, sign: str) -> Value:
        token = self._next
        if token.kind not in ("word", "text"):
            self._fail("expected a value" + (f", not {token.text!r}" if token.kind != "end" else ""))
        self._at += 1
        quoted = token.kind == "text"
        text = _ESCAPED.sub(r"\1", token.text[1:-1]) if quoted else token.text
        if sign == "contains" or (quoted and name.kind in _SAID):
            return text
        if not quoted and text in _CONSTANTS and (text == "none" or name.kind is Kind.YES_NO):
            return self._constant(text, name, sign, token)
        if name.kind is Kind.NUMBER and not quoted and _NUMBER.match(text):
            return int(text.replace("_", ""))
        if name.kind not in _SAID or quoted:
            self._fail(f"{shown} is {name.kind.value}, which {token.text} is not", token)
        if name.words and text not in name.words:
            self._fail(f"{shown} is never {text}{meant(text, name.words)}", token)
        return text

    def _constant(self, text: str, name: StateName | EventName, sign: str, token: _Token) -> Value:
        if sign not in ("==", "!="):
            self._fail(f"{text} is neither more nor less than anything", token)
        return text if text in name.words else _CONSTANTS[text]


_SAID: Final = (Kind.WORD, Kind.WORDS)
_NOTHING: Final[tuple[Value, ...]] = (None, False, 0, "", "none", ())


def _equal(found: Value, value: Value) -> bool:
    if isinstance(found, tuple):
        return value in found if value is not None else not found
    return found == value


def _ordered(compare: Callable[[int, int], bool]) -> Callable[[Value, Value], bool]:
    """Nothing is neither more nor less than a number."""
    return lambda found, value: isinstance(found, int) and isinstance(value, int) and compare(found, value)


def _contains(found: Value, value: Value) -> bool:
    part = str(value).casefold()
    texts = found if isinstance(found, tuple) else () if found is None else (str(found),)
    return any(part in text.casefold() for text in texts)


_COMPARABLE: Final = (Kind.WORD, Kind.WORDS, Kind.NUMBER, Kind.YES_NO)
_COMPARISONS: Final[Mapping[str, tuple[tuple[Kind, ...], Callable[[Value, Value], bool]]]] = MappingProxyType(
    {
        "==": (_COMPARABLE, _equal),
        "!=": (_COMPARABLE, lambda found, value: not _equal(found, value)),
        "<": ((Kind.NUMBER,), _ordered(lambda found, value: found < value)),
        "<=": ((Kind.NUMBER,), _ordered(lambda found, value: found <= value)),
        ">": ((Kind.NUMBER,), _ordered(lambda found, value: found > value)),
        ">=": ((Kind.NUMBER,), _ordered(lambda found, value: found >= value)),
        "contains": ((Kind.WORD, Kind.WORDS, Kind.TEXT), _contains),
    }
)
