"""What changed between two canonical texts of a chat, in words: what went otherwise, then what that follows from.

Owns reading the text again; its form is owned by ``chatfold.testing.canonical``.
"""

from __future__ import annotations

import difflib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Final, NamedTuple, TypeAlias

from chatfold.testing.canonical import END, LOG, TRANSCRIPT
from chatfold.testing.canonical_fields import kind_of
from events.given import checked_kind
from events.parts import PARTS

__all__ = ["explain_change"]

SHOWN: Final = 40
"""Lines of the difference that are shown."""

QUOTED: Final = 60
"""Characters of a text that are quoted around what changed in it."""

_EVENT: Final = re.compile(r"^ *(?P<version>\d+) (?P<event>\S+) +(?P<moves>\S+(?: -> \S+)?)(?: +(?P<said>.*))?$")
_DECISION: Final = re.compile(r"^ {6}(?P<what>D\w+ [^:]+)(?:: (?P<facts>.*))?$")
_RECORD: Final = re.compile(r"^ {6}(?P<what>\S[^:|]*)(?:: (?P<facts>.*))?$")
_TEXT: Final = re.compile(r"^ {6}(?P<name>\w*) *\|(?: (?P<line>.*))?$")
_FACT: Final = re.compile(r" *([\w.]+)=")
_VALUE: Final = json.JSONDecoder().raw_decode
_MEANT: Final = {"schema": "its description or arguments (schema)", "system": "its instruction (system)"}
"""What is said of digests, which say nothing themselves."""
_REQUEST: Final = "request"
_DECLARED: Final = ("agent ", "tool ")
_PARTS: Final = frozenset(kind_of(part) for part in PARTS)
_ALL: Final = "revision"
"""A digest of all that an agent declares: of interest where nothing else says what changed."""

_NEUTRAL: Final = {"true": "false", "false": "true"}
_Facts: TypeAlias = Mapping[str, str]
_Lines: TypeAlias = dict[str, list[str]]


class _Row(NamedTuple):
    """An event of the text, with the decision, the declarations and the records that stand with it."""

    version: int
    event: str
    moves: str
    said: _Facts
    decision: str
    read: _Facts
    declared: Mapping[str, _Facts]
    records: Mapping[str, _Facts]

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
    declared = _first(same, _declared)
    told = _first(same, _told_beside_requests if declared else _told)
    said = [*parted, *declared, *_first(same, _read), *told]
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
    return [*_records(was, now)]


def _told_beside_requests(was: _Row, now: _Row) -> Sequence[str]:
    """Return what changed but in the digests of requests, which follow from what was declared."""
    return [*_records(was, now, but=_REQUEST)]


def _records(was: _Row, now: _Row, but: str = "") -> Iterator[str]:
    at = f"at version {was.version}"
    if found := _differing(was.said, now.said):
        yield f"{was.event} {at} changed: {', '.join(found.values())}"
    for what in {**was.records, **now.records}:
        one, other = was.records.get(what), now.records.get(what)
        if what == but:
            continue
        if one is None or other is None:
            yield f"{what} is {'now' if one is None else 'no longer'} told {at}"
        elif found := _differing(one, other):
            yield f"{what} {at} changed: {', '.join(found.values())}"


def _differing(was: _Facts, now: _Facts) -> dict[str, str]:
    """Return in words what differs, by its name."""
    return {
        name: _MEANT.get(name, f"{name} {_quoted(_value(was, now, name), _value(now, was, name))}")
        for name in {**was, **now}
        if was.get(name) != now.get(name)
    }


def _value(facts: _Facts, others: _Facts, name: str) -> str:
    """Return a value of facts; what is neutral is absent: of what is true or false elsewhere the other one."""
    return facts.get(name, _NEUTRAL.get(others.get(name, ""), "none"))


def _quoted(was: str, now: str) -> str:
    """Return what was and is, of long texts what stands where they part."""
    start = 0
    if max(len(was), len(now)) > QUOTED:
        start = max(0, _alike(was, now) - QUOTED // 3)
    ends = (
        f"{'...' if start else ''}{text[start : start + QUOTED]}{'...' * (len(text) > start + QUOTED)}"
        for text in (was, now)
    )
    return " -> ".join(ends)


def _alike(was: str, now: str) -> int:
    """Return how many characters two texts begin with alike."""
    return next((place for place, (one, other) in enumerate(zip_longest(was, now)) if one != other), len(was))


def _after_the_log(was: _Lines, now: _Lines) -> Iterator[str]:
    for heading, what in ((TRANSCRIPT, "the transcript"), (END, "where the chat stands")):
        if was[heading] != now[heading]:
            yield f"all transitions and decisions are as they were; {what} changed{_where(was[heading], now[heading])}"
            return


def _what(row: _Row) -> str:
    return f"{row.event} ({row.decision})" if row.decision else row.event


def _where(was: list[str], now: list[str]) -> str:
    """Return the message in which two transcripts first differ."""
    heading = ""
    for one, other in zip_longest(was, now, fillvalue=""):
        if one != other:
            break
        heading = one if one.startswith("[") else heading
    first = [line for line in (one, other) if line]
    new = first[0] if all(line.startswith("[") for line in first) else heading
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
    below: list[str] = []
    event: re.Match[str] | None = None
    for line in lines:
        if found := _EVENT.match(line):
            if event is not None:
                yield _row(event, below)
            event, below = found, []
        else:
            below.append(line)
    if event is not None:
        yield _row(event, below)


def _row(event: re.Match[str], below: list[str]) -> _Row:
    actor, _, said = (event["said"] or "").partition("  ")
    decision, read = "", _facts("")
    declared: dict[str, _Facts] = {}
    records = _Records()
    for line in below:
        if line_of := _TEXT.match(line):
            records.text(line_of["name"], line_of["line"] or "")
        elif line_of := _DECISION.match(line):
            decision, read = line_of["what"], _facts(line_of["facts"])
        elif line_of := _RECORD.match(line):
            if line_of["what"].startswith(_DECLARED):
                declared[line_of["what"]] = _facts(line_of["facts"])
            else:
                records.record(line_of["what"], _facts(line_of["facts"]))
    found = records.read()
    by = {"actor": actor, **_facts(said), **found.pop("")}
    return _Row(int(event["version"]), event["event"], event["moves"], by, decision, read, declared, found)


class _Records:
    """The records below an event by what they are called, as they are read from the lines."""

    def __init__(self) -> None:
        self._found: dict[str, dict[str, str]] = {"": {}}
        self._texts: dict[tuple[str, str], list[str]] = {}
        self._alike = Counter[str]()
        self._what, self._key, self._name = "", "", ""

    def record(self, what: str, facts: dict[str, str]) -> None:
        """Take the first line of a record; another one that is called the same gets a number."""
        self._alike[what] += 1
        self._what, self._name = what, ""
        self._key = what if self._alike[what] == 1 else f"{what} ({self._alike[what]})"
        self._found[self._key] = facts

    def text(self, name: str, line: str) -> None:
        """Take a line of a text, which goes on where no name is given. The text of a part may be all there is of it."""
        if name in _PARTS and (self._what != name or (self._key, name) in self._texts):
            self.record(name, {})
        self._name = name or self._name
        self._texts.setdefault((self._key, self._name), []).append(line)

    def read(self) -> dict[str, dict[str, str]]:
        """Return what was read; under no name what is the event's own."""
        for (key, name), lines in self._texts.items():
            self._found[key][name] = json.dumps("\n".join(lines), ensure_ascii=False)
        return self._found


def _facts(said: str | None) -> dict[str, str]:
    """Return the facts of a line, each as it is written; a line that is none of ours has those before it ends."""
    facts, at = dict[str, str](), 0
    while found := _FACT.match(said or "", at):
        try:
            _, at = _VALUE(said or "", found.end())
        except ValueError:
            break
        facts[found[1]] = (said or "")[found.end() : at]
    return facts


def _difference(before: str, after: str) -> Iterator[str]:
    lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), "kept", "now", n=2, lineterm=""))
    yield from lines[:SHOWN]
    if len(lines) > SHOWN:
        yield f"... and {len(lines) - SHOWN} more lines"
