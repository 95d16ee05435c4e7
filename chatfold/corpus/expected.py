"""Fold expectations: what a log folded to, version by version, when it was added to a corpus. Pure.

Decisions are compared with those that the log has; a state is in no log. So it is written beside it, in
``NAME.fold``: the first line names the fields that states had then, each other one what a version changed: of control's
facts as a JSON merge patch (RFC 7396), of the transcript part by part. A later release may have more fields; these are
not compared, nor is a transcript where an earlier one had written down control alone. The first line also names the
sections of requests that a rerun made again: what could not be made again then is not asked for later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

from chatfold.corpus.transcripts import NAMES, TranscriptFacts, merged
from chatfold.rerunning.sections import Section
from events.control import Control, Indexes, encode_control
from events.diff import Change, changes
from events.envelope import Recorded
from events.replay import replay
from events.state import ChatState

State: TypeAlias = Mapping[str, Any]
"""Control's facts as JSON; what has its default is left out."""

FORMAT: Final = 1
_TRANSCRIPT: Final = "transcript"
_REQUESTS: Final = "requests"
_EARLIER: Final[tuple[Section, ...]] = ("messages",)
"""The sections that are looked at where it is not written down which."""
_INSIDE: Final = "indexes"
"""The one field that is patched field by field: it has many, and events change few of them."""


class ExpectationError(Exception):
    """What should be the fold expectations of a log is none; the text says where, and why."""


class FoldDiffers(Exception):
    """A log folds to another state than it did.

    Attributes:
        version: The first version that does.
        changes: What differs, from what was written down to what is folded today.
    """

    def __init__(self, version: int, differences: tuple[Change, ...]) -> None:
        super().__init__(version, differences)
        self.version = version
        self.changes = differences

    def __str__(self) -> str:
        """Say where, and what."""
        return f"version {self.version} folds otherwise: {', '.join(map(str, self.changes))}"


def expectations(log: Iterable[Recorded], requests: Iterable[Section] = ()) -> Iterator[bytes]:
    """Yield the lines of a log's fold expectations.

    Args:
        log: The log, from its first event on.
        requests: The sections of requests that a rerun makes again.
    """
    known = {"control": list(Control.__struct_fields__), _INSIDE: list(Indexes.__struct_fields__)}
    yield msgspec.json.encode({"chatfold_fold": FORMAT, **known, _TRANSCRIPT: NAMES, _REQUESTS: list(requests)})
    before: State = {}
    facts = TranscriptFacts()
    for step in replay(log):
        after, transcript = state_of(step.after.control), step.after.need_transcript("write it down")
        line: dict[str, Any] = {"version": step.recorded.version, "changed": _patch(before, after)}
        if patch := facts.changed(transcript):
            line[_TRANSCRIPT] = patch
        yield msgspec.json.encode(line)
        before = after
        facts.take(transcript, patch)


def state_of(control: Control) -> dict[str, Any]:
    """Return control's facts as JSON."""
    state: dict[str, Any] = msgspec.json.decode(encode_control(control))
    return state


def requests_expected(file: Path) -> frozenset[str]:
    """Return the sections of requests that a rerun has to make again, by a log's fold expectations if there are any.

    Raises:
        OSError: They cannot be read.
        ExpectationError: They are none.
    """
    try:
        with file.open("rb") as lines:
            return FoldCheck(lines).requests
    except FileNotFoundError:
        return frozenset(_EARLIER)


class FoldCheck:
    """Compares the states of a log with its expectations, version by version.

    Args:
        lines: The lines of the expectations.

    Attributes:
        requests: The sections of requests that a rerun made again.

    Raises:
        ExpectationError: The first of them is none.
    """

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines: Final = iter(lines)
        header = self._next("line 1")
        if header.get("chatfold_fold") != FORMAT:
            raise ExpectationError(f"line 1 is not that of fold expectations of format {FORMAT}")
        self._fields: Final = frozenset(header["control"])
        self._inside: Final = frozenset(header[_INSIDE])
        self.requests: Final[frozenset[str]] = frozenset(header.get(_REQUESTS, _EARLIER))
        self._transcript: Final = TranscriptFacts(header.get(_TRANSCRIPT, ()))
        self._wanted: dict[str, Any] = {}

    def take(self, version: int, state: ChatState) -> None:
        """Compare the state after an event, which has its transcript.

        Raises:
            FoldDiffers: It is another one than was written down.
            ExpectationError: There is no line for it, or it is of another version.
        """
        line = self._next(f"version {version}")
        if line.get("version") != version:
            raise ExpectationError(f"a line is of version {line.get('version')} where one of version {version} comes")
        self._wanted = _merged(self._wanted, line["changed"])
        today = self._known(state_of(state.control))
        found = list(changes(self._wanted, today)) if today != self._wanted else []
        found += self._compare_transcript(state, line.get(_TRANSCRIPT, {}))
        if found:
            raise FoldDiffers(version, tuple(found))

    def end(self) -> None:
        """Take note that no event comes any more.

        Raises:
            ExpectationError: There is a line for one.
        """
        if next(self._lines, None) is not None:
            raise ExpectationError("there are lines beyond the end of the log")

    def _compare_transcript(self, state: ChatState, wanted: dict[str, Any]) -> Iterator[Change]:
        facts, transcript = self._transcript, state.need_transcript("compare it")
        patch = facts.changed(transcript)
        if patch != wanted:
            before, after = (merged(facts.parts, each) for each in (wanted, patch))
            yield from changes({_TRANSCRIPT: before}, {_TRANSCRIPT: after})
        facts.take(transcript, patch)

    def _known(self, state: State) -> dict[str, Any]:
        known = {name: value for name, value in state.items() if name in self._fields}
        if _INSIDE in known:
            known[_INSIDE] = {name: value for name, value in known[_INSIDE].items() if name in self._inside}
        return known

    def _next(self, where: str) -> dict[str, Any]:
        line = next(self._lines, None)
        if line is None:
            raise ExpectationError(f"{where} is missing")
        try:
            return msgspec.json.decode(line, type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise ExpectationError(f"{where}: {error}") from None


def _patch(before: State, after: State) -> dict[str, Any]:
    patch: dict[str, Any] = {name: None for name in before if name not in after}
    for name, value in after.items():
        if before.get(name) != value:
            patch[name] = _patch(before.get(name) or {}, value) if name == _INSIDE else value
    return patch


def _merged(state: State, patch: State) -> dict[str, Any]:
    merged = {name: value for name, value in state.items() if patch.get(name, value) is not None}
    for name, value in patch.items():
        if value is not None:
            merged[name] = _merged(merged.get(name) or {}, value) if name == _INSIDE else value
    return merged
