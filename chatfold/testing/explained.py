"""What changed between two canonical texts of a chat, in a sentence or two: the first thing that went otherwise.

Owns reading the text again; its form is owned by ``chatfold.testing.canonical``.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from itertools import zip_longest
from typing import Final, NamedTuple

from chatfold.testing.canonical import END, LOG, TRANSCRIPT
from events.given import checked_kind

__all__ = ["explain_change"]

SHOWN: Final = 40
"""Lines of the difference that are shown."""

_EVENT: Final = re.compile(r"^ *(?P<version>\d+) (?P<event>\S+) +(?P<moves>\S+(?: -> \S+)?)(?: +(?P<said>.*))?$")
_DECISION: Final = re.compile(r"^ +(?P<rule>D\w+) (?P<action>[^:]+)(?:: (?P<facts>.*))?$")


class _Row(NamedTuple):
    """An event of the text, and the decision that stands with it."""

    version: int
    event: str
    moves: str
    said: str
    decision: str
    facts: str


def explain_change(before: str, after: str) -> list[str]:
    """Say in words what changed first, then show the lines around it.

    Args:
        before: The canonical text that was kept.
        after: The one of today.

    Returns:
        Lines; none where the texts are the same.

    Raises:
        InvalidValue: One is no text.
    """
    checked_kind(before, str, "$.before", "a canonical text")
    checked_kind(after, str, "$.after", "a canonical text")
    if before == after:
        return []
    return [_sentence(before, after), "", *_difference(before, after)]


def _sentence(before: str, after: str) -> str:
    was, now = _parts(before), _parts(after)
    for one, other in zip_longest(_rows(was[LOG]), _rows(now[LOG])):
        if one != other:
            return _changed(one, other)
    if was[LOG] != now[LOG]:
        return "the log is written otherwise"
    for heading, what in ((TRANSCRIPT, "the transcript"), (END, "where the chat stands")):
        if was[heading] != now[heading]:
            return f"all transitions and decisions are as they were; {what} changed{_where(was[heading], now[heading])}"
    return "the text is not one of a chat"


def _changed(was: _Row | None, now: _Row | None) -> str:
    if now is None and was is not None:
        return f"the log ends before version {was.version}, where {_what(was)} followed"
    if was is None and now is not None:
        return f"the log goes on at version {now.version} with {_what(now)}, where it ended"
    assert was is not None  # noqa: S101 -- for type checkers: rows that differ are not both missing
    assert now is not None  # noqa: S101 -- see above
    at = f"version {was.version}"
    if was.decision != now.decision and was.decision and now.decision:
        return f"decision at {at} changed from {was.decision} to {now.decision}"
    if was.event != now.event:
        return f"{at} changed from {_what(was)} to {_what(now)}"
    if was.moves != now.moves:
        return f"{was.event} at {at} leads {now.moves}, and led {was.moves}"
    if was.facts != now.facts:
        return f"decision at {at} is {was.decision} as before, but read {now.facts or 'nothing'}, no longer {was.facts}"
    return f"{was.event} at {at} changed from {_beside(was.said, now.said)} to {_beside(now.said, was.said)}"


def _beside(said: str, other: str) -> str:
    """Return what is said and was not, or is not, said in the other."""
    others = other.split("  ")
    return "  ".join(word for word in said.split("  ") if word not in others) or "nothing"


def _what(row: _Row) -> str:
    return f"{row.event} ({row.decision})" if row.decision else row.event


def _where(was: list[str], now: list[str]) -> str:
    """Return the message in which two transcripts first differ."""
    heading = ""
    for one, other in zip_longest(was, now, fillvalue=""):
        if one != other:
            break
        heading = one if one.startswith("[") else heading
    new = next((line for line in (one, other) if line.startswith("[")), heading)
    return f", first at {new.partition(']')[0]}]" if new else ""


def _parts(text: str) -> dict[str, list[str]]:
    """Return the lines of each part of a text by its heading."""
    parts: dict[str, list[str]] = {LOG: [], TRANSCRIPT: [], END: []}
    lines: list[str] = []
    for line in text.splitlines():
        if line in parts:
            lines = parts[line]
        else:
            lines.append(line)
    return parts


def _rows(lines: list[str]) -> Iterator[_Row]:
    row: _Row | None = None
    for line in lines:
        if event := _EVENT.match(line):
            if row is not None:
                yield row
            row = _Row(int(event["version"]), event["event"], event["moves"], event["said"] or "", "", "")
        elif row is not None and (decision := _DECISION.match(line)):
            row = row._replace(decision=f"{decision['rule']} {decision['action']}", facts=decision["facts"] or "")
    if row is not None:
        yield row


def _difference(before: str, after: str) -> Iterator[str]:
    lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), "kept", "now", n=2, lineterm=""))
    yield from lines[:SHOWN]
    if len(lines) > SHOWN:
        yield f"... and {len(lines) - SHOWN} more lines"
