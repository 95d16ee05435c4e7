"""Handlers of what changes no status, history or queue, and of fork, import, erase, adopt and uncompact."""

from __future__ import annotations

from msgspec import UnsetType

from chatstate import commands as c
from chatstate.cancellations import answers
from chatstate.errors import MessageNotFound
from chatstate.handlers.context import Context
from events import vocabulary as v
from events.ids import place_of


def fork(_ctx: Context, command: c.ForkChat) -> v.ChatForked:
    """Begin a chat as a copy."""
    return v.ChatForked(
        chat=command.chat,
        owner=command.owner,
        agent=command.agent,
        release=command.release,
        origin=command.origin,
        owed=command.owed,
        flags=command.flags,
        title=command.title,
        labels=command.labels,
        model=command.model,
        effort=command.effort,
        active_tools=command.active_tools,
    )


def import_messages(ctx: Context, command: c.ImportMessages) -> v.MessagesImported:
    """Copy messages of the fork's origin."""
    if not ctx.control.importing:
        ctx.not_allowed("messages are imported only within the append that forks the chat")
    return v.MessagesImported(
        answers=answers(ctx.control, "fork", "none") if not command.messages else (), added=command.messages
    )


def set_title(_ctx: Context, command: c.SetTitle) -> v.TitleChanged:
    """Change the title."""
    return v.TitleChanged(title=command.title)


def set_labels(_ctx: Context, command: c.SetLabels) -> v.LabelsChanged:
    """Replace the labels."""
    return v.LabelsChanged(labels=command.labels)


def set_model(ctx: Context, command: c.SetModel) -> v.ModelChanged:
    """Choose model and effort; what is not given stays."""
    model, effort = command.model, command.effort
    return v.ModelChanged(
        model=ctx.control.model if isinstance(model, UnsetType) else model,
        effort=ctx.control.effort if isinstance(effort, UnsetType) else effort,
    )


def set_active_tools(_ctx: Context, command: c.SetActiveTools) -> v.ActiveToolsChanged:
    """Choose the tools that the model may call."""
    return v.ActiveToolsChanged(tools=command.tools)


def set_agent(_ctx: Context, command: c.SetAgent) -> v.AgentChanged:
    """Hand the chat to another agent."""
    return v.AgentChanged(agent=command.agent)


def set_pinned(_ctx: Context, command: c.SetPinned) -> v.PinnedChanged:
    """Pin or unpin."""
    return v.PinnedChanged(pinned=command.pinned)


def set_retention(_ctx: Context, command: c.SetRetention) -> v.RetentionChanged:
    """Say how long the chat is kept."""
    return v.RetentionChanged(retention_us=command.retention_us)


def mark_context(_ctx: Context, command: c.MarkContext) -> v.ContextMarked:
    """Mark the context."""
    return v.ContextMarked(mark=command.mark, revision=command.revision)


def set_turn_label(_ctx: Context, command: c.SetTurnLabel) -> v.TurnLabelChanged:
    """Say what the latest turn came to."""
    return v.TurnLabelChanged(label=command.label)


def record_side_call(_ctx: Context, command: c.RecordSideCall) -> v.SideCallRecorded:
    """Record what a model call beside the turns took and cost."""
    return v.SideCallRecorded(kind=command.kind, report=command.report)


def erase(ctx: Context, command: c.Erase) -> v.ContentErased:
    """Erase the content of messages in history or in the queue, or that were.

    What is there no more may have been: the state does not say so, and whoever has the log looks it up.
    """
    transcript = ctx.state.need_transcript(ctx.trigger)
    known = {item.id for item in transcript.messages} | set(transcript.queued)
    left = {target: place_of(target) for target in command.targets if target not in known}
    missing = [target for target, place in left.items() if place is None or not 0 < place[0] < ctx.version]
    if missing or not command.targets:
        ctx.refuse(MessageNotFound, f"no message {', '.join(map(repr, missing)) or '(none was named)'} is in this chat")
    return v.ContentErased(messages=command.targets)


def adopt(ctx: Context, _command: c.Adopt) -> v.ChatAdopted:
    """Take over a foreign chat."""
    return v.ChatAdopted(epoch=ctx.control.epoch + 1)


def uncompact(ctx: Context, command: c.Uncompact) -> v.CompactionUndone:
    """Take the newest compaction boundary back, as long as the model's context can hold what it compressed."""
    ctx.state.need_transcript(ctx.trigger)
    indexes = ctx.control.indexes
    if indexes.boundary is None or indexes.boundary_kind != "chat_summarized":
        ctx.not_allowed("the newest boundary is not a compaction")
    limit, estimated = command.limit_tokens, command.estimated_tokens
    if limit is not None and estimated >= limit:
        ctx.not_allowed(f"the conversation would take about {estimated} tokens, and the model's context holds {limit}")
    return v.CompactionUndone(boundary=indexes.boundary)
