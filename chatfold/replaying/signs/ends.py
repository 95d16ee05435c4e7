"""How a turn ended, where that was without its answer; of one that was resumed and ended again the last end counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from chatfold.replaying.signs.lost import said_again, told_as_failed
from chatfold.replaying.signs.models import OVER_LIMIT
from chatfold.replaying.signs.sign import Sign, calls_of, last_end
from chatfold.replaying.turns import Turn
from chatfold.replaying.words import error_name
from events import vocabulary as v
from events.counting import counted
from events.effects import Interrupting
from events.envelope import AT_REST
from events.parts import ToolCallPart
from events.replay import ReplayStep
from generation.decide import EMPTY_ANSWER


def _finished(turn: Turn, cause: str) -> Iterator[tuple[ReplayStep, v.TurnFinished]]:
    """Yield the end of a turn, where it has that cause; of one that was resumed and ended again the last end counts."""
    last = last_end(turn)
    return ((step, event) for step, event in turn.of(v.TurnFinished) if event.cause == cause and step is last)


def step_limit(turn: Turn) -> Iterator[Sign]:
    """An end by max_steps."""
    for step, event in _finished(turn, "max_steps"):
        called = Counter(part.name for part in _calls(turn))
        said = ", ".join(f"{name} {counted(count, 'time')}" for name, count in called.most_common(5))
        steps = event.decision.evidence.get("steps", 0)
        taken = counted(steps if isinstance(steps, int) else 0, "step")
        yield Sign(
            step.recorded.version,
            f"The turn was ended after {taken}, which is all that max_steps allows. "
            f"The model called {said or 'no tool'}.",
            "Where it turned in circles, see what its tools told it; else raise max_steps, or let the user resume.",
        )


def _calls(turn: Turn) -> Iterator[ToolCallPart]:
    return (part for step in turn.steps for part in calls_of(step.recorded.event))


def stopped_by_tool(turn: Turn) -> Iterator[Sign]:
    """An end by a tool that stops the turn."""
    for step, _ in _finished(turn, "stop_after_tool"):
        names = _stoppers(turn)
        yield Sign(
            step.recorded.version,
            f"The turn was ended since {names} stops it (stop_after): the model was not asked again after the result, "
            "so there is no answer to it.",
            "Where the model is to answer, declare the tool without stop_after; this is fixed with each call when it "
            "is made, so it counts from the next call on.",
        )


def _stoppers(turn: Turn) -> str:
    """Return the names of the tools whose results let a turn end."""
    for step in turn.steps:
        calls = step.before.control.indexes.open_calls
        if step.after.control.indexes.stop_after and not step.before.control.indexes.stop_after:
            return ", ".join(f"{call.name} ({call.key})" for call in calls if call.stop_after and not call.result_error)
    return "a tool"


def failed_turn(turn: Turn) -> Iterator[Sign]:
    """An end by an error; where calls are lost with it, or compaction does not help, it is told as that."""
    for step, event in turn.of(v.TurnFailed):
        over_limit = event.decision is not None and event.decision.rule == OVER_LIMIT
        if told_as_failed(turn, step) and not over_limit:
            said = f": {event.error.message.value}" if event.error.message.available else ""
            again = said_again(step)
            yield Sign(
                step.recorded.version,
                f"The turn failed ({error_name(event.error)}){said}" + (f" {again}." if again else ""),
                "The error's detail says more (`chatfold show`). Once that is mended, resume the chat.",
            )


def budget_spent(turn: Turn) -> Iterator[Sign]:
    """An end by the answer to a budget question."""
    for step, _ in _finished(turn, "budget"):
        yield Sign(
            step.recorded.version,
            "The turn was ended since its budget is spent, and the client chose not to raise it.",
            "Send a message with a raised budget, where it shall go on (docs/costs.md).",
        )


def empty_answer(turn: Turn) -> Iterator[Sign]:
    """An end by an answer without parts."""
    for step, event in _finished(turn, "complete"):
        if event.decision.facts.get(EMPTY_ANSWER):
            yield Sign(
                step.recorded.version,
                "The model gave an answer without any content, which ended the turn.",
                "Send a message; see whether the prompt asks for an answer.",
            )


def interrupted(turn: Turn) -> Iterator[Sign]:
    """An end by a user; of one that was resumed and ended again the last."""
    ends = [step for step in turn.steps if _ends_it(step)]
    for step in ends[-1:]:
        actor = step.recorded.envelope.actor.id
        yield Sign(
            step.recorded.version,
            f"{'A user' if actor is None else f'The user {actor}'} ended the turn ({step.recorded.envelope.type}).",
            "Nothing, where that was wanted; resume the chat where it was not.",
        )


def _ends_it(step: ReplayStep) -> bool:
    """Whether a user ends a turn with an event that was not ended by one already."""
    before = step.before.control
    under_way = before.status not in AT_REST and not before.interrupting
    return under_way and isinstance(step.recorded.event, Interrupting)
