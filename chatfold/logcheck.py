"""Is a log as it was written, and was all that it says allowed? Told from the log alone, wherever it lies. Pure.

Owns the checks of a log by itself and their order; what a store keeps beside it is ``verification``'s.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from chatstate import audit
from chatstate.audit import Auditor
from events.codec import decode
from events.digest import GENESIS, ChainCheck
from events.envelope import StoredEvent
from events.errors import DigestMismatch, EventsError
from events.levels import FIRST, level_of
from events.state import ChatState, initial_state

Check: TypeAlias = Literal["form", "digest", "audit", "header", "segment", "blob", "feed", "use"]


class Finding(Struct, frozen=True, kw_only=True):
    """Something that is wrong.

    Attributes:
        chat: The chat's id, or the name of the file.
        version: The event that is wrong, or made it so; None where it is the header.
        check: Which check found it: ``form`` (an event cannot be read), ``digest``, ``audit`` (a step that is not
            allowed, or a state that is not sound), ``header``, ``segment`` (a kept piece of the transcript
            is not what the log says: nothing is lost, it can be made anew), ``blob`` (a large content is missing),
            ``feed`` (an event is out of its place in the feed of all chats), ``use`` (a large content is not noted as
            used, or is for nothing).
        problem: What is wrong.
    """

    chat: str
    version: int | None
    check: Check
    problem: str


class Verdict(Struct, frozen=True, kw_only=True):
    """What is known of one log after all checks. ``digest`` is that of its last event."""

    chat: str
    version: int
    digest: bytes
    findings: tuple[Finding, ...]


_UNSOUND: Final = (EventsError, LookupError, ValueError, TypeError, AttributeError)
"""What folding may raise where events are well formed one by one and make no sense together."""


class LogCheck:
    """The checks of one log, event by event: its form, its digests, and whether all that it says was allowed.

    Args:
        name: What findings call it.

    Attributes:
        version: Events so far.
        digest: That of the last one, as it is stored.
        state: What they fold to; None from where they do not.
        name: As given.
        found: What is wrong.
        level: The lowest level of releases that can read all of it, as far as it can be read.
    """

    def __init__(self, name: str) -> None:
        self.version = 0
        self.digest = GENESIS
        self.state: ChatState | None = initial_state()
        self.found: list[Finding] = []
        self.level = FIRST
        self.name: Final = name
        self._chain: ChainCheck | None = ChainCheck()
        self._auditor: Auditor | None = Auditor()

    def take(self, stored: StoredEvent, blobs: Mapping[str, bytes]) -> None:
        """Check the next event; ``blobs`` are the large contents at hand."""
        self.version += 1
        self.digest = stored.digest
        try:
            if self._chain is not None:
                self._chain.take(stored, blobs)
        except DigestMismatch as error:
            self._chain = None
            self.add("digest", error.version, error.why)
        if self._auditor is None:
            return
        try:
            recorded = decode(stored, blobs=blobs)
        except EventsError as error:
            self._auditor = self.state = None
            self.add("form", self.version, str(error))
            return
        self.level = max(self.level, level_of(recorded.event))
        self._audit(self._auditor, self._auditor.take(recorded))

    def end(self) -> None:
        """Check what the whole log leaves."""
        if self._auditor is not None:
            self._audit(self._auditor, self._auditor.end())

    def add(self, check: Check, version: int | None, problem: str) -> None:
        """Add a finding."""
        self.found.append(Finding(chat=self.name, version=version, check=check, problem=problem))

    def ends_here(self) -> None:
        """Note that the rest cannot be read, so that what it folds to is not known."""
        self._auditor = self.state = None

    def _audit(self, auditor: Auditor, findings: Iterator[audit.Finding]) -> None:
        before = auditor.state
        try:
            for finding in findings:
                self.add("audit", finding.version, finding.problem)
        except _UNSOUND as error:
            # A log that was tampered with may name messages that it never had.
            self._auditor = None
            folded = auditor.state is not before
            what = "the audit ended here" if folded else "it does not fold"
            self.add("audit", self.version, f"{what}: {type(error).__name__}: {error}")
            self.state = None
            return
        self.state = auditor.state


def verify_log(name: str, events: Sequence[StoredEvent], blobs: Mapping[str, bytes]) -> Verdict:
    """Verify a log by itself: form, digests, invariants, audit.

    Args:
        name: What findings call it.
        events: All its events.
        blobs: Large contents at hand; those that are not are not missed.
    """
    log = LogCheck(name)
    for stored in events:
        log.take(stored, blobs)
    log.end()
    return Verdict(chat=name, version=log.version, digest=log.digest, findings=tuple(log.found))
