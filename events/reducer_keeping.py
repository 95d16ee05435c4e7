"""What events of a chat as a thing that is kept do beside their plain effects (``events.vocabulary_keeping``)."""

from __future__ import annotations

from typing import Final

from events import vocabulary_keeping as v
from events.draft import Draft
from events.envelope import Envelope
from events.reducer_shared import Specials, born, spend


def _forked(draft: Draft, event: v.ChatForked, envelope: Envelope) -> None:
    born(draft, event, envelope)
    draft.control.owed = event.owed
    draft.control.active_tools = event.active_tools


def _imported(draft: Draft, _event: v.MessagesImported, envelope: Envelope) -> None:
    draft.control.imported_to = envelope.version


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


def _active_tools(draft: Draft, event: v.ActiveToolsChanged, _: Envelope) -> None:
    draft.control.active_tools = event.tools


def _pinned(draft: Draft, event: v.PinnedChanged, _: Envelope) -> None:
    draft.control.pinned = event.pinned


def _retention(draft: Draft, event: v.RetentionChanged, _: Envelope) -> None:
    draft.control.retention_us = event.retention_us


def _context_marked(draft: Draft, event: v.ContextMarked, envelope: Envelope) -> None:
    control = draft.control
    if event.mark == "refresh":
        control.context_refresh_at = envelope.recorded_at
    elif event.mark == "fresh":
        control.context_stale_since = None
    elif control.context_stale_since is None:
        control.context_stale_since = envelope.recorded_at


def _turn_label(draft: Draft, event: v.TurnLabelChanged, _: Envelope) -> None:
    draft.turn_label = event.label


def _side_call(draft: Draft, event: v.SideCallRecorded, _: Envelope) -> None:
    spend(draft, event.report)


def _erased(draft: Draft, event: v.ContentErased, _: Envelope) -> None:
    if draft.loaded:
        draft.erase(frozenset(event.messages))


def _adopted(draft: Draft, event: v.ChatAdopted, _: Envelope) -> None:
    draft.control.epoch = event.epoch


def _compaction_undone(draft: Draft, event: v.CompactionUndone, _: Envelope) -> None:
    draft.drop_boundary(event.boundary)


SPECIAL: Final[Specials] = {
    v.ChatForked: _forked,
    v.MessagesImported: _imported,
    v.ChatArchived: _archived,
    v.ChatUnarchived: _unarchived,
    v.TitleChanged: _title,
    v.LabelsChanged: _labels,
    v.ModelChanged: _model,
    v.AgentChanged: _agent,
    v.ActiveToolsChanged: _active_tools,
    v.PinnedChanged: _pinned,
    v.RetentionChanged: _retention,
    v.ContextMarked: _context_marked,
    v.TurnLabelChanged: _turn_label,
    v.SideCallRecorded: _side_call,
    v.ContentErased: _erased,
    v.ChatAdopted: _adopted,
    v.CompactionUndone: _compaction_undone,
}
