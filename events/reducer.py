"""The reducer: ``evolve(state, recorded) -> state``, total over well-formed events. It judges nothing.

Most of an event's meaning is its plain effects, applied by the draft for all events alike; the tables of
``events.reducer_users``, ``events.reducer_keeping`` and ``events.reducer_workers`` add what is special to a type. What
a change of status or history takes with it is cleared by default in ``_settle``: a mark that shall survive must be
kept there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, get_args

from msgspec import Struct

from events import reducer_keeping, reducer_users, reducer_workers
from events import vocabulary as v
from events.control import Control
from events.draft import Draft
from events.effects import Effects, EventBase, Interrupting
from events.envelope import Envelope, Recorded, Status
from events.errors import TranscriptMissing
from events.reducer_shared import Specials
from events.state import ChatState, initial_state

# Control leaves out what is its default, and the encoder knows a default by identity: a status read from a database
# column equals it and is not it, and the same fold would have other bytes.
_STATUS: Final[dict[Status, Status]] = {status: status for status in get_args(Status)}


def evolve(state: ChatState, recorded: Recorded) -> ChatState:
    """Return the state after ``recorded``. ``state`` stays valid.

    Raises:
        TranscriptMissing: The event is an edit or an undone compaction, and ``state`` holds control alone.
    """
    return fold((recorded,), state)


def fold(events: Iterable[Recorded], state: ChatState | None = None) -> ChatState:
    """Return the state after all ``events``, from ``state`` or from before the first event; linear in their number.

    Raises:
        TranscriptMissing: An edit or an undone compaction is among them, and ``state`` holds control alone.
    """
    draft = Draft(initial_state() if state is None else state)
    control, kinds, apply = draft.control, _KINDS, draft.apply
    # A state that was folded has the companions of its status, and no others.
    status = control.status
    envelope = kind = None
    history_version, updated_at = control.history_version, control.updated_at
    bare = False  # whether what belongs to an attempt on the history was cleared, and no event gave any since
    for recorded in events:
        event, envelope = recorded.event, recorded.envelope
        kind = kinds[type(event)]
        if kind.whole_history and not draft.loaded:
            raise TranscriptMissing(event.trigger)
        if kind.effects:
            apply(event, envelope.version)  # type: ignore[arg-type]  # its kind says that it is one
        if kind.special is not None:
            kind.special(draft, event, envelope)
        if kind.gives:
            bare = False
        changed = draft.history_changed
        if changed:
            draft.history_changed = False
            history_version = envelope.version
            if not bare:
                _clear_attempt(control)
                bare = True
        if changed or draft.queue_changed or kind.creates or envelope.actor.kind == "user":
            updated_at = envelope.recorded_at
        if draft.queue_changed or draft.turn_opened or kind.settles or draft.hint is not None:
            _settle(draft, kind, envelope)
        # A status that stays has its companions already, but for those that the event itself gave.
        if status != envelope.dest or kind.gives:
            status = envelope.dest
            _clear_companions(control, status)
    if envelope is not None and kind is not None:
        # What each event says anew: of a run of events the last one's word counts.
        control.version, control.recorded_at, control.status = envelope.version, envelope.recorded_at, _STATUS[status]
        control.importing = kind.importing
        control.history_version, control.updated_at = history_version, updated_at
    return draft.freeze()


def _clear_attempt(control: Control) -> None:
    """Clear what belongs to the attempts on one history."""
    control.attempt = control.model_attempts = control.takeovers = 0
    control.running = None
    control.retry = control.not_before = None


def _settle(draft: Draft, kind: _Kind, envelope: Envelope) -> None:
    control = draft.control
    if kind.clears_retry:
        control.retry = control.not_before = None
    if draft.queue_changed:
        draft.queue_changed = False
        control.queue_version = envelope.version
    opened, draft.turn_opened = draft.turn_opened, False
    if opened and not kind.imports:
        control.owed = True
        control.turns += 1
        control.compaction = "none"
        control.budget_ended = False
    if kind.ends_turn and not (kind.interrupting and envelope.dest == "running"):
        control.compaction = "none"
        control.budget_ended = False
        control.retry = None
    if draft.hint is not None and control.compaction != "requested":
        draft.hint = None


def _clear_companions(control: Control, status: Status) -> None:
    # Each status has its companions (section 1 of the specification); leaving the status drops them.
    if status != "running":
        control.holder = None
        control.interrupting = False
        control.running = None
    if status != "pending":
        control.not_before = None
    if status != "requires_action":
        control.action = None
    if status != "error":
        control.last_error = None


_SPECIAL: Final[Specials] = reducer_users.SPECIAL | reducer_keeping.SPECIAL | reducer_workers.SPECIAL

_GIVE: Final = frozenset(
    {
        v.Acquired,
        v.AttemptStarted,
        v.ActionRequired,
        v.MessageSentInterrupting,
        v.QueuedMessagePromoted,
        v.Reconciled,
        v.Released,
        v.RetryScheduled,
        v.TurnFailed,
        v.TurnInterrupted,
    }
)
"""Events whose special part sets holder, interrupting, running, not_before, retry, action, last_error or a count of
attempts or takeovers: what leaving a status or a history clears."""


class _Kind(Struct, frozen=True, kw_only=True):
    """What the reducer asks of an event's type, found out once."""

    special: Callable[[Draft, Any, Envelope], None] | None
    effects: bool
    whole_history: bool
    interrupting: bool
    clears_retry: bool
    ends_turn: bool
    imports: bool
    importing: bool
    creates: bool
    gives: bool
    settles: bool


def _kind(event: type[EventBase]) -> _Kind:
    clears_retry = issubclass(event, Interrupting) or event is v.AttemptStarted
    ends_turn = event in v.ENDS_TURN
    return _Kind(
        special=_SPECIAL.get(event),
        effects=issubclass(event, Effects),
        whole_history=event in (v.MessageEdited, v.CompactionUndone),
        interrupting=issubclass(event, Interrupting),
        clears_retry=clears_retry,
        ends_turn=ends_turn,
        imports=event is v.MessagesImported,
        importing=event in (v.ChatForked, v.MessagesImported),
        creates=event in (v.ChatCreated, v.ChatForked),
        gives=event in _GIVE,
        settles=clears_retry or ends_turn,
    )


_KINDS: Final[dict[type[EventBase], _Kind]] = {event: _kind(event) for event in v.EVENT_TYPES.values()}
