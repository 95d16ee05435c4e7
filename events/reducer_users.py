"""What events of users do beside their plain effects (``events.vocabulary_users``)."""

from __future__ import annotations

from typing import Final

from events import vocabulary_users as v
from events.draft import Draft
from events.effects import Interrupting
from events.envelope import Envelope
from events.indexes import mark_calls
from events.reducer_shared import Specials, born, spend


def _created(draft: Draft, event: v.ChatCreated, envelope: Envelope) -> None:
    born(draft, event, envelope)
    draft.control.parent = event.parent


def _ends_turn_now(draft: Draft, event: Interrupting, envelope: Envelope) -> None:
    control = draft.control
    control.interrupting = envelope.dest == "running"
    if event.epoch is not None:
        control.epoch = event.epoch
    spend(draft, event.report, event.added)


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
    control.indexes.stop_after = control.indexes.more_step = False


def _compaction_requested(draft: Draft, event: v.CompactionRequested, _: Envelope) -> None:
    draft.control.compaction = "requested"
    draft.control.model_attempts = draft.control.takeovers = 0
    draft.hint = event.hint


def _cleared(draft: Draft, _event: v.ContextCleared, _: Envelope) -> None:
    draft.control.owed = False


def _sent(draft: Draft, event: v.MessageSent | v.MessageSentInterrupting, _: Envelope) -> None:
    # Of a message that was queued, the queue item carries these until it is promoted.
    draft.control.model = event.model or draft.control.model
    draft.control.effort = event.effort or draft.control.effort


def _sent_interrupting(draft: Draft, event: v.MessageSentInterrupting, envelope: Envelope) -> None:
    _ends_turn_now(draft, event, envelope)
    _sent(draft, event, envelope)


SPECIAL: Final[Specials] = {
    v.ChatCreated: _created,
    v.MessageSent: _sent,
    v.MessageSentInterrupting: _sent_interrupting,
    v.QueuedMessagePromoted: _ends_turn_now,
    v.TurnInterrupted: _ends_turn_now,
    v.QueuedMessageEdited: _queued_edited,
    v.MessageEdited: _edited,
    v.ResultsSubmitted: _submitted,
    v.TurnResumed: _resumed,
    v.CompactionRequested: _compaction_requested,
    v.ContextCleared: _cleared,
}
