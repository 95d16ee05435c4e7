"""Records with every field filled, as release 0.1 knew them: what the samples of ``v0.1`` are made of."""

from __future__ import annotations

from events.content import Content
from events.ids import CallKey, MessageId
from events.messages import ContextMark, Message, QueuedMessage, Step, Usage
from events.parts import (
    ContextFilePart,
    FilePart,
    FileReferencePart,
    ReasoningPart,
    SourcePart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from events.reasons import Reason
from events.records import (
    ActionItem,
    Answer,
    ApprovalAnswer,
    AttemptReport,
    Budget,
    BudgetAnswer,
    Decision,
    ErrorInfo,
    ModelPolicy,
    Origin,
    Policy,
    RequestDigests,
    ToolPolicy,
)

T = 1_790_000_000_000_000
"""Microseconds UTC."""

STEP = Step(
    provider="anthropic",
    model="claude-test-1",
    finish_reason="tool_calls",
    usage=Usage(input=120, output=45, cache_read=3000, cache_write=800, reasoning=20),
    response_id="msg_01",
    metadata=Content({"service_tier": "standard", "speed": 1.5, "none": None}),
    started_at=T,
    first_part_at=T + 350_000,
    ended_at=T + 2_000_000,
    cost_micros=4_321,
)
REQUEST = RequestDigests(system="1" * 64, tools="2" * 64, messages="3" * 64, options="4" * 64)
REPORT = AttemptReport(step=STEP, request=REQUEST)
DECISION = Decision(
    rule="D11",
    action="generate",
    facts={"messages": 12, "context_tokens": 3920, "manual": False, "boundary": None, "last_role": "user"},
    passed=("D0", "D1", "D2"),
    policy="a" * 64,
)
ERROR = ErrorInfo(
    kind="rate_limit",
    message=Content("The provider is busy."),
    detail=Content('{"type":"error","error":{"type":"rate_limit_error"}}'),
    provider="anthropic",
    retryable=True,
    status_code=429,
    retry_after_us=2_500_000,
    chain_broken=True,
)
RESULT = ToolResultPart(
    call=CallKey("4.0.1"),
    is_error=True,
    output=Content({"stdout": "naïve 😀 \x00", "lines": [1, 2.5, None, True]}),
    reason=Reason.INTERRUPTED_UNKNOWN,
    provider_executed=True,
    metadata=Content({"truncated": True}),
    started_at=T + 1,
    ended_at=T + 2,
    repaired=("$.stdout",),
)
PARTS = (
    TextPart(text=Content("Hello, \u4e16\u754c"), metadata=Content({"phase": "answer"}), repaired=("$.text",)),
    ReasoningPart(
        text=Content("The user greets."),
        metadata=Content({"signature": "c2lnbmF0dXJl"}),
        redacted=True,
        started_at=T + 3,
        ended_at=T + 4,
        repaired=("$.text",),
    ),
    ToolCallPart(
        name="shell",
        arguments=Content('{"command": "ls"}'),
        provider_call_id="toolu_01",
        runner="client",
        crash="rerun",
        exclusive=True,
        stop_after=True,
        needs_approval=True,
        reconcile=True,
        metadata=Content({"item": "fc_1"}),
        repaired=("$.arguments",),
    ),
    RESULT,
    FilePart(media_type="image/png", data=Content("iVBORw0KGgo="), name=Content("chart.png")),
    FileReferencePart(name=Content("main.py"), start_line=3, end_line=9, text=Content("def main() -> None: ...")),
    SourcePart(
        source_id="src-1",
        url=Content("https://example.org/"),
        title=Content("Example"),
        metadata=Content({"page": 2}),
    ),
    ContextFilePart(
        path=Content("/srv/project/AGENTS.md"),
        text=Content("Be brief."),
        truncated=True,
        os="linux",
        directory=Content("/srv/project"),
    ),
)
EVERY_PART = Message(
    role="assistant",
    parts=PARTS,
    visibility="model",
    interrupted=True,
    step=STEP,
    boundary="chat_summarized",
    origin=MessageId("2.0"),
    author="user-2",
    context=ContextMark(source="workspace", revision="r7"),
)
MESSAGE = Message(
    role="user",
    parts=PARTS[:1],
    visibility="user",
    interrupted=True,
    step=STEP,
    boundary="chat_cleared",
    origin=MessageId("3.1"),
    author="user-1",
    context=ContextMark(source="workspace", revision="r8"),
)
QUEUED = QueuedMessage(message=MESSAGE, model="claude-test-2", effort="high")
ANSWERS = (Answer(call=CallKey("4.0.2"), reason=Reason.NOT_STARTED), Answer(call=CallKey("4.0.3")))
BUDGET = Budget(tokens=1_000_000, cost_micros=5_000_000, turns=40)
BUDGET_ANSWER = BudgetAnswer(end_turn=False, raised=BUDGET)
APPROVAL = ApprovalAnswer(call=CallKey("4.0.2"), approved=True, arguments=Content('{"command": "ls -l"}'))
ITEMS = (
    ActionItem(kind="client_call", call=CallKey("4.0.2")),
    ActionItem(kind="approval", call=CallKey("4.0.3")),
    ActionItem(kind="budget"),
)
ORIGIN = Origin(chat="chat-0", version=17, digest="b" * 64)
MODEL = ModelPolicy(
    provider="anthropic",
    name="claude-test-1",
    context_limit=200_000,
    max_output=8_192,
    effort="medium",
    compaction_threshold=80,
    price_input=3_000_000,
    price_output=15_000_000,
    price_cache_read=300_000,
    price_cache_write=3_750_000,
)
TOOL = ToolPolicy(
    name="shell",
    runner="client",
    crash="rerun",
    exclusive=True,
    stop_after=True,
    needs_approval=True,
    reconcile=True,
    timeout_us=30_000_000,
    schema="c" * 64,
)
POLICY = Policy(
    agent="assistant",
    revision="rev-3",
    model=MODEL,
    compaction_model=MODEL,
    max_steps=50,
    max_model_attempts=5,
    tools=(TOOL,),
    system="d" * 64,
    context_source="workspace",
    context_revision="r7",
    action_timeout_us=60_000_000,
    action_on_expiry="end_turn",
    budget=BUDGET,
)
