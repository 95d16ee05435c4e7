"""Numbers of contents, replaced digit by digit: as many digits, sign, point and exponent where they were.

A zero stays, since it says nothing; of a float those at its ends do. Of an exponent up to three digits stay, for they
say how large a number is; more of them say no size that there is, but may be somebody's number. A number that reads
back as it was written does so afterwards, and two different ones stay different.
"""

from __future__ import annotations

import math
import re
from itertools import count
from typing import Final, final

import msgspec

from chatfold.redacting.avoiding import avoided
from chatfold.redacting.errors import RedactionError
from chatfold.redacting.streams import Streams

NUMBER: Final = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
"""A number of JSON, as an expression."""

_PARTS: Final = re.compile(r"(-?)([0-9]+)(?:\.([0-9]+))?((?:[eE][+-]?0*)?)([0-9]*)")
_DIGITS_OF_SIZE: Final = 3
"""Digits that an exponent has at most."""
_TELLING: Final = 4
"""Digits from which on a number must not be its own stand-in: of fewer there may be no other one left."""
_NONZERO: Final = bytes(0x31 + byte % 9 for byte in range(256))
_DIGITS: Final = bytes(0x30 + byte % 10 for byte in range(256))
_MOST: Final = 20_000
"""Attempts after which no number is left: of 17 digits, one in twenty is written as its float is."""


@final
class Numbers:
    """Replacements of the numbers of one log.

    Args:
        streams: Where they come from.
        avoid: Finds what must not be in one.
    """

    __slots__ = ("_avoid", "_known", "_streams", "_used")

    def __init__(self, streams: Streams, avoid: re.Pattern[str] | None = None) -> None:
        self._streams: Final = streams
        self._avoid: Final = avoided() if avoid is None else avoid
        self._known: Final[dict[str, str]] = {}
        self._used: Final[set[str]] = set()

    def replace(self, token: str) -> str:
        """Return the number that stands for ``token`` (as JSON writes it) from now on.

        Raises:
            RedactionError: None of its form is left.
        """
        known = self._known.get(token)
        if known is None:
            known = self._known[token] = self._new(token)
            self._used.add(known)
        return known

    def _new(self, token: str) -> str:
        match = _PARTS.fullmatch(token)
        if match is None or not any(_told(match)):
            return token
        canonical, finite = _is_canonical(token), _is_finite(token)
        for attempt in count():
            if attempt == _MOST:
                raise RedactionError(None, f"there are no more numbers of {len(token)} characters")
            candidate = self._candidate(token, match, attempt)
            if candidate in self._used or self._avoid.search(candidate) or _is_finite(candidate) is not finite:
                continue
            if _is_itself(match, candidate):
                continue
            if not canonical or _is_canonical(candidate):
                return candidate
        raise AssertionError("the loop has no end")  # pragma: no cover

    def _candidate(self, token: str, match: re.Match[str], attempt: int) -> str:
        sign, whole, fraction, mark, power = match.groups()
        drawn = self._streams.take("number", token, len(token), attempt)
        exponent = mark + (power if len(power) <= _DIGITS_OF_SIZE else _digits(drawn[-len(power) :]))
        if fraction is None and not exponent:
            return sign + _digits(drawn[: len(whole)])
        # Of a float the zeros at both ends say how large it is, and others there would be written otherwise.
        digits = whole + (fraction or "")
        core = digits.strip("0")
        before = len(digits) - len(digits.lstrip("0"))
        made = _digits(drawn[: len(core)])
        if len(core) > 1:
            made = made[:-1] + _nonzero(drawn[len(core) - 1 : len(core)])
        digits = digits[:before] + made + digits[before + len(core) :]
        point = "" if fraction is None else f".{digits[len(whole) :]}"
        return f"{sign}{digits[: len(whole)]}{point}{exponent}"


def _nonzero(drawn: bytes) -> str:
    return drawn.translate(_NONZERO).decode()


def _digits(drawn: bytes) -> str:
    """Return digits of which the first is no zero."""
    return _nonzero(drawn[:1]) + drawn[1:].translate(_DIGITS).decode()


def _told(match: re.Match[str]) -> tuple[str, str]:
    """Return the digits of a number that are replaced, and those of its exponent: none of what stays."""
    _, whole, fraction, _, power = match.groups()
    return (whole + (fraction or "")).strip("0"), power if len(power) > _DIGITS_OF_SIZE else ""


def _is_itself(match: re.Match[str], candidate: str) -> bool:
    """Whether a number or its exponent would stay, and has so many digits that it need not."""
    made = _PARTS.fullmatch(candidate)
    pairs = () if made is None else zip(_told(match), _told(made), strict=True)
    return any(len(one) >= _TELLING and one == other for one, other in pairs)


def _is_canonical(token: str) -> bool:
    """Whether a number is written as it would be stored."""
    try:
        return msgspec.json.encode(msgspec.json.decode(token)) == token.encode()
    except (msgspec.MsgspecError, ValueError, OverflowError):
        return False


def _is_finite(token: str) -> bool:
    return math.isfinite(float(token))
