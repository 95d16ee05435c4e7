"""One event of each type of release 0.1 with every field filled: what ``v0.1/events/*.json`` hold.

The events say what can be stored, not what a chat may do: many of their fields never stand together in a real log.
"""

from __future__ import annotations

from typing import Any, Final

from events import vocabulary as v
from events.content import Content
from events.ids import CallKey, MessageId, WorkerId
from tests.golden.pieces_v0_1 import (
    ANSWERS,
    APPROVAL,
    BUDGET_ANSWER,
    DECISION,
    ERROR,
    EVERY_PART,
    ITEMS,
    MESSAGE,
    ORIGIN,
    POLICY,
    QUEUED,
    REPORT,
    RESULT,
    T,
)

EFFECTS: Final[dict[str, Any]] = {
    "removed_from": MessageId("2.0"),
    "answers": ANSWERS,
    "added": (MESSAGE,),
    "queued": (QUEUED,),
    "dequeued": (MessageId("5.0"),),
    "queue_order": (MessageId("7.0"), MessageId("6.0")),
    "promoted": (MessageId("7.0"),),
}
INTERRUPTING: Final[dict[str, Any]] = {**EFFECTS, "epoch": 3, "report": REPORT}
UNKNOWN = (CallKey("4.0.2"),)
SETTINGS: Final[dict[str, Any]] = {
    "chat": "chat-1",
    "owner": "user-1",
    "agent": "assistant",
    "release": "0.1.0",
    "flags": (1, 2),
    "title": Content("Naïve questions 😀"),
    "labels": {"project": "apollo", "ключ": "значение"},
    "model": "claude-test-2",
    "effort": "high",
}

EVENTS: Final[dict[str, v.Event]] = {
    event.type: event
    for event in (
        v.ChatCreated(**EFFECTS, **SETTINGS, parent="chat-0"),
        v.MessageSent(**{**EFFECTS, "added": (EVERY_PART,)}, model="claude-test-2", effort="high"),
        v.MessageSentInterrupting(**INTERRUPTING, model="claude-test-2", effort="high"),
        v.MessageEdited(**EFFECTS),
        v.QueuedMessageEdited(id=MessageId("5.0"), message=QUEUED),
        v.QueueReordered(**EFFECTS),
        v.QueuedMessageDeleted(**EFFECTS),
        v.QueuedMessagePromoted(**INTERRUPTING),
        v.TurnInterrupted(**INTERRUPTING),
        v.ResultsSubmitted(**EFFECTS, action=9, approvals=(APPROVAL,), budget=BUDGET_ANSWER),
        v.TurnResumed(**EFFECTS),
        v.CompactionRequested(**EFFECTS, hint=Content("Keep the numbers.")),
        v.ContextCleared(**EFFECTS),
        v.ChatArchived(),
        v.ChatUnarchived(),
        v.ChatForked(**SETTINGS, origin=ORIGIN, owed=True),
        v.MessagesImported(**EFFECTS),
        v.TitleChanged(title=Content("A better title")),
        v.LabelsChanged(labels={"project": "gemini"}),
        v.ModelChanged(model="claude-test-3", effort="low"),
        v.AgentChanged(agent="reviewer"),
        v.PinnedChanged(pinned=True),
        v.RetentionChanged(retention_us=86_400_000_000),
        v.ContentErased(messages=(MessageId("2.0"), MessageId("4.0"))),
        v.ChatAdopted(epoch=4),
        v.CompactionUndone(boundary=MessageId("12.0")),
        v.Acquired(
            worker=WorkerId("worker-1"), epoch=2, release="0.1.0", takeover=True, unknown=UNKNOWN, report=REPORT
        ),
        v.Released(reason="shutdown", unknown=UNKNOWN, report=REPORT),
        v.PolicyRecorded(digest="a" * 64, policy=POLICY),
        v.AttemptStarted(
            attempt=2, kind="tools", decision=DECISION, calls=(CallKey("4.0.2"), CallKey("4.0.3")), cut=REPORT
        ),
        v.ToolResultRecorded(attempt=2, result=RESULT),
        v.StepCommitted(**EFFECTS, attempt=2, report=REPORT),
        v.CompactionCommitted(**EFFECTS, attempt=3, manual=True, context_tokens=4_000, report=REPORT),
        v.ContextPersisted(**EFFECTS, attempt=1, source="workspace", revision="r7"),
        v.RetryScheduled(attempt=2, delay_us=1_000_000, not_before=T + 1_000_000, error=ERROR, report=REPORT),
        v.ActionRequired(decision=DECISION, deadline=T + 300_000_000, on_expiry="end_turn", items=ITEMS),
        v.TurnFinished(**EFFECTS, cause="stop_after_tool", decision=DECISION, report=REPORT),
        v.TurnFailed(**EFFECTS, error=ERROR, attempt=5, decision=DECISION, unknown=UNKNOWN, report=REPORT),
        v.InterruptionFinished(**EFFECTS, attempt=2, report=REPORT),
        v.ActionExpired(**EFFECTS, action=9),
        v.ActionExpiredTurnEnded(**EFFECTS, action=9),
        v.Reconciled(**EFFECTS, error=ERROR, epoch=5),
    )
}
