"""A log as a script: which events came together, and who made them.

Events of one append are a group, and a group has one driver: somebody outside, a worker that takes the chat, its
holder, or what lets go of a chat whose runner is gone. What became of attempts is ``chatfold.rerunning.fates``' matter.
Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from chatfold.rerunning.fates import Fate, by_loss, fates, kept_message
from chatfold.rerunning.inverse import comes_from_outside
from events import vocabulary as v
from events.content import Json
from events.effects import Effects
from events.envelope import Recorded
from events.errors import InvalidValue
from events.ids import CallKey
from events.ledger import steps_of
from events.parts import HookContextPart, Part
from events.records import Policy, ReleaseReason
from events.values import parse_json_strict
from generation.partials import Leftover
from generation.retry import delay_us

Driver: TypeAlias = Literal["outside", "acquire", "holder", "stray"]
"""Who makes the events of a group: see the module."""


class Group(Struct, frozen=True):
    """Events that were appended together."""

    events: tuple[Recorded, ...]

    @property
    def first(self) -> Recorded:
        """The first of them."""
        return self.events[0]

    @property
    def last(self) -> Recorded:
        """The last of them."""
        return self.events[-1]

    @property
    def driver(self) -> Driver:
        """Who makes them."""
        event = self.first.event
        if comes_from_outside(event):
            return "outside"
        if isinstance(event, v.Acquired):
            return "acquire"
        released = self.released
        if released is not None and released.reason in ("fault", "capacity") and not self.results:
            return "stray"
        lost = any(isinstance(each.event, v.TurnFailed) and by_loss(each.event) for each in self.events)
        return "stray" if lost or self.goes_on else "holder"

    @property
    def goes_on(self) -> bool:
        """Whether an interruption was finished and the chat is held still, with nothing begun.

        A runner begins with the queue in the same append: here there was none.
        """
        last = self.last
        return isinstance(last.event, v.InterruptionFinished) and last.envelope.dest == "running"

    @property
    def acquired(self) -> v.Acquired | None:
        """The acquisition among them."""
        return next((each.event for each in self.events if isinstance(each.event, v.Acquired)), None)

    @property
    def released(self) -> v.Released | None:
        """The release among them."""
        return next((each.event for each in self.events if isinstance(each.event, v.Released)), None)

    @property
    def stop(self) -> ReleaseReason | None:
        """Why the worker was told to let the chat go; None where it was not, or had not its agent."""
        released = self.released
        return None if released is None or released.reason == "agent_not_here" else released.reason

    @property
    def results(self) -> tuple[v.ToolResultRecorded, ...]:
        """The results of calls among them."""
        return tuple(each.event for each in self.events if isinstance(each.event, v.ToolResultRecorded))


_TELL: Final = (v.InterruptionFinished, v.TurnFailed, v.TurnFinished, v.Released)
"""What may tell of an attempt whose holder is gone, beside the start of the next one."""
_TOO_LATE: Final = re.compile(r"gave nothing in (\S+) seconds")


class Script:
    """A log, cut into what happens one after the other.

    Args:
        log: All events of a chat, from the first one on.
    """

    def __init__(self, log: Sequence[Recorded]) -> None:
        self.log: Final = log
        self.groups: Final = tuple(_groups(log))
        self.policies: Final[dict[str, Policy]] = {
            each.event.digest: each.event.policy for each in log if isinstance(each.event, v.PolicyRecorded)
        }
        self.context_timeout: Final = _context_timeout(log)
        self.retry_unit: Final = _retry_unit(log, self.policies)
        self.keeping: Final = _keeping(log)
        self.asking: Final = _asking(log)
        self.arguments: Final = dict(_arguments(log))
        self.nudges: Final = any(isinstance(part, HookContextPart) for each in log for part in _after_answers(each))
        self._fates: Final = dict(fates(log))
        self._places: Final = {each.version: place for place, group in enumerate(self.groups) for each in group.events}

    def behind(self, group: Group) -> Group | None:
        """Return the group behind one; None behind the last."""
        place = self._places[group.first.version] + 1
        return self.groups[place] if place < len(self.groups) else None

    def event(self, version: int) -> v.Event | None:
        """Return the event of a version; None beyond the log's end."""
        return self.log[version - 1].event if 0 < version <= len(self.log) else None

    def fate(self, version: int) -> Fate | None:
        """Return what became of the attempt that the event of a version started; None where it started none."""
        return self._fates.get(version)

    def policy(self, version: int) -> str | None:
        """Return the digest of the policy that was held when the event after a version was made.

        None where there was none: the agent was not there.
        """
        event = self.event(version + 1)
        if isinstance(event, v.PolicyRecorded):
            return event.digest
        if isinstance(event, v.Released) and event.reason == "agent_not_here":
            return None
        decision = None if event is None else v.decision_of(event)
        if decision is not None:
            return decision.policy
        # Nothing was decided: any will do.
        return next(iter(self.policies), "")

    def left(self, version: int) -> Leftover:
        """Return what the attempt left whose holder was gone when the events after a version were made."""
        for place in range(version, len(self.log)):
            each = self.log[place]
            if place > version and each.envelope.index == 0:
                break
            if isinstance(each.event, v.AttemptStarted):
                return Leftover(report=each.event.cut)
            if isinstance(each.event, _TELL):
                return Leftover(message=kept_message(each.event), report=getattr(each.event, "report", None))
        return Leftover()


def _context_timeout(log: Iterable[Recorded]) -> float | None:
    """Return the seconds after which context sources were given up; None where none was."""
    for each in log:
        error = getattr(each.event, "error", None)
        found = _TOO_LATE.search(error.message.text) if error is not None and error.kind == "timeout" else None
        if found is not None:
            return float(found[1])
    return None


def _retry_unit(log: Iterable[Recorded], policies: Mapping[str, Policy]) -> float:
    """Return the seconds that stood for one in the table of waits, which policies of older levels do not record.

    The wait after a first attempt says it, unless the provider asked for another one.
    """
    if any(policy.retry_unit_us is not None for policy in policies.values()):
        return 1.0  # it is not asked for
    for each in log:
        event = each.event
        if isinstance(event, v.RetryScheduled) and event.attempt == 1 and event.error.retry_after_us is None:
            return event.delay_us / delay_us(0)
    return 1.0


def _keeping(log: Iterable[Recorded]) -> frozenset[tuple[str, str]]:
    """Return the models, by provider and name, whose service kept responses to go on from."""
    steps = (step for each in log for step in steps_of(each.event))
    return frozenset((step.provider, step.model) for step in steps if step.kept is not None)


def _groups(log: Iterable[Recorded]) -> Iterator[Group]:
    group: list[Recorded] = []
    for each in log:
        if group and each.envelope.index == 0:
            yield Group(tuple(group))
            group = []
        group.append(each)
    if group:
        yield Group(tuple(group))


def _asking(log: Iterable[Recorded]) -> Mapping[str, Sequence[Json]]:
    """Return the tools whose calls ask a client or a person, with the arguments about which nobody was asked.

    Those were not what the tool takes, which no policy says: such a call is frozen as one that runs here.
    """
    unfit: dict[str, list[Json]] = {}
    asking: frozenset[str] = frozenset()
    for each in log:
        if isinstance(each.event, v.PolicyRecorded):
            tools = each.event.policy.tools
            asking = frozenset(tool.name for tool in tools if tool.runner == "client" or tool.needs_approval)
            unfit |= {name: [] for name in asking - unfit.keys()}
        for _, part in each.event.tool_calls(each.version) if isinstance(each.event, Effects) else ():
            if part.name in asking and part.runner == "local" and not part.needs_approval:
                unfit[part.name] += _json(part.arguments.text)
    return unfit


def _arguments(log: Iterable[Recorded]) -> Iterator[tuple[CallKey, str]]:
    """Yield the calls of a log with the arguments that they are run with: those that were approved come later."""
    for each in log:
        event = each.event
        if isinstance(event, Effects):
            yield from ((key, part.arguments.text) for key, part in event.tool_calls(each.version))
        if isinstance(event, v.ResultsSubmitted):
            yield from ((given.call, given.arguments.text) for given in event.approvals if given.arguments is not None)


def _after_answers(recorded: Recorded) -> Iterator[Part]:
    """Yield the parts of what was said behind an answer, in the event that committed it."""
    event = recorded.event
    for message in event.added[1:] if isinstance(event, v.StepCommitted) else ():
        yield from message.parts


def _json(text: str) -> tuple[Json, ...]:
    try:
        return (parse_json_strict(text),)
    except InvalidValue:
        return ()  # what is no JSON no tool takes
