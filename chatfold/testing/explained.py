"""What changed between two canonical texts of a chat, in words: what went otherwise, then what that follows from.

Owns reading the text again; its form is owned by ``chatfold.testing.canonical``.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Final, NamedTuple, TypeAlias

from chatfold.testing.canonical import END, LOG, TRANSCRIPT
from events.given import checked_kind

__all__ = ["explain_change"]

SHOWN: Final = 40
"""Lines of the difference that are shown."""

_EVENT: Final = re.compile(r"^ *(?P<version>\d+) (?P<event>\S+) +(?P<moves>\S+(?: -> \S+)?)(?: +(?P<said>.*))?$")
_BELOW: Final = re.compile(r"^ +(?P<what>(?P<kind>agent|tool|D\w+) [^:]+)(?:: (?P<facts>.*))?$")
_FACT: Final = re.compile(r'([\w.]+)=("(?:[^"\\]|\\.)*"|\S+)')
_MEANT: Final = {"schema": "its description or arguments (schema)", "system": "its instruction (system)"}
"""What is said of digests, which say nothing themselves."""
_ALL: Final = "revision"
"""A digest of all that an agent declares: of interest where nothing else says what changed."""

_NEUTRAL: Final = {"true": "false", "false": "true"}
_Facts: TypeAlias = Mapping[str, str]
_Lines: TypeAlias = dict[str, list[str]]


class _Row(NamedTuple):
    """An event of the text, with the decision and the declarations that stand with it."""

    version: int
    event: str
    moves: str
    said: str
    decision: str
    read: _Facts
    declared: Mapping[str, _Facts]

    @property
    def did(self) -> tuple[str, str, str]:
        """What happened, whatever was read for it and said of it."""
        return self.event, self.moves, self.decision


def explain_change(before: str, after: str) -> list[str]:
    """Say in words what changed, then show the lines around it.

    First comes what the chat did otherwise, such as the first decision that is another one. Behind it, or where it did
    all as before, comes what changed before that: what was declared, what decisions read, what events say.

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
    return [*_sentences(before, after), "", *_difference(before, after)]


def _sentences(before: str, after: str) -> Sequence[str]:
    was, now = _parts(before), _parts(after)
    rows = list(zip_longest(_rows(was[LOG]), _rows(now[LOG])))
    same: list[tuple[_Row, _Row]] = []
    parted: list[str] = []
    for one, other in rows:
        if one is None or other is None or one.did != other.did:
            parted.append(_parting(one, other))
            break
        same.append((one, other))
    said = [*parted, *_first(same, _declared), *_first(same, _read), *_first(same, _told)]
    if not parted:
        said += _after_the_log(was, now)
    if said:
        return said
    return ["the log is written otherwise" if was[LOG] != now[LOG] else "the text is not one of a chat"]


def _parting(was: _Row | None, now: _Row | None) -> str:
    if now is None and was is not None:
        return f"the log ends before version {was.version}, where {_what(was)} followed"
    if was is None and now is not None:
        return f"the log goes on at version {now.version} with {_what(now)}, where it ended"
    assert was is not None  # noqa: S101 -- for type checkers: rows that differ are not both missing
    assert now is not None  # noqa: S101 -- see above
    at = f"version {was.version}"
    if was.decision != now.decision and was.decision and now.decision:
        return f"decision at {at} changed from {was.decision} to {now.decision}"
    if was.moves != now.moves and (was.event, was.decision) == (now.event, now.decision):
        return f"{was.event} at {at} leads {now.moves}, and led {was.moves}"
    return f"{at} changed from {_what(was)} to {_what(now)}"


_Look: TypeAlias = Callable[[_Row, _Row], Sequence[str]]


def _first(same: Sequence[tuple[_Row, _Row]], look: _Look) -> Sequence[str]:
    """Return what is found in the first pair of rows in which something is."""
    return next(filter(None, (look(one, other) for one, other in same)), ())


def _declared(was: _Row, now: _Row) -> Sequence[str]:
    return [*_declarations(was, now, but=_ALL)] or [*_declarations(was, now)]


def _declarations(was: _Row, now: _Row, but: str = "") -> Iterator[str]:
    for what in {**was.declared, **now.declared}:
        one, other = was.declared.get(what), now.declared.get(what)
        if one is None or other is None:
            yield f"{what} is {'now' if one is None else 'no longer'} declared at version {was.version}"
        elif found := [said for name, said in _differing(one, other).items() if name != but]:
            yield f"declaration of {what} at version {was.version} changed: {', '.join(found)}"


def _read(was: _Row, now: _Row) -> Sequence[str]:
    found = _differing(was.read, now.read)
    return [f"decision at version {was.version} read {', '.join(found.values())}"] if found else ()


def _told(was: _Row, now: _Row) -> Sequence[str]:
    if was.said == now.said:
        return ()
    beside = _beside(was.said, now.said), _beside(now.said, was.said)
    return [f"{was.event} at version {was.version} changed from {beside[0]} to {beside[1]}"]


def _differing(was: _Facts, now: _Facts) -> dict[str, str]:
    """Return in words what differs, by its name."""
    return {
        name: _MEANT.get(name, f"{name} {_value(was, now, name)} -> {_value(now, was, name)}")
        for name in {**was, **now}
        if was.get(name) != now.get(name)
    }


def _value(facts: _Facts, others: _Facts, name: str) -> str:
    """Return a value of facts; what is neutral is absent: of what is true or false elsewhere the other one."""
    return facts.get(name, _NEUTRAL.get(others.get(name, ""), "none"))


def _after_the_log(was: _Lines, now: _Lines) -> Iterator[str]:
    for heading, what in ((TRANSCRIPT, "the transcript"), (END, "where the chat stands")):
        if was[heading] != now[heading]:
            yield f"all transitions and decisions are as they were; {what} changed{_where(was[heading], now[heading])}"
            return


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


def _parts(text: str) -> _Lines:
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
            row = _Row(int(event["version"]), event["event"], event["moves"], event["said"] or "", "", {}, {})
        elif row is not None and (below := _BELOW.match(line)):
            facts = dict(_FACT.findall(below["facts"] or ""))
            if below["kind"] in ("agent", "tool"):
                row = row._replace(declared={**row.declared, below["what"]: facts})
            else:
                row = row._replace(decision=below["what"], read=facts)
    if row is not None:
        yield row


def _difference(before: str, after: str) -> Iterator[str]:
    lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), "kept", "now", n=2, lineterm=""))
    yield from lines[:SHOWN]
    if len(lines) > SHOWN:
        yield f"... and {len(lines) - SHOWN} more lines"
