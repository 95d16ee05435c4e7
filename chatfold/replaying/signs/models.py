"""Model calls that go wrong in numbers: compactions that do not help, and storms of retries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from chatfold.replaying.signs.sign import SECOND, Sign, kind_of
from chatfold.replaying.turns import Turn
from chatfold.replaying.words import error_name
from events import vocabulary as v
from events.counting import counted
from events.effects import Interrupting
from events.records import MODEL_KINDS, ErrorInfo
from events.replay import ReplayStep

RETRIES: Final = 3
"""Failed model calls of a turn from which on they are a storm."""
CLOSE: Final = 3
"""Answers between two compactions up to which the second is taken for a consequence of the first."""
OVER_LIMIT: Final = "D9"
"""The rule by which a turn fails that compaction does not help."""
COMPACT: Final = "D10"
"""The rule by which a conversation is compacted by itself."""


def compaction_loop(turn: Turn) -> Iterator[Sign]:
    """Compactions that do not help: the prompt is over the threshold again at once."""
    automatic = list(_compactions(turn))
    for step, failed in turn.of(v.TurnFailed):
        if failed.decision is not None and failed.decision.rule == OVER_LIMIT:
            read = failed.decision.evidence
            yield Sign(
                step.recorded.version,
                f"Compaction does not help: already the first prompt after it had "
                f"{read.get('first_context_tokens', 0):,} tokens, of a threshold of {read.get('threshold', 0):,}, so "
                "the turn was given up.",
                _SMALLER,
                _first(automatic),
            )
            return
    answers = [
        step.recorded.version for step, event in turn.of(v.StepCommitted) if event.added and kind_of(step) == "generate"
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
            _first(automatic),
        )


def _first(steps: Sequence[ReplayStep]) -> int | None:
    return steps[0].recorded.version if steps else None


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


def retry_storm(turn: Turn) -> Iterator[Sign]:
    """Many model calls that failed, and were tried again but for the last."""
    failed = [(step, error) for step in turn.steps if (error := _failure(step)) is not None]
    retries = [(step, event) for step, event in turn.of(v.RetryScheduled) if kind_of(step) in MODEL_KINDS]
    if len(failed) < RETRIES or not retries:
        return
    waited = sum(event.delay_us for _, event in retries)
    kinds = Counter(error_name(error) for _, error in failed)
    said = ", ".join(f"{counted(count, 'time')} {kind}" for kind, count in kinds.most_common())
    first = failed[0][0].recorded.version
    yield Sign(
        retries[-1][0].recorded.version,
        f"{len(failed)} model calls of the turn failed ({said}), from version {first} on, and it waited for "
        f"{waited / SECOND:,.1f} s to try again; {_after(turn, retries[-1][0])}.",
        "See the service's state and your limits there; where they are reached, use fewer workers or less capacity, or "
        "another model for some chats. max_model_attempts bounds the tries of a turn.",
        first,
    )


def _failure(step: ReplayStep) -> ErrorInfo | None:
    """Return by what a model call failed that an event tells of."""
    event = step.recorded.event
    if not isinstance(event, v.RetryScheduled | v.TurnFailed) or event.attempt is None:
        return None
    return event.error if kind_of(step) in MODEL_KINDS else None


def _after(turn: Turn, last: ReplayStep) -> str:
    """Say what came after the last of several failures."""
    for step in turn.steps:
        if step.recorded.version <= last.recorded.version:
            continue
        event = step.recorded.event
        if isinstance(event, v.TurnFailed):
            by = "the last of them ended the turn" if _failure(step) is not None else "then the turn failed"
            return f"{by} at version {step.recorded.version}"
        if isinstance(event, v.StepCommitted | v.CompactionCommitted):
            return f"then one succeeded at version {step.recorded.version}"
        if isinstance(event, Interrupting):
            return f"then a user ended the turn at version {step.recorded.version}"
    return "the next try is still to come"
