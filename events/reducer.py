"""The reducer: ``evolve(state, recorded) -> state``, total over well-formed events. It judges nothing.

Most of an event's meaning is its plain effects, applied by the draft for all events alike; the table below adds what
is special to a type. What a change of status or history takes with it is cleared by default in ``_settle``: a mark
that shall survive must be kept there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, get_args

from msgspec import Struct

from events import vocabulary as v
from events.control import Control, RunningAttempt
from events.draft import Draft
from events.effects import Effects, EventBase, Interrupting
from events.envelope import Envelope, Recorded, Status
from events.errors import TranscriptMissing
from events.ids import CallKey
from events.indexes import mark_calls
from events.messages import Message
from events.parts import ToolResultPart
from events.reasons import Reason
from events.records import AttemptReport, OpenAction, RetryState, share_policy, sole_policy
from events.sharing import share_name
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


def _spend(draft: Draft, report: AttemptReport | None, added: tuple[Message, ...] = ()) -> None:
    carriers: tuple[Message | AttemptReport, ...] = added if report is None else (*added, report)
    for carrier in carriers:
        step = carrier.step
        if step is not None:
            draft.usages.append(step.usage)
            if step.cost_micros:
                draft.control.cost_micros += step.cost_micros


def _lose_calls(draft: Draft, unknown: tuple[CallKey, ...]) -> None:
    # What ran on a worker that is gone or gave up: some outcomes are unknown for good, the rest starts anew, and where
    # the tool can be asked what became of a call, it is asked first.
    for call in unknown:
        draft.record_result(ToolResultPart(call=call, is_error=True, reason=Reason.WORKER_LOST))
    indexes = draft.control.indexes
    if not indexes.open_calls:
        return
    restart = frozenset(call.key for call in indexes.open_calls if call.runs)
    if restart:
        asked = frozenset(call.key for call in indexes.open_calls if call.runs and call.reconcile)
        indexes.open_calls = mark_calls(indexes.open_calls, restart, started=False)
        indexes.open_calls = mark_calls(indexes.open_calls, asked, possibly_done=True)


def _born(draft: Draft, event: v.ChatCreated | v.ChatForked, envelope: Envelope) -> None:
    control = draft.control
    control.chat, control.owner, control.agent = event.chat, event.owner, share_name(event.agent)
    control.release, control.flags = share_name(event.release), event.flags
    control.labels = event.labels
    control.model, control.effort = event.model, event.effort
    control.created_at = envelope.recorded_at
    draft.title = event.title


def _created(draft: Draft, event: v.ChatCreated, envelope: Envelope) -> None:
    _born(draft, event, envelope)
    draft.control.parent = event.parent


def _forked(draft: Draft, event: v.ChatForked, envelope: Envelope) -> None:
    _born(draft, event, envelope)
    draft.control.owed = event.owed


def _ends_turn_now(draft: Draft, event: Interrupting, envelope: Envelope) -> None:
    control = draft.control
    control.interrupting = envelope.dest == "running"
    if event.epoch is not None:
        control.epoch = event.epoch
    _spend(draft, event.report, event.added)


def _queued_edited(draft: Draft, event: v.QueuedMessageEdited, _: Envelope) -> None:
    draft.edit_queued(event.id, event.message)


def _edited(draft: Draft, _event: v.MessageEdited, _: Envelope) -> None:
    draft.control.interrupting = False


def _submitted(draft: Draft, event: v.ResultsSubmitted, _: Envelope) -> None:
    control = draft.control
    control.owed = True
    approved = frozenset(answer.call for answer in event.approvals if answer.approved)
    control.indexes.open_calls = mark_calls(control.indexes.open_calls, approved, approved=True)
    given = {a.call: a.arguments for a in event.approvals if a.arguments is not None and draft.loaded}
    if given:
        draft.own("arguments").update(given)
    if event.budget is not None:
        control.budget_ended = event.budget.end_turn
        control.budget = event.budget.raised or control.budget


def _resumed(draft: Draft, _event: v.TurnResumed, _: Envelope) -> None:
    control = draft.control
    control.owed = True
    control.model_attempts = control.takeovers = 0
    control.retry = control.not_before = None
    control.indexes.steps = 0
    control.indexes.stop_after = False


def _compaction_requested(draft: Draft, event: v.CompactionRequested, _: Envelope) -> None:
    draft.control.compaction = "requested"
    draft.control.model_attempts = draft.control.takeovers = 0
    draft.hint = event.hint


def _cleared(draft: Draft, _event: v.ContextCleared, _: Envelope) -> None:
    draft.control.owed = False


def _archived(draft: Draft, _event: v.ChatArchived, _: Envelope) -> None:
    draft.control.archived = True


def _unarchived(draft: Draft, _event: v.ChatUnarchived, _: Envelope) -> None:
    draft.control.archived = False


def _title(draft: Draft, event: v.TitleChanged, _: Envelope) -> None:
    draft.title = event.title


def _labels(draft: Draft, event: v.LabelsChanged, _: Envelope) -> None:
    draft.control.labels = event.labels


def _model(draft: Draft, event: v.ModelChanged, _: Envelope) -> None:
    draft.control.model, draft.control.effort = event.model, event.effort


def _agent(draft: Draft, event: v.AgentChanged, _: Envelope) -> None:
    draft.control.agent = event.agent


def _pinned(draft: Draft, event: v.PinnedChanged, _: Envelope) -> None:
    draft.control.pinned = event.pinned


def _retention(draft: Draft, event: v.RetentionChanged, _: Envelope) -> None:
    draft.control.retention_us = event.retention_us


def _erased(draft: Draft, event: v.ContentErased, _: Envelope) -> None:
    if draft.loaded:
        draft.erase(frozenset(event.messages))


def _adopted(draft: Draft, event: v.ChatAdopted, _: Envelope) -> None:
    draft.control.epoch = event.epoch


def _compaction_undone(draft: Draft, event: v.CompactionUndone, _: Envelope) -> None:
    draft.drop_boundary(event.boundary)


def _acquired(draft: Draft, event: v.Acquired, _: Envelope) -> None:
    control = draft.control
    control.holder, control.epoch = event.worker, event.epoch
    control.takeovers += event.takeover
    control.running = None
    _spend(draft, event.report)
    _lose_calls(draft, event.unknown)


def _released(draft: Draft, event: v.Released, _: Envelope) -> None:
    # A runner that died counts like a worker that did: the third on one history fails the turn.
    draft.control.takeovers += event.reason == "fault"
    _spend(draft, event.report)
    _lose_calls(draft, event.unknown)


def _policy(draft: Draft, event: v.PolicyRecorded, _: Envelope) -> None:
    draft.control.policy = share_name(event.digest)
    if draft.loaded and not draft.policies:
        draft.policies = sole_policy(event.digest, event.policy)
    elif draft.loaded:
        draft.own("policies")[event.digest] = share_policy(event.digest, event.policy)


def _attempt(draft: Draft, event: v.AttemptStarted, envelope: Envelope) -> None:
    control = draft.control
    _spend(draft, event.cut)
    control.attempt = event.attempt
    control.model_attempts += event.kind in ("generate", "compact")
    control.running = RunningAttempt(attempt=event.attempt, kind=event.kind, started_at=envelope.recorded_at)
    if event.calls:
        control.indexes.open_calls = mark_calls(control.indexes.open_calls, frozenset(event.calls), started=True)


def _result(draft: Draft, event: v.ToolResultRecorded, _: Envelope) -> None:
    draft.record_result(event.result)


def _committed(draft: Draft, event: v.StepCommitted, _: Envelope) -> None:
    _spend(draft, event.report, event.added)


def _compacted(draft: Draft, event: v.CompactionCommitted, _: Envelope) -> None:
    _spend(draft, event.report)
    # A boundary that was written for another reason serves a request all the same.
    if event.manual or draft.control.compaction == "requested":
        draft.control.compaction = "committed"


def _retry(draft: Draft, event: v.RetryScheduled, _: Envelope) -> None:
    control = draft.control
    control.not_before = event.not_before
    control.retry = RetryState(attempt=event.attempt, delay_us=event.delay_us, at=event.not_before, error=event.error)
    _spend(draft, event.report)


def _action(draft: Draft, event: v.ActionRequired, envelope: Envelope) -> None:
    draft.control.action = OpenAction(
        id=envelope.version, deadline=event.deadline, on_expiry=event.on_expiry, items=event.items
    )


def _finished(draft: Draft, event: v.TurnFinished, _: Envelope) -> None:
    control = draft.control
    if event.cause in ("complete", "stop_after_tool"):
        control.owed = False
    control.running = None
    _spend(draft, event.report)


def _failed(draft: Draft, event: v.TurnFailed, _: Envelope) -> None:
    draft.control.last_error = event.error
    _spend(draft, event.report, event.added)
    _lose_calls(draft, event.unknown)


def _interruption_finished(draft: Draft, event: v.InterruptionFinished, _: Envelope) -> None:
    control = draft.control
    control.interrupting = False
    control.running = None
    _spend(draft, event.report, event.added)


def _sent(draft: Draft, event: v.MessageSent | v.MessageSentInterrupting, _: Envelope) -> None:
    # Of a message that was queued, the queue item carries these until it is promoted.
    draft.control.model = event.model or draft.control.model
    draft.control.effort = event.effort or draft.control.effort


def _sent_interrupting(draft: Draft, event: v.MessageSentInterrupting, envelope: Envelope) -> None:
    _ends_turn_now(draft, event, envelope)
    _sent(draft, event, envelope)


def _imported(draft: Draft, _event: v.MessagesImported, envelope: Envelope) -> None:
    draft.control.imported_to = envelope.version


def _expired(draft: Draft, _event: v.ActionExpired, _: Envelope) -> None:
    draft.control.owed = True


def _reconciled(draft: Draft, event: v.Reconciled, _: Envelope) -> None:
    control = draft.control
    control.archived = False
    control.last_error = event.error
    if event.epoch is not None:
        control.epoch = event.epoch


_SPECIAL: Final[dict[type[EventBase], Callable[[Draft, Any, Envelope], None]]] = {
    v.ChatCreated: _created,
    v.ChatForked: _forked,
    v.MessageSent: _sent,
    v.MessageSentInterrupting: _sent_interrupting,
    v.MessagesImported: _imported,
    v.QueuedMessagePromoted: _ends_turn_now,
    v.TurnInterrupted: _ends_turn_now,
    v.QueuedMessageEdited: _queued_edited,
    v.MessageEdited: _edited,
    v.ResultsSubmitted: _submitted,
    v.TurnResumed: _resumed,
    v.CompactionRequested: _compaction_requested,
    v.ContextCleared: _cleared,
    v.ChatArchived: _archived,
    v.ChatUnarchived: _unarchived,
    v.TitleChanged: _title,
    v.LabelsChanged: _labels,
    v.ModelChanged: _model,
    v.AgentChanged: _agent,
    v.PinnedChanged: _pinned,
    v.RetentionChanged: _retention,
    v.ContentErased: _erased,
    v.ChatAdopted: _adopted,
    v.CompactionUndone: _compaction_undone,
    v.Acquired: _acquired,
    v.Released: _released,
    v.PolicyRecorded: _policy,
    v.AttemptStarted: _attempt,
    v.ToolResultRecorded: _result,
    v.StepCommitted: _committed,
    v.CompactionCommitted: _compacted,
    v.RetryScheduled: _retry,
    v.ActionRequired: _action,
    v.TurnFinished: _finished,
    v.TurnFailed: _failed,
    v.InterruptionFinished: _interruption_finished,
    v.ActionExpired: _expired,
    v.Reconciled: _reconciled,
}


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
