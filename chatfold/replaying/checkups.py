"""What went wrong in the newest turn of a log as it lies somewhere, read and proved. Work for one of many processes."""

from __future__ import annotations

from msgspec import Struct

from chatfold.replaying.incidents import Incident, IncidentKind, incidents
from chatfold.replaying.logs import Log, LogSource, SourceNotFound, problem_of
from chatstate.errors import Refusal
from events.errors import EventsError
from events.given import checked_kind
from store.errors import StoreError


class Checkup(Struct, frozen=True, kw_only=True):
    """What is known of one log.

    Attributes:
        name: The file, or the chat's id.
        events: How many it has.
        incidents: What happened in its newest turn, as ``incidents`` orders it.
        problem: Why it could not be read, or is not whole; None where neither is so.
    """

    name: str
    events: int = 0
    incidents: tuple[Incident, ...] = ()
    problem: str | None = None

    @property
    def worst(self) -> Incident | None:
        """What is told first: a fault, where one is; None where nothing happened."""
        return next(iter(self.incidents), None)

    @property
    def kinds(self) -> tuple[IncidentKind, ...]:
        """The kinds of what happened in its newest turn, each once."""
        return tuple(dict.fromkeys(each.kind for each in self.incidents))

    @property
    def fault(self) -> bool:
        """Whether something went wrong in its newest turn."""
        return any(each.fault for each in self.incidents)


def check_up(source: LogSource) -> Checkup:
    """Read a log and tell what went wrong in its newest turn; what cannot be read is told as a problem.

    Raises:
        InvalidValue: What is given says not where a log is.
    """
    checked_kind(source, LogSource, "$.source", "where a log is, as find_log(name) gives it")
    try:
        log = source.read()
        return _checked(log)
    except (SourceNotFound, EventsError, Refusal, StoreError, OSError) as error:
        return Checkup(name=source.name, problem=problem_of(source.name, error))


def _checked(log: Log) -> Checkup:
    newest = tuple(each for each in incidents(log.recorded()) if each.turns_ago == 0)
    return Checkup(name=log.name, events=len(log.events), incidents=newest, problem=log.fault())
