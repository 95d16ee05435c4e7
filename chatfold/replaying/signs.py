"""What each kind of incident is recognised by in a turn, and what is said of it. Pure.

Each function yields the signs of one kind; which kinds there are, and in which order, is ``incidents``'s matter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from chatfold.replaying.turns import Turn
from chatfold.replaying.words import error_name
from events import vocabulary as v
from events.control import OpenCall, names_of_calls
from events.effects import Effects, Interrupting
from events.envelope import AT_REST
from events.ids import CallKey
from events.parts import ToolCallPart, ToolResultPart
from events.reasons import Reason
from events.records import MODEL_KINDS, AttemptKind
from events.replay import ReplayStep
from generation.decide import EMPTY_ANSWER

RETRIES: Final = 3
"""Failed model calls of a turn from which on they are a storm."""
REPEATS: Final = 3
"""Calls of one tool with the same arguments in a turn from which on they are told."""
CLOSE: Final = 3
"""Answers between two compactions up to which the second is taken for a consequence of the first."""
OVER_LIMIT: Final = "D9"
"""The rule by which a turn fails that compaction does not help."""
COMPACT: Final = "D10"
"""The rule by which a conversation is compacted by itself."""
_SECOND: Final = 1_000_000
_LONGEST: Final = 120
"""Characters of an error of a tool that are told."""


class Sign(Struct, frozen=True):
    """A sign of an incident in a turn: the event that tells most of it, what happened, and what to do about it."""

    version: int
    what: str
    advice: str


def lost_results(turn: Turn) -> Iterator[Sign]:
    """Calls that ran when their worker died or let the chat go, or when their turn was ended."""
    for step in turn.steps:
        unknown = _unknown(step.recorded.event)
        if unknown:
            names = _names(step.before.control.indexes.open_calls, unknown)
            one = len(unknown) == 1
            yield Sign(
                step.recorded.version,
                f"The {'result' if one else 'results'} of {names} {'was' if one else 'were'} lost: "
                f"{_meanwhile(step.recorded.event)}, and whether {'it' if one else 'they'} took effect is not known.",
                'Where the tool may be run again, declare it with crash="rerun"; where it can be asked whether it took '
                "effect, with reconcile (docs/tools.md). Look for what made the worker end at that time, or for how "
                "long the tool runs after it was told to end.",
            )


def _unknown(event: v.Event) -> tuple[CallKey, ...]:
    """Return the calls of which an event says that nobody knows what became of them."""
    if isinstance(event, v.Acquired | v.Released | v.TurnFailed):
        return event.unknown
    answers = event.answers if isinstance(event, Effects) else ()
    return tuple(each.call for each in answers if each.reason is Reason.INTERRUPTED_UNKNOWN)


def _meanwhile(event: v.Event) -> str:
    return _LOST.get(type(event), "the turn was ended while it ran")


_LOST: Final[Mapping[type, str]] = MappingProxyType(
    {
        v.Acquired: "the worker that ran the chat died meanwhile",
        v.Released: "the worker let the chat go meanwhile",
        v.TurnFailed: "the turn failed by something else meanwhile",
    }
)


def run_again(turn: Turn) -> Iterator[Sign]:
    """Calls that ran when their worker died or let the chat go, and that are run once more."""
    for step in turn.steps:
        event = step.recorded.event
        if isinstance(event, v.Acquired | v.Released | v.TurnFailed) and event.again:
            names, one = _names(step.before.control.indexes.open_calls, event.again), len(event.again) == 1
            runs = f"{'runs' if one else 'run'} once more"
            when = f"{runs} if the turn is resumed" if isinstance(event, v.TurnFailed) else runs
            yield Sign(
                step.recorded.version,
                f"{names} {when}: {_meanwhile(event)}, and {'it is' if one else 'they are'} declared safe to repeat.",
                'Nothing, where what is declared with crash="rerun" does no harm twice. Look for what made the worker '
                "end at that time.",
            )


def compaction_loop(turn: Turn) -> Iterator[Sign]:
    """Compactions that do not help: the prompt is over the threshold again at once."""
    for step, failed in turn.of(v.TurnFailed):
        if failed.decision is not None and failed.decision.rule == OVER_LIMIT:
            read = failed.decision.evidence
            yield Sign(
                step.recorded.version,
                f"Compaction does not help: already the first prompt after it had "
                f"{read.get('first_context_tokens', 0):,} tokens, of a threshold of {read.get('threshold', 0):,}, so "
                "the turn was given up.",
                _SMALLER,
            )
            return
    automatic = list(_compactions(turn))
    answers = [
        step.recorded.version for step, event in turn.of(v.StepCommitted) if event.added and _kind(step) == "generate"
    ]
    close = [
        later
        for earlier, later in pairwise(automatic)
        if sum(earlier.recorded.version < answer < later.recorded.version for answer in answers) <= CLOSE
    ]
    if close:
        event = close[-1].recorded.event
        read = event.decision.evidence if isinstance(event, v.AttemptStarted) else {}
        yield Sign(
            close[-1].recorded.version,
            f"The conversation was compacted {len(automatic)} times in one turn, {len(close)} of them after no more "
            f"than {CLOSE} answers: what followed the summary was over the threshold again at once "
            f"({read.get('context_tokens', 0):,} tokens of {read.get('threshold', 0):,}).",
            _SMALLER,
        )


def _compactions(turn: Turn) -> Iterator[ReplayStep]:
    """Yield the start of each automatic compaction that was committed: of several tries the last."""
    started: ReplayStep | None = None
    for step in turn.steps:
        event = step.recorded.event
        if isinstance(event, v.AttemptStarted):
            started = step if event.kind == "compact" and event.decision.rule == COMPACT else None
        elif isinstance(event, v.CompactionCommitted) and started is not None:
            yield started
            started = None


_SMALLER: Final = (
    "See what fills the prompt (`chatfold step`, the prompt's pane): long tool results, a long system prompt, many "
    "tools. Let tools give less, or give the model a larger context_limit or compaction_threshold (docs/compaction.md)."
)


def _kind(step: ReplayStep) -> AttemptKind | None:
    """Return the kind of the attempt that an event ends or tells of."""
    running = step.before.control.running
    return running.kind if running is not None else None


def retry_storm(turn: Turn) -> Iterator[Sign]:
    """Many model calls that failed and were tried again."""
    failed = [(step, event) for step, event in turn.of(v.RetryScheduled) if _kind(step) in MODEL_KINDS]
    if len(failed) < RETRIES:
        return
    waited = sum(event.delay_us for _, event in failed)
    kinds = Counter(error_name(event.error) for _, event in failed)
    said = ", ".join(f"{count} times {kind}" for kind, count in kinds.most_common())
    last = failed[-1][0]
    yield Sign(
        last.recorded.version,
        f"{len(failed)} model calls of the turn failed ({said}), and it waited for {waited / _SECOND:,.1f} s "
        f"before they were tried again, from version {failed[0][0].recorded.version} on; {_after(turn, last)}.",
        "See the service's state and your limits there; where they are reached, use fewer workers or less capacity, or "
        "another model for some chats. max_model_attempts bounds the tries of a turn.",
    )


def _after(turn: Turn, last: ReplayStep) -> str:
    """Say what came after the last of several failures."""
    for step in turn.steps:
        if step.recorded.version <= last.recorded.version:
            continue
        event = step.recorded.event
        if isinstance(event, v.TurnFailed):
            return f"then the turn failed at version {step.recorded.version}"
        if isinstance(event, v.StepCommitted | v.CompactionCommitted):
            return f"then one succeeded at version {step.recorded.version}"
        if isinstance(event, Interrupting):
            return f"then a user ended the turn at version {step.recorded.version}"
    return "the next try is still to come"


def silent_client(turn: Turn) -> Iterator[Sign]:
    """Actions that expired: the client did not answer."""
    for step in turn.steps:
        event = step.recorded.event
        if isinstance(event, v.ActionExpired | v.ActionExpiredTurnEnded):
            went_on = isinstance(event, v.ActionExpired)
            yield Sign(
                step.recorded.version,
                f"The client never answered: {_asked(step)}, and nothing came within "
                f"{_allowed(turn, event.action):,.0f} s. The turn {'went on without it' if went_on else 'was ended'}.",
                "See whether the client was there and showed the question (its stream, its log at that time). How long "
                "it may take is the tool's action_timeout or the agent's, what happens then its on_expiry.",
            )


def open_question(turn: Turn) -> Iterator[Sign]:
    """An action that is open where the log ends."""
    last = turn.steps[-1]
    action = last.after.control.action
    if action is not None:
        yield Sign(
            action.id,
            f"The chat waits for its client: {_asked(last, open_now=True)}.",
            "Let the client answer, or interrupt the turn.",
        )


def _asked(step: ReplayStep, *, open_now: bool = False) -> str:
    """Say what the client was asked in the action that an event ends, or leaves open."""
    control = step.after.control if open_now else step.before.control
    action = control.action
    if action is None:  # pragma: no cover -- an action that ends was open
        return "it was asked something"
    calls = control.indexes.open_calls
    wanted = ", ".join(
        f"{_ASKED[item.kind]} {_names(calls, (item.call,))}" if item.call else _ASKED[item.kind]
        for item in action.items
    )
    return f"at version {action.id} it was asked for {wanted}"


_ASKED: Final = {
    "client_call": "the result of",
    "approval": "approval of",
    "budget": "whether the budget may be raised",
}


def _allowed(turn: Turn, action: int) -> float:
    """Return the seconds that an answer might take."""
    for step, event in turn.of(v.ActionRequired):
        if step.recorded.version == action:
            return (event.deadline - step.recorded.envelope.recorded_at) / _SECOND
    return 0.0


def _finished(turn: Turn, cause: str) -> Iterator[tuple[ReplayStep, v.TurnFinished]]:
    """Yield the end of a turn, where it has that cause; of one that was resumed and ended again the last end counts."""
    last = _last_end(turn)
    return ((step, event) for step, event in turn.of(v.TurnFinished) if event.cause == cause and step is last)


def _last_end(turn: Turn) -> ReplayStep | None:
    ends = (v.TurnFinished, v.TurnFailed, v.InterruptionFinished, v.ActionExpiredTurnEnded)
    return next((step for step in reversed(turn.steps) if isinstance(step.recorded.event, ends)), None)


def step_limit(turn: Turn) -> Iterator[Sign]:
    """An end by max_steps."""
    for step, event in _finished(turn, "max_steps"):
        called = Counter(part.name for part in _calls(turn))
        said = ", ".join(f"{name} {count} times" for name, count in called.most_common(5))
        yield Sign(
            step.recorded.version,
            f"The turn was ended after {event.decision.evidence.get('steps', 0):,} steps, which is all that max_steps "
            f"allows. The model called {said or 'no tool'}.",
            "Where it turned in circles, see what its tools told it; else raise max_steps, or let the user resume.",
        )


def failed_calls(turn: Turn) -> Iterator[Sign]:
    """Calls that ended in an error of their own, which the model was told."""
    failed = list(_failed(turn))
    for version, _, output in failed[-1:]:
        counted = Counter(name for _, name, _ in failed)
        times = {name: "once" if count == 1 else f"{count} times" for name, count in counted.most_common(5)}
        said = ", ".join(f"{name} {often}" for name, often in times.items())
        yield Sign(
            version,
            f"Calls ended in an error, which the model was told: {said}{output}.",
            "See what the tool said, and what the model made of it (`chatfold show`). A tool that is away, or that "
            "does not take what the model gives, says so here alone: the turn goes on.",
        )


def _failed(turn: Turn) -> Iterator[tuple[int, str, str]]:
    """Yield each call that failed: the version that tells so, its tool, and what it ended with."""
    for step in turn.steps:
        names = names_of_calls(step.before.control.indexes.open_calls)
        for part in v.results_of(step.recorded.event):
            if part.failed and part.call in names:
                yield step.recorded.version, names[part.call], _shown(part)


def _shown(part: ToolResultPart) -> str:
    """Return what a call ended with, shortened; nothing where that is not at hand."""
    if part.output is None or not part.output.available:
        return ""
    text = " ".join(str(part.output.value).split())
    return f"; at last: {text[:_LONGEST]}{'...' if len(text) > _LONGEST else ''}"


def repeated_call(turn: Turn) -> Iterator[Sign]:
    """Calls of one tool with the same arguments, where contents are at hand."""
    known: Counter[tuple[str, str]] = Counter()
    last: dict[tuple[str, str], int] = {}
    for step in turn.steps:
        for part in _calls_of(step.recorded.event):
            if part.arguments.available:
                key = (part.name, str(part.arguments.value))
                known[key] += 1
                last[key] = step.recorded.version
    for key, count in known.most_common():
        if count >= REPEATS:
            yield Sign(
                last[key],
                f"The model called {key[0]} {count} times with the same arguments.",
                "See what the tool answered: an answer that says what is wrong and what to do instead ends such loops.",
            )


def _calls(turn: Turn) -> Iterator[ToolCallPart]:
    return (part for step in turn.steps for part in _calls_of(step.recorded.event))


def _calls_of(event: v.Event) -> Iterator[ToolCallPart]:
    """Yield what the model called in a step."""
    if isinstance(event, v.StepCommitted):
        yield from (part for _, part in event.tool_calls(0))


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
    """An end by an error."""
    for step, event in turn.of(v.TurnFailed):
        if step is not _last_end(turn):  # it was resumed, and ended otherwise
            continue
        if event.decision is not None and event.decision.rule == OVER_LIMIT:  # its cause is told as another kind
            continue
        said = f": {event.error.message.value}" if event.error.message.available else ""
        yield Sign(
            step.recorded.version,
            f"The turn failed ({error_name(event.error)}){said}",
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


def _names(calls: tuple[OpenCall, ...], keys: tuple[CallKey, ...]) -> str:
    names = names_of_calls(calls)
    return ", ".join(f"{names.get(key, 'a tool')} ({key})" for key in keys)
