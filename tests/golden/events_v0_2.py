"""What the vocabulary of release 0.2 has beside that of 0.1: what ``v0.2/events/*.json`` hold.

A name is the type of its event, with what is new in it behind a dot. Each event says what can be stored, not what a
chat may do.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from events import vocabulary as v
from events.content import Content
from events.ids import CallKey, WorkerId
from events.messages import ContextMark, KeptResponse, Message
from events.parts import ContextProblemPart, FilePart, HookContextPart, SkillPart, TextPart, ToolCallPart
from events.records import (
    ActionItem,
    AttemptReport,
    Budget,
    ModelPolicy,
    Origin,
    Policy,
    Spending,
    Spent,
    ToolPolicy,
)
from tests.golden.pieces_v0_1 import DECISION, ERROR, MODEL, POLICY, RESULT, STEP, T

POLICY_OF_OPTIONS: Final = replace(POLICY, model=replace(MODEL, effort_max="high", options="o" * 22))

AGAIN: Final = (CallKey("5.0.1"), CallKey("5.0.2"))

SPENDING: Final = Spending(
    spent=Spent(tokens=900, cost_micros=70, turns=3),
    allowed=Budget(tokens=1_000, cost_micros=2_000, turns=3),
    reached=("turns", "cost_micros"),
    unpriced=True,
)

EVENTS: Final[dict[str, v.Event]] = {
    "policy_recorded.efforts_and_options": v.PolicyRecorded(digest="e" * 64, policy=POLICY_OF_OPTIONS),
    "retry_scheduled.unmetered": v.RetryScheduled(
        attempt=2,
        delay_us=1_000_000,
        not_before=T,
        error=ERROR,
        report=AttemptReport(step=replace(STEP, unmetered=True)),
    ),
    "acquired.again": v.Acquired(worker=WorkerId("worker-1"), epoch=2, release="0.2.0", takeover=True, again=AGAIN),
    "released.again": v.Released(reason="drain", again=AGAIN),
    "turn_failed.again": v.TurnFailed(error=ERROR, attempt=2, again=AGAIN),
    "step_committed.nudge": v.StepCommitted(
        attempt=1,
        added=(
            Message(role="assistant", parts=(TextPart(text=Content("Done.")),)),
            Message(
                role="user",
                visibility="model",
                parts=(HookContextPart(event="stop", text=Content("Run the tests first.")),),
            ),
        ),
    ),
    "step_committed.deadlines": v.StepCommitted(
        attempt=1,
        added=(
            Message(
                role="assistant",
                parts=(
                    ToolCallPart(
                        name="ask",
                        arguments=Content("{}"),
                        provider_call_id="toolu_02",
                        runner="client",
                        action_timeout_us=60_000_000,
                        action_on_expiry="end_turn",
                        created_at=T + 5,
                    ),
                ),
            ),
        ),
    ),
    "tool_result_recorded.media": v.ToolResultRecorded(
        attempt=2,
        result=replace(
            RESULT,
            media=(FilePart(media_type="image/png", data=Content("iVBORw0KGgo="), name=Content("screen.png")),),
            attachments=(FilePart(media_type="text/csv", data=Content("YSxiCg=="), name=Content("rows.csv")),),
            rewritten=Content('{"command": "ls -l"}'),
            context=Content("Mind the gap."),
        ),
    ),
    "action_required.result_budget": v.ActionRequired(
        decision=DECISION,
        deadline=T + 60_000_000,
        on_expiry="end_turn",
        items=(ActionItem(kind="budget", spending=SPENDING),),
        result_budget=65_536,
    ),
    "active_tools_changed": v.ActiveToolsChanged(tools=("ask", "look")),
    "chat_forked.active_tools": v.ChatForked(
        chat="fork",
        owner="ann",
        agent="helper",
        release="0.2.0",
        origin=Origin(chat="origin", version=3, digest="0f"),
        owed=True,
        active_tools=("look",),
    ),
    "policy_recorded.deadlines": v.PolicyRecorded(
        digest="d",
        policy=Policy(
            agent="helper",
            revision="r",
            model=ModelPolicy(provider="anthropic", name="claude-test-1"),
            tools=(ToolPolicy(name="ask", action_timeout_us=60_000_000, action_on_expiry="end_turn"),),
        ),
    ),
    "retry_scheduled.context_tokens": v.RetryScheduled(
        attempt=2,
        delay_us=1_000_000,
        not_before=T,
        error=ERROR,
        report=AttemptReport(step=replace(STEP, context_tokens=77)),
    ),
    "action_required.read": v.ActionRequired(
        decision=replace(DECISION, read={"last": "user", "max_steps": 1200, "boundary": True, "recorded_source": None}),
        deadline=T + 60_000_000,
        on_expiry="go_on",
        items=(ActionItem(kind="budget"),),
    ),
    "policy_recorded.retry_unit": v.PolicyRecorded(digest="f" * 64, policy=replace(POLICY, retry_unit_us=50_000)),
    "turn_label_changed": v.TurnLabelChanged(label=Content("Fixed the build")),
    "side_call_recorded": v.SideCallRecorded(kind="title", report=AttemptReport(step=STEP)),
    "context_marked": v.ContextMarked(mark="stale", revision="r-2"),
    "context_persisted.skills": v.ContextPersisted(
        attempt=1,
        source="directory",
        revision="r-1",
        added=(
            Message(
                role="system",
                visibility="model",
                parts=(
                    SkillPart(
                        name=Content("deploy"),
                        description=Content("How to deploy."),
                        directory=Content("skills/deploy"),
                    ),
                    ContextProblemPart(
                        path=Content("CLAUDE.md"), fault="oversize", detail=Content("larger than 65536 bytes")
                    ),
                ),
                context=ContextMark(source="directory", revision="r-1"),
            ),
        ),
    ),
    "retry_scheduled.chain": v.RetryScheduled(
        attempt=2,
        delay_us=1_000_000,
        not_before=T,
        error=replace(ERROR, chain_broken=True),
        report=AttemptReport(
            step=replace(STEP, kept=KeptResponse(before="b" * 64, options="o" * 22), continued="resp_01")
        ),
    ),
}
