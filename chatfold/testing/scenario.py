"""Given, when, then over the pure machine: a chat as its log left it, commands, and what must follow.

No engine, no store, no model, no event loop: only ``decide``, ``evolve`` and the decision rules, so a test takes some
microseconds. Owns how a scenario is written and how a failure is told; the rules are the machine's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias, cast, get_args

from msgspec import to_builtins

from chatfold.replaying.decisions import WhatIfProblem
from chatfold.replaying.whatif import PolicyFields, check_decides
from chatfold.testing.asserts import AnyLog, read_events
from chatstate.classify import X, classify
from chatstate.commands import AnyCommand, Fence
from chatstate.decide import decide
from chatstate.errors import Refusal
from chatstate.invariants import violations
from events.envelope import Envelope, Recorded
from events.errors import InvalidValue
from events.given import called, checked_kind, checked_seconds, checked_sequence
from events.ids import CommandId
from events.records import Actor, Policy
from events.reducer import evolve
from events.replay import replay
from events.state import ChatState, initial_state
from events.values import checked_whole
from events.vocabulary import EVENT_TYPES
from generation.decide import RULES, decide_generation_action
from generation.due import decision_due
from generation.nearest import meant

__all__ = ["Scenario", "fence_of", "given"]

Commanded: TypeAlias = AnyCommand | Callable[[ChatState], AnyCommand]
"""A command of ``chatstate.commands``, or what makes one of the chat as it then stands: workers' commands name what
they believe (``fence_of``)."""

_COMMANDS: Final = get_args(AnyCommand)
_STATES: Final = tuple(map(str, X))
_DECIDED: Final = ("none", *(rule.id for rule in RULES))
_EPOCH_US: Final = 1_700_000_000_000_000
_SECOND_US: Final = 1_000_000


def given(log: AnyLog | None = None, *, at: int | None = None) -> Scenario:
    """Return a chat as a log left it.

    Args:
        log: The log; None: a chat that does not exist yet, which ``CreateChat`` begins.
        at: The version up to which it counts; None for all of it.

    Raises:
        InvalidValue: It is nothing that holds a log, or has no such version.
        LogFileError: It is no log file.
        EventsError: An event cannot be read, or the log was altered.
        OSError: The file cannot be read.
    """
    events = [] if log is None else read_events(log)
    if at is not None and checked_whole(at, "$.at") > len(events):
        raise InvalidValue("$.at", f"the log has the versions 0 to {len(events)}, not {at}")
    state = initial_state()
    for step in replay(events[:at]):
        state = step.after
    return Scenario(state)


def fence_of(state: ChatState) -> Fence:
    """Return what a worker that holds the chat believes: its epoch, its history, and the attempt under way.

    Raises:
        InvalidValue: It is no state.
    """
    control = checked_kind(state, ChatState, "$.state", "a state of a chat").control
    attempt = None if control.running is None else control.running.attempt
    return Fence(epoch=control.epoch, history_version=control.history_version, attempt=attempt)


class Scenario:
    """A chat, and what came of the commands that it was given. Made by ``given``; each step returns a new one.

    Attributes:
        state: The chat as it stands.
        events: What the commands gave, since the last ``when``.
        refusal: Why the last of them was refused; None where none was.
    """

    def __init__(
        self,
        state: ChatState,
        *,
        policy: Policy | None = None,
        events: Sequence[Recorded] = (),
        refusal: Refusal | None = None,
        now: int | None = None,
    ) -> None:
        self.state: Final = state
        self.events: Final = tuple(events)
        self.refusal: Final = refusal
        self._under: Final = policy
        self._now: Final = now if now is not None else max(state.control.recorded_at, _EPOCH_US)

    def when(self, *commands: Commanded, after: float = 1.0) -> Scenario:
        """Give commands, one after the other; the first that is refused is the last.

        Args:
            commands: Commands, or functions of the state that make them.
            after: Seconds that go by before each.

        Raises:
            InvalidValue: Something is no command, or ``after`` no time.
        """
        step = round(checked_seconds(after, "$.after") * _SECOND_US)
        state, now, events = self.state, self._now, list[Recorded]()
        for place, command in enumerate(commands):
            now += step
            given = command(state) if callable(command) and not isinstance(command, type) else command
            made = _command(given, f"$.commands[{place}]")
            try:
                decided = decide(state, made, now)
            except Refusal as refusal:
                return self._next(state, events, now, refusal)
            envelope = Envelope(
                version=state.control.version + 1,
                type=decided.event.type,
                schema=decided.event.schema,
                recorded_at=decided.recorded_at,
                actor=Actor(kind="user"),
                source=decided.source,
                dest=decided.dest,
                command=CommandId(f"scenario-{state.control.version + 1}"),
                index=0,
            )
            events.append(Recorded(envelope=envelope, event=decided.event))
            state = evolve(state, events[-1])
        return self._next(state, events, now, None)

    def under(self, **changes: object) -> Scenario:
        """Return the same chat, decided under a policy with other values: ``under(max_steps=3)``.

        A dict in the place of a part of it goes field by field: ``under(model={"context_limit": 9_000})``.

        Raises:
            InvalidValue: A policy has no such field, no decision reads it, or a value is none that it takes.
            ValueError: No policy is recorded in the log.
        """
        try:
            fields = to_builtins(changes)
            policy = PolicyFields("other values", fields)(self._policy())
            check_decides("other values", fields)
        except (WhatIfProblem, TypeError) as problem:  # what is no data at all is a TypeError
            raise InvalidValue("$.changes", f"no policy to decide under: {problem}") from problem
        return Scenario(self.state, policy=policy, events=self.events, refusal=self.refusal, now=self._now)

    def then(
        self, *, state: str | None = None, events: Sequence[str] | None = None, decides: str | None = None
    ) -> Scenario:
        """Assert what came of the commands; none of them may have been refused.

        Args:
            state: The execution state, such as ``W`` or ``R1`` (docs/state-machine.md).
            events: Types of the events that the commands gave.
            decides: Id of the rule that now holds (docs/decision-rules.md), such as ``D6``; ``none`` where no decision
                is due.

        Raises:
            AssertionError: It is otherwise.
            InvalidValue: What should follow is no text, or no list of texts, or there is no such state, event or rule.
        """
        if events is not None:
            checked_sequence(events, "$.events", "a list of types of events")
        for what, words, path, claim in (
            ("execution state", _STATES, "$.state", state),
            ("rule", _DECIDED, "$.decides", decides),
            *(("type of event", tuple(EVENT_TYPES), f"$.events[{at}]", each) for at, each in enumerate(events or ())),
        ):
            if claim is not None:
                _check_word(claim, what, words, path)
        _must(self.refusal is None, f"refused: {self.refusal}")
        stands = str(classify(self.state.control))
        gave = [event.envelope.type for event in self.events]
        unsound = violations(self.state)
        _must(not unsound, f"the state is not sound: {unsound[:1]}")
        _must(state is None or stands == state, f"the chat is in {stands}, not in {state}")
        wanted = gave if events is None else list(events)
        _must(gave == wanted, f"the commands gave {gave}, not {wanted}")
        if decides is not None:
            rule = self._rule()
            _must(rule == decides, f"the rule that holds is {rule}, not {decides}")
        return self

    def refused(self, error: type[Refusal], saying: str = "") -> Scenario:
        """Assert that the last command was refused with an error of this type, whose text has these words.

        Raises:
            AssertionError: It was not, or otherwise.
            InvalidValue: That is no type of refusals, or the words are no text.
        """
        checked_kind(saying, str, "$.saying", "a text")
        given: object = error
        if not isinstance(given, type) or not issubclass(given, Refusal):
            raise InvalidValue("$.error", f"must be a class of refusals, not {error!r:.80}")
        why = self.refusal
        if why is None:
            raise AssertionError(f"nothing was refused: the chat is in {classify(self.state.control)}")
        _must(isinstance(why, error), f"refused with {type(why).__name__}, not {error.__name__}: {why}")
        _must(saying in str(why), f"the refusal says: {why}")
        return self

    def _rule(self) -> str:
        if not decision_due(self.state.control):
            return "none"
        return decide_generation_action(self.state, self._policy()).record.rule

    def _policy(self) -> Policy:
        recorded = self.state.need_transcript("a scenario").policies.get(self.state.control.policy)
        policy = self._under or recorded
        if policy is None:
            raise ValueError("no policy is recorded in the log: a worker records it when it first takes the chat")
        return policy

    def _next(self, state: ChatState, events: Sequence[Recorded], now: int, refusal: Refusal | None) -> Scenario:
        return Scenario(state, policy=self._under, events=events, refusal=refusal, now=now)


def _command(given: object, path: str) -> AnyCommand:
    if not isinstance(given, _COMMANDS):
        what = called(given, shown=True)
        raise InvalidValue(
            path, f"must be a command of chatstate.commands, or a function that makes one, not {what:.80}"
        )
    return cast("AnyCommand", given)


def _check_word(given: object, what: str, words: Sequence[str], path: str) -> None:
    """Refuse a word that there is not: a claim with it could never hold."""
    word = checked_kind(given, str, path, "a text")
    if word not in words:
        hint = meant(word, words)
        raise InvalidValue(
            path, f"there is no {what} {word:.80}{hint + ' T' if hint else '; t'}here are {', '.join(words)}"
        )


def _must(holds: bool, said: str) -> None:  # noqa: FBT001 -- it stands for an assertion
    if not holds:
        raise AssertionError(said)
