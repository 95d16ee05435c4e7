"""Decision replay of a whole log as it lies somewhere: read, proved, decided again. Work for one of many processes."""

from __future__ import annotations

from msgspec import Struct

from chatfold.replaying.decisions import DecisionCheck, Drift, WhatIfFailed, needs_transcript
from chatfold.replaying.logs import LOG, Log, LogSource, SourceNotFound, problem_of
from chatfold.replaying.whatif import WhatIfNames
from chatstate.errors import Refusal
from events.errors import EventsError
from events.given import checked_kind
from store.errors import StoreError

_NOTHING = WhatIfNames()


class CheckedLog(Struct, frozen=True, kw_only=True):
    """What decision replay says of one log.

    Attributes:
        name: The file, or the chat's id.
        events: How many it has.
        decisions: How many decisions were taken again.
        drifts: What drifted: the first, or all.
        altered: Why it is not as it was written, and from which version on; None where it is.
        problem: Why it could not be read, or not to its end; None where it could.
        undecided: Whether that is the fault of what was given to decide with, and not the log's.
        unread: Fields that another policy changes and no decision of this log reads, where all were taken again.
    """

    name: str
    events: int = 0
    decisions: int = 0
    drifts: tuple[Drift, ...] = ()
    altered: str | None = None
    problem: str | None = None
    undecided: bool = False
    unread: tuple[str, ...] = ()

    @property
    def sound(self) -> bool:
        """Whether it is as it was written, and could be read to its end."""
        return self.altered is None and self.problem is None


def check_decisions(log: Log, names: WhatIfNames = _NOTHING, *, everything: bool = False) -> CheckedLog:
    """Take the decisions of a log again.

    Args:
        log: It.
        names: What would have been decided otherwise; nothing for what is decided today.
        everything: All drifts and not the first alone.

    Raises:
        WhatIfProblem: What is named is not there, or is not what it has to be.
        InvalidValue: It is no log.
    """
    checked_kind(log, Log, "$.log", LOG)
    what_if = checked_kind(names, WhatIfNames, "$.names", "WhatIfNames").load()
    whole = needs_transcript(event.envelope.type for event in log.events) or names.decider is not None
    check = DecisionCheck(what_if, transcript=whole)
    # A decide function of somebody may read what was said; the rules read nothing of it.
    events = log.recorded() if names.decider is not None else log.bare()
    drifts: list[Drift] = []
    problem, undecided = None, False
    try:
        for drift in filter(None, map(check.take, events)):
            drifts.append(drift)
            if not everything:
                break
    except (EventsError, WhatIfFailed) as error:
        problem, undecided = problem_of(log.name, error), isinstance(error, WhatIfFailed)
    altered = log.altered()
    return CheckedLog(
        name=log.name,
        events=len(log.events),
        decisions=check.decisions,
        drifts=tuple(drifts),
        altered=None if altered is None else f"altered from version {altered.version} on: {altered.why}",
        problem=problem,
        undecided=undecided,
        unread=check.unread if problem is None and (everything or not drifts) else (),
    )


def check_source(source: LogSource, names: WhatIfNames = _NOTHING, *, everything: bool = False) -> CheckedLog:
    """Read a log and take its decisions again, as ``check_decisions``; what cannot be read is told as a problem.

    Raises:
        WhatIfProblem: What is named is not there, or is not what it has to be.
        InvalidValue: What is given says not where a log is.
    """
    checked_kind(source, LogSource, "$.source", "where a log is, as find_log(name) gives it")
    checked_kind(names, WhatIfNames, "$.names", "WhatIfNames")
    try:
        log = source.read()
    except (SourceNotFound, EventsError, Refusal, StoreError, OSError) as error:
        return CheckedLog(name=source.name, problem=problem_of(source.name, error))
    return check_decisions(log, names, everything=everything)
