"""The comparison of a rerun with its log: how far they go together, where they part, and which requests are others.

Every event that the engine appends goes by here, in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from chatfold.rerunning.calls import call_today, frozen_changes, not_taken
from chatfold.rerunning.compare import differences
from chatfold.rerunning.filling import lacking
from chatfold.rerunning.sections import DECLARED, Section, SectionChange, section_changes, sections_at
from events import vocabulary as v
from events.diff import MISSING, Change
from events.envelope import Recorded
from events.messages import Message
from events.parts import ToolResultPart
from generation.agents import Agent
from generation.digest import is_digest
from generation.tools.policy import ToolCall
from generation.tools.registry import ToolSet

DifferenceKind: TypeAlias = Literal["event", "extra", "missing", "refused", "fault", "stuck"]


class Difference(Struct, frozen=True, kw_only=True):
    """Where a rerun parts from its log.

    Attributes:
        version: The version.
        kind: ``event``: another one came, or it says something else; ``extra``: one came beyond the log's end;
            ``missing``: none came; ``refused``: what was done from outside is not taken any more; ``fault``: the engine
            failed; ``stuck``: it did not come to rest.
        want: What the log has there; None beyond its end.
        got: What came; None where nothing did.
        changes: What differs between the two.
        said: What else is to be said of it.
    """

    version: int
    kind: DifferenceKind
    want: Recorded | None = None
    got: Recorded | None = None
    changes: tuple[Change, ...] = ()
    said: str = ""

    @property
    def rule(self) -> str | None:
        """The rule by which the log's event was decided, or else the one that came; None where there was none."""
        for each in (self.want, self.got):
            decision = v.decision_of(each.event) if each is not None else None
            if decision is not None:
                return decision.rule
        return None


class Parted(Exception):
    """The rerun has parted from its log.

    Attributes:
        difference: Where, and how.
    """

    def __init__(self, difference: Difference) -> None:
        super().__init__(f"version {difference.version}: {difference.kind}")
        self.difference = difference


class Comparison:
    """Compares what comes with a log.

    Args:
        log: Its events, as they were recorded.
        declared: The agents whose declarations of today are at hand, by name.
        known: By the digest of each policy, the sections of requests that follow from the log, and from what was kept.
        redacted: Whether the log's contents are made up.

    Attributes:
        at: How many events came out again.
        parted: Where it parted; None while it did not.
        sections: Sections of requests that are others.
        compared: Those that were looked at.
        mapped: Whether names stand in the log for digests, so that none of them can be compared.
        lacks_from: The first version whose contents are not all there; None where all are.
    """

    def __init__(
        self,
        log: Sequence[Recorded],
        declared: Mapping[str, Agent],
        known: Mapping[str, frozenset[Section]],
        *,
        redacted: bool = False,
    ) -> None:
        self.at = 0
        self.parted: Difference | None = None
        self.sections: Final[list[SectionChange]] = []
        self.compared: frozenset[Section] = frozenset()
        self.lacks_from: Final = next((each.version for each in log if any(lacking([each]))), None)
        self._log: Final = log
        self._declared: Final = declared
        self._known: Final = known
        self._redacted: Final = redacted
        self.mapped: Final = redacted and any(map(_has_mapped, log))
        self._has_system: Final = any(map(has_system, log))
        self._agent = self._policy = ""
        self._asked_under = ""
        """The policy under which the attempt was started that the next event may tell of."""
        self._kind = ""
        self._tools: Final[set[str]] = set()
        """The tools of policies so far."""

    @property
    def next(self) -> Recorded | None:
        """The event that is to come out next; None behind the last."""
        return self._log[self.at] if self.at < len(self._log) else None

    @property
    def now(self) -> int:
        """The log's time: that of the event that is next, microseconds UTC."""
        return self._log[min(self.at, len(self._log) - 1)].envelope.recorded_at

    def take(self, recorded: Iterable[Recorded]) -> None:
        """Compare what came with what is next, as far as they go together."""
        for each in recorded:
            if self.parted is not None:
                return
            self._compare(each)

    def start(self, call: ToolCall, result: ToolResultPart | None, tools: ToolSet) -> None:
        """Take note of a call that a tool of today's would not take, or would, other than then."""
        whole = self.lacks_from is None or self.at < self.lacks_from
        told = whole if not self._redacted else call.name in self._tools  # else there was no such tool then, either
        if self.parted is None and self._is_declared and told:
            now = call_today(call, result, tools, redacted=self._redacted)
            if now is not None:
                self.sections.append(SectionChange(version=self.at, section="calls", then=call.name, now=now))

    def part(self, kind: DifferenceKind, said: str = "") -> Parted:
        """Return that it parts at the event that is next, unless it parted before."""
        if self.parted is None:
            self.parted = Difference(version=self.at + 1, kind=kind, want=self.next, said=said)
        return Parted(self.parted)

    def stuck(self, recorded: Iterable[Recorded], said: str) -> Parted:
        """Return that the engine went on and on, with the first of the events it made that the log has not."""
        before = self.parted
        self.take(recorded)
        if before is None and self.parted is not None:
            self.parted = replace(self.parted, kind="stuck", said=said)
        return self.part("stuck", said)

    def _compare(self, got: Recorded) -> None:
        want = self.next
        if want is None:
            self.parted = Difference(version=got.version, kind="extra", got=got)
            return
        if isinstance(want.event, v.PolicyRecorded):
            self._agent, self._policy = want.event.policy.agent, want.event.digest
            self._tools.update(tool.name for tool in want.event.policy.tools)
        summary = self._kind == "compact"
        compared = self._compared(want)
        self.compared |= sections_at(want, summary=summary) & compared
        self.sections.extend(section_changes(want, got, compared, summary=summary))
        if isinstance(want.event, v.AttemptStarted):
            self._kind, self._asked_under = want.event.kind, self._policy
        found = differences(
            want,
            got,
            declared=self._is_declared,
            others=self._others(),
            split=self._may_be_split(want),
            redacted=self._redacted,
        )
        if found:
            self.parted = self._refused_calls(
                Difference(version=want.version, kind="event", want=want, got=got, changes=found)
            )
            return
        self.at += 1

    def _refused_calls(self, difference: Difference) -> Difference:
        """Return a difference that says which calls of an event today's tools would not take, and take note of them.

        What the engine has of such a call is no declaration: it is shown as gone, and not as another one.
        """
        want = difference.want
        if want is None or not self._is_declared:
            return difference
        tools, gone, said = ToolSet(self._declared[self._agent].tools), set[str](), list[str]()
        for part, paths in frozen_changes(want, difference.changes):
            at_hand = part.arguments.available and not self._redacted
            why = not_taken(part.name, part.arguments.text if at_hand else None, tools)
            if why is not None:
                self.sections.append(SectionChange(version=want.version, section="calls", then=part.name, now=why))
                gone |= paths
                said.append(why)
        changes = tuple(replace(each, after=MISSING) if each.path in gone else each for each in difference.changes)
        return replace(difference, changes=changes, said="; ".join(dict.fromkeys(said)))

    @property
    def _is_declared(self) -> bool:
        return self._agent in self._declared

    def _others(self) -> frozenset[str]:
        """Return the sections of which what follows is not compared: they are others, or nothing is known of them."""
        texts = frozenset({"system", "tools"})
        if not self._is_declared:
            return texts
        return frozenset(change.section for change in self.sections) | (texts - self.compared)

    def _compared(self, want: Recorded) -> frozenset[Section]:
        """Return the sections that can be compared at an event: digests of a redacted log are of what was said."""
        whole = not self._redacted and (self.lacks_from is None or want.version <= self.lacks_from)
        sections: set[Section] = {"messages", "instruction"} if whole else set()
        known = self._known.get(self._asked_under, frozenset())
        if whole:
            sections |= known
        elif self._redacted and "tools" in known:
            sections |= known - {"options"}  # they say which model is asked, whose name may be mapped
        if self._is_declared:
            sections |= {*DECLARED, "policy"}
        if self.mapped:
            sections -= {*DECLARED}
        return frozenset(sections - {"system"} if self._redacted and self._has_system else sections)

    def _may_be_split(self, want: Recorded) -> bool:
        """Whether an event may be appended apart from those before it: results of calls came together by chance."""
        first = self._log[want.version - 1 - want.envelope.index]
        return isinstance(first.event, v.ToolResultRecorded)


def _has_mapped(recorded: Recorded) -> bool:
    return isinstance(recorded.event, v.PolicyRecorded) and not is_digest(recorded.event.digest)


def has_system(recorded: Recorded) -> bool:
    """Whether an event brings a system text of the chat's own into history, which requests have beside the agent's."""
    added: tuple[Message, ...] = getattr(recorded.event, "added", ())
    return any(message.role == "system" and message.context is None for message in added)
