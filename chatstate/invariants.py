"""What must hold of every state (section 5 of the specification). Facts alone are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from chatstate.classify import X, classify
from events.control import Control
from events.envelope import AT_REST
from events.ids import CallKey, MessageId, call_key, message_of
from events.parts import ToolCallPart, ToolResultPart
from events.state import ChatState
from events.transcript import Messages, TranscriptMessage

INVARIANTS: Final = (
    "Versions have no gaps; `history_version` and `queue_version` are at most `version`.",
    "Neither `recorded_at` nor the epoch ever goes back.",
    "The chat is in one of the execution states above.",
    "There is a holder exactly in `running`, an open action with its deadline exactly in `requires_action`.",
    "There is an error exactly in `error`.",
    "`not_before` is set only in `pending`, with the retry that is scheduled then.",
    "An attempt is under way, and calls run, only in `running`.",
    "A call is possibly done only where its tool can be asked, or run again.",
    "An open action asks for something, and only for calls that are open.",
    "In `waiting` no call is open, no retry is scheduled and no compaction requested.",
    "Every result has its call before it; no call has two results; no user message follows an open call.",
    "No message is twice in history or in the queue.",
    "What control says of the queue, of open calls and of recorded results is what the transcript holds.",
)
"""What ``violations`` and ``chatstate.audit`` look for, in words."""


def violations(state: ChatState, *, history: bool = True) -> list[str]:
    """Return what does not hold, in words; empty for a sound state.

    Args:
        state: The state to check.
        history: Whether to walk the messages too, which costs their number; control alone costs the same at any length.
    """
    control = state.control
    if not control.exists:
        return []
    found = [*_combination(control), *_versions(control), *_companions(control), *_calls(control)]
    if history and state.transcript is not None:
        found += _history(state.transcript.messages, control)
        queued = [item.id for item in control.queue]
        if sorted(queued) != sorted(state.transcript.queued):
            found.append(f"the queue names {queued}, bodies are kept of {sorted(state.transcript.queued)}")
        recorded = {call.key for call in control.indexes.open_calls if call.recorded}
        if recorded != set(state.transcript.results):
            found.append(f"recorded results of {sorted(recorded)}, bodies of {sorted(state.transcript.results)}")
    return found


def _combination(control: Control) -> Iterator[str]:
    if classify(control) is X.INVALID:
        yield (
            f"status {control.status} with {len(control.queue)} queued, interrupting={control.interrupting}, "
            f"archived={control.archived}, holder={control.holder} is not a legal combination"
        )
    if len({item.id for item in control.queue}) != len(control.queue):
        yield "a message is queued twice"


def _versions(control: Control) -> Iterator[str]:
    for name in ("history_version", "queue_version"):
        if getattr(control, name) > control.version:
            yield f"{name} {getattr(control, name)} is over version {control.version}"


def _companions(control: Control) -> Iterator[str]:
    pairs = (
        ("holder", control.holder, "running"),
        ("action", control.action, "requires_action"),
        ("last_error", control.last_error, "error"),
    )
    for name, value, status in pairs:
        if (value is not None) != (control.status == status):
            yield f"{name} is {'set' if value is not None else 'missing'} in {control.status}"
    if control.not_before is not None and control.status != "pending":
        yield f"not_before is set in {control.status}"
    if control.not_before is not None and control.retry is None:
        yield "not_before is set and no retry is scheduled"
    if control.retry is not None and control.status in AT_REST:
        yield f"a retry is scheduled in {control.status}"
    if control.running is not None and control.status != "running":
        yield f"an attempt is under way in {control.status}"
    if control.compaction != "none" and control.status in AT_REST:
        yield f"a compaction is {control.compaction} in {control.status}"
    if control.action is not None and not control.action.items:
        yield "an action is open that asks for nothing"


def _calls(control: Control) -> Iterator[str]:
    open_calls = control.indexes.open_calls
    # Between two imports of a fork a call may be in and its result not yet.
    if control.status == "waiting" and open_calls and not control.importing:
        yield f"calls {', '.join(c.key for c in open_calls)} are open in waiting"
    if control.status != "running":
        # Not at each result of a running batch: it would cost all its calls each time.
        running = [call.key for call in open_calls if call.runs]
        if running:
            yield f"calls {', '.join(running)} run in {control.status}"
        unasked = [
            call.key for call in open_calls if call.possibly_done and call.crash != "rerun" and not call.reconcile
        ]
        if unasked:
            yield f"calls {', '.join(unasked)} are possibly done, and their tools can neither be asked nor run again"
    if control.action is not None:
        keys = {call.key for call in open_calls}
        stray = [item.call for item in control.action.items if item.call is not None and item.call not in keys]
        if stray:
            yield f"the action asks for calls {stray} that are not open"


def _history(messages: Messages, control: Control) -> list[str]:
    found: list[str] = []
    known: set[CallKey] = set()
    unanswered: dict[CallKey, None] = {}
    ids: set[MessageId] = set()
    for item in messages:
        if item.id in ids:
            found.append(f"message {item.id} is in history twice")
        ids.add(item.id)
        if item.message.role == "user" and unanswered:
            found += [f"call {key} is open when user message {item.id} follows" for key in unanswered]
            unanswered.clear()
        for place, part in enumerate(item.message.parts):
            if isinstance(part, ToolCallPart):
                key = call_key(item.id, place)
                known.add(key)
                if part.runner != "provider":
                    unanswered[key] = None
            elif isinstance(part, ToolResultPart):
                found += _result(part, item, known, unanswered)
    if list(unanswered) != [call.key for call in control.indexes.open_calls]:
        found.append(f"history leaves {list(unanswered)} open, control {[c.key for c in control.indexes.open_calls]}")
    return found


def _result(
    part: ToolResultPart, item: TranscriptMessage, known: set[CallKey], unanswered: dict[CallKey, None]
) -> list[str]:
    if part.call not in known:
        return [f"a result of call {part.call} has no call before it"]
    own = message_of(part.call) == item.id
    if part.provider_executed or item.message.boundary is not None:
        return [] if own or not part.provider_executed else [f"call {part.call} has a result in another answer"]
    if part.call not in unanswered:
        return [f"call {part.call} has two results"]
    del unanswered[part.call]
    return []
