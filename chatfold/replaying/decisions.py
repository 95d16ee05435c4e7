"""Decision replay: takes each decision of a log again, on the state just before it, and tells where it drifted. Pure.

Owns when a recorded decision has drifted, and where one is lacking. One pass over the events, with control alone where
the log allows it; nothing else of a chat is needed, least of all a model or a tool.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from chatfold.replaying.policy_reads import Reads
from chatfold.replaying.taken import DECISIONS, Taken, new_decision, recorded_decision
from events.control import Control
from events.diff import Change, changes
from events.envelope import Recorded
from events.given import checked_events, checked_kind
from events.levels import FIRST, NEWEST, level_of, readable_at
from events.records import Decision, Policy
from events.reducer import evolve
from events.state import ChatState, initial_state
from events.vocabulary import (
    Acquired,
    CompactionCommitted,
    CompactionUndone,
    ContextPersisted,
    InterruptionFinished,
    MessageEdited,
    PolicyRecorded,
    Released,
    RetryScheduled,
    StepCommitted,
    ToolResultRecorded,
    TurnFailed,
    TurnFinished,
)
from generation.decide import EMPTY_ANSWER, decide_again, decide_generation_action
from generation.decision import GenerationDecision
from generation.due import decision_due

Decide: TypeAlias = Callable[[ChatState, Policy], GenerationDecision]
"""State and policy to a decision, as ``generation.decide.decide_generation_action``."""

DriftKind: TypeAlias = Literal["rule", "action", "facts", "missing", "undue", "policy"]

DRIFTS: Final[Mapping[DriftKind, str]] = MappingProxyType(
    {
        "rule": "another rule holds",
        "action": "the same rule holds, and something else is done",
        "facts": "the same is done, and something else was read",
        "missing": "a decision is due, and the log has none",
        "undue": "a decision was taken where none is due",
        "policy": "the policy in force is not recorded",
    }
)
"""What each kind of drift means."""

_OUTCOMES: Final = frozenset(
    {StepCommitted, ToolResultRecorded, RetryScheduled, CompactionCommitted, ContextPersisted, InterruptionFinished}
)
"""What a holder records of an effect: none of it comes where a decision is due."""

_MUST_GO_ON: Final = frozenset(
    {Acquired, PolicyRecorded, StepCommitted, CompactionCommitted, ContextPersisted, TurnFinished}
)
"""A decision that is due after these is the next thing that the holder writes, unless it lets the chat go."""

_OVER: Final = frozenset({Acquired, Released, TurnFailed})
"""After these nobody owes a decision that was due before: the holder is another one, or none."""

_WHOLE_HISTORY: Final = frozenset({MessageEdited.type, CompactionUndone.type})
"""Events that cannot be folded without the transcript."""

_EVIDENCE: Final = tuple(f"$.decision.{name}" for name in ("facts", "passed", "policy", "read"))


class Drift(Struct, frozen=True, kw_only=True):
    """One decision that is not what the log says.

    Attributes:
        version: Of the event that carries the decision out; where one is missing, of the event that came instead.
        kind: See ``DRIFTS``.
        then: The decision of the log; None where it has none.
        now: What is decided today; None where none is due, or none can be taken.
        changes: What differs: of the decision under ``$.decision``, of what its event does under ``$.event``,
            ``$.what`` and ``$.calls`` (``chatfold.replaying.taken.Taken``).
    """

    version: int
    kind: DriftKind
    then: Decision | None = None
    now: Decision | None = None
    changes: tuple[Change, ...] = ()

    def __str__(self) -> str:
        """Say it in a line: the decision then and now, or what is wrong, and each thing that differs."""
        said = f"version {self.version}: then {_named(self.then)}, now {_named(self.now)}; {DRIFTS[self.kind]}"
        return "; ".join([said, *map(str, self.changes)])


def _named(decision: Decision | None) -> str:
    return "nothing" if decision is None else f"{decision.rule} {decision.action}"


class WhatIfProblem(Exception):
    """What should be a policy file, or a function, is none; the text says which, and why."""


class WhatIfFailed(Exception):
    """The policy or decide function that was given raised, or gave what it must not.

    Attributes:
        version: Of the event whose decision it was asked for.
    """

    def __init__(self, version: int, why: str) -> None:
        # Both, so that it can be handed over from another process.
        super().__init__(version, why)
        self.version = version
        self.why = why

    def __str__(self) -> str:
        """Say where, and what."""
        return f"version {self.version}: {self.why}"


class WhatIf(Struct, frozen=True, kw_only=True):
    """Another policy, or another way to decide. What is read then differs as a matter of course, and is not compared.

    Attributes:
        decide: Decides in place of the rules; None for the rules.
        policy: From the recorded policy to the one to decide under; None for the recorded one.
    """

    decide: Decide | None = None
    policy: Callable[[Policy], Policy] | None = None


class DecisionCheck:
    """Takes the decisions of one log again, event by event from its first on.

    Args:
        what_if: What would have been decided otherwise; None for what is decided today, and all of it is compared.
        transcript: Whether states have the transcript. Edits and undone compactions need it, and a decide function that
            reads messages.

    Attributes:
        decisions: How many were compared.
    """

    def __init__(self, what_if: WhatIf | None = None, *, transcript: bool = True) -> None:
        self.decisions = 0
        if what_if is not None:
            checked_kind(what_if, WhatIf, "$.what_if", "a WhatIf or None")
        self._what_if: Final = what_if
        self._reads: Final = Reads()
        self._state = initial_state() if transcript else ChatState(control=Control(), transcript=None)
        self._policies: Final[dict[str, Policy]] = {}
        self._level = FIRST  # that the log up to here needs: a chat of a lower level records less
        self._owed: ChatState | None = None  # the state in which the holder has to decide next
        self._lacking = False  # a decision is lacking, and was told: what comes of that is not told again

    def take(self, recorded: Recorded) -> Drift | None:
        """Take the next event; return what drifted there.

        Raises:
            WhatIfFailed: What was given to decide with raised, or gave what it must not.
            TranscriptMissing: The event cannot be folded without the transcript.
            InvalidValue: It is no event.
        """
        checked_kind(recorded, Recorded, "$.recorded", "an event, as decode_log gives them")
        event, kind, before = recorded.event, type(recorded.event), self._state
        if self._level < NEWEST:
            self._level = max(self._level, level_of(event))
        drift = None
        then = recorded_decision(event)
        if then is not None:
            self._settled()
            drift = self._compared(recorded.version, before, then)
        elif kind in _OUTCOMES:
            drift = self._overdue(recorded.version, before)
        self._state = evolve(before, recorded)
        if isinstance(event, PolicyRecorded):
            self._policies[event.digest] = event.policy
        if kind in _OVER:
            self._settled()
        if kind in _MUST_GO_ON and decision_due(self._state.control):
            self._owed = self._state
        return drift

    @property
    def read(self) -> frozenset[str]:
        """Fields of the other policy that decisions of this log read, where the rules decide."""
        return frozenset(self._reads.fields)

    @property
    def unread(self) -> tuple[str, ...]:
        """Fields that the other policy changes and no decision of this log read."""
        return self._reads.unread

    def _settled(self) -> None:
        self._owed, self._lacking = None, False

    def _overdue(self, version: int, before: ChatState) -> Drift | None:
        """Return that an outcome came where a decision was due; None where none was."""
        owed, self._owed = self._owed, None
        if owed is None and decision_due(before.control):
            owed = before
        if owed is None or self._lacking:
            return None
        self._lacking = True
        policy = self._policy(version, owed)
        now = None if policy is None else self._decided(version, owed, policy).decision
        return Drift(version=version, kind="missing", now=now)

    def _compared(self, version: int, before: ChatState, then: Taken) -> Drift | None:
        self.decisions += 1
        if not decision_due(before.control, ended=True):
            return Drift(version=version, kind="undue", then=then.decision)
        policy = self._policy(version, before)
        if policy is None:
            return Drift(version=version, kind="policy", then=then.decision)
        if then.decision.facts.get(EMPTY_ANSWER):  # the engine's own, whoever decides
            now = new_decision(decide_again(then.decision, before, policy))
        else:
            now = self._decided(version, before, policy)
        if self._same(then, now):
            return None
        if self._what_if is None:
            now = replace(now, decision=readable_at(now.decision, self._level))
            if now == then:
                return None
        differ = tuple(changes(then, now, ignore=() if self._what_if is None else _EVIDENCE))
        return Drift(version=version, kind=_kind(then, now), then=then.decision, now=now.decision, changes=differ)

    def _same(self, then: Taken, now: Taken) -> bool:
        return now == then if self._what_if is None else now.does_as(then)

    def _policy(self, version: int, state: ChatState) -> Policy | None:
        """Return the policy to decide under; None where the one in force was not recorded."""
        policy = self._policies.get(state.control.policy)
        if policy is None or self._what_if is None or self._what_if.policy is None:
            return policy
        other: Policy = _asked(version, "policy", (Policy,), self._what_if.policy, policy)
        return other if self._what_if.decide is not None else self._reads.watched(other, policy)

    def _decided(self, version: int, state: ChatState, policy: Policy) -> Taken:
        if self._what_if is None or self._what_if.decide is None:
            return new_decision(decide_generation_action(state, policy))
        return new_decision(_asked(version, "decide", DECISIONS, self._what_if.decide, state, policy))


def _asked(version: int, name: str, kinds: tuple[type, ...], function: Callable[..., Any], *arguments: object) -> Any:
    """Return what somebody's function gives.

    Raises:
        WhatIfFailed: It raised, or gave something else than it has to.
    """
    try:
        given = function(*arguments)
    except WhatIfProblem as error:
        raise WhatIfFailed(version, str(error)) from error
    except (Exception, SystemExit) as error:
        raise WhatIfFailed(version, f"the {name} function raised {type(error).__name__}: {error}") from error
    if not isinstance(given, kinds):
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise WhatIfFailed(version, f"the {name} function gave {type(given).__name__}, and must give {wanted}")
    return given


def _kind(then: Taken, now: Taken) -> DriftKind:
    if then.decision.rule != now.decision.rule:
        return "rule"
    return "facts" if now.does_as(then) and then.decision.action == now.decision.action else "action"


def needs_transcript(types: Iterable[str]) -> bool:
    """Whether a log with events of these types cannot be folded with control alone."""
    return not _WHOLE_HISTORY.isdisjoint(types)


def decision_drifts(log: Iterable[Recorded], what_if: WhatIf | None = None) -> Iterator[Drift]:
    """Yield what drifted in a chat's log, given from its first event on.

    Raises:
        InvalidValue: What is given are no events.
        WhatIfFailed: What was given to decide with raised, or gave what it must not.
    """
    check = DecisionCheck(what_if)
    for recorded in checked_events(log):
        drift = check.take(recorded)
        if drift is not None:
            yield drift
