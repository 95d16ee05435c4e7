"""A walk of the whole bounded space, breadth first: every command in every state, and what it showed.

Owns the walk and the checks of each single step; what must be true of the whole is asserted by
``tests.chatstate.test_model_checking``.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator

from chatstate.audit import step_problems
from chatstate.classify import X, classify
from chatstate.decide import case_of, decide
from chatstate.errors import Refusal
from chatstate.invariants import violations
from chatstate.table import TABLE, WORKER_TABLE
from events.control import encode_control
from events.envelope import Recorded
from events.reducer import evolve
from events.replay import ReplayStep
from events.state import ChatState, initial_state
from events.vocabulary import CompactionUndone, MessageEdited
from tests.chatstate.chat import START, Timed, record
from tests.chatstate.space import Key, every_command, key

AUTOMATIC = frozenset(trigger for x, row in WORKER_TABLE.items() for trigger in row if x is not X.INVALID)
"""Triggers that need no human."""


class Walk:
    """What the walk saw.

    Attributes:
        states: The first state met of each sort.
        edges: Steps taken, by (state, trigger, case, outcome).
        refusals: Refusals, by (state, trigger, code).
        problems: What must not be, in words.
        automatic: For each state, the states that lead to it by a step that needs no human.
    """

    def __init__(self) -> None:
        first = initial_state()
        self.states: dict[Key, ChatState] = {key(first): first}
        self.edges: Counter[tuple[X, str, str, X]] = Counter()
        self.refusals: Counter[tuple[X, str, str]] = Counter()
        self.problems: list[str] = []
        self.automatic: dict[Key, set[Key]] = {}
        self._came: dict[Key, tuple[Key, Recorded]] = {}
        self._ahead = deque(self.states)

    def run(self) -> Walk:
        """Walk until nothing new is met."""
        while self._ahead:
            self._leave(self._ahead.popleft())
        return self

    def log(self, place: Key) -> list[Recorded]:
        """Return the events that led to a state."""
        events = []
        while place in self._came:
            place, recorded = self._came[place]
            events.append(recorded)
        return events[::-1]

    def _leave(self, place: Key) -> None:
        state = self.states[place]
        before, length = encode_control(state.control), len(state.need_transcript("a test").messages)
        for timed in every_command(state, state.control.recorded_at or START):
            self._try(place, state, timed)
        # Neither a refusal nor a step into another state leaves a trace in this one.
        if (encode_control(state.control), len(state.need_transcript("a test").messages)) != (before, length):
            self.problems.append(f"{place}: the state was changed by a command given to it")
        if key(state) != place:
            self.problems.append(f"{place}: the state became {key(state)}")

    def _try(self, place: Key, state: ChatState, timed: Timed) -> None:
        x, command = classify(state.control), timed.command
        try:
            decided = decide(state, command, timed.now)
        except Refusal as refusal:
            self.refusals[x, command.trigger, refusal.code] += 1
            if (refusal.trigger, refusal.state) != (command.trigger, x):
                self.problems.append(f"{place}: {command} was refused as {refusal}")
            return
        recorded = record(state, decided)
        after = evolve(state, recorded)
        arrived = key(after)
        case, outcome = case_of(x, command), classify(after.control)
        self.edges[x, command.trigger, case, outcome] += 1
        for problem in _wrong(state, recorded, after, case):
            self.problems.append(f"{place}, {command}: {problem}")
        if command.trigger in AUTOMATIC:
            self.automatic.setdefault(arrived, set()).add(place)
        if arrived not in self.states:
            self.states[arrived] = after
            self._came[arrived] = (place, recorded)
            self._ahead.append(arrived)
            self.problems += [f"{arrived}: {problem}" for problem in violations(after)]


def _wrong(state: ChatState, recorded: Recorded, after: ChatState, case: str) -> Iterator[str]:
    outcome = classify(after.control)
    cell = TABLE[classify(state.control)][recorded.event.trigger]
    if outcome not in getattr(cell, case):
        yield f"{outcome} is not a listed outcome of its case {case}"
    yield from step_problems(ReplayStep(state, recorded, after))
    if not isinstance(recorded.event, MessageEdited | CompactionUndone):
        alone = evolve(ChatState(control=state.control, transcript=None), recorded)
        if alone.control != after.control:
            yield "control folded alone differs from control folded with the transcript"
