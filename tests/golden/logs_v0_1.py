"""One log per thing that a log without it would never gain, as release 0.1 wrote them: what ``v0.1/logs/*.jsonl`` hold.

Each is a log that the machine allows. The name is that of the thing.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from events import vocabulary as v
from events.content import Content
from events.ids import CallKey, MessageId, WorkerId
from events.messages import ContextMark, Message, QueuedMessage
from events.parts import TextPart, ToolCallPart, ToolResultPart
from events.records import ActionItem, Answer, ApprovalAnswer, AttemptReport, BudgetAnswer
from tests.golden.pieces_v0_1 import BUDGET, ERROR, REPORT, REQUEST, STEP, T
from tests.golden.story import USER, WORKER, Story, decision, said

STOPPED = replace(STEP, finish_reason="stop")
ASSISTANT = Message(role="assistant", parts=said("Three files."), step=STOPPED)
NO_REPORT = AttemptReport(request=REQUEST)


def tool(name: str, runner: str = "local", *, approval: bool = False) -> ToolCallPart:
    """Return a call of a step."""
    return ToolCallPart(
        name=name,
        arguments=Content("{}"),
        provider_call_id=f"toolu_{name}",
        runner="client" if runner == "client" else "local",
        needs_approval=approval,
    )


def calls(*parts: ToolCallPart) -> Message:
    """Return an assistant message that calls tools."""
    return Message(role="assistant", parts=parts, step=STEP)


def finished(story: Story) -> Story:
    """Commit an answer and finish the turn."""
    story.add(v.StepCommitted(attempt=1, added=(ASSISTANT,), report=NO_REPORT), "running")
    return story.add(v.TurnFinished(cause="complete", decision=decision("D6", "finish")), "waiting")


def step() -> Story:
    """A committed step: finish reason, usage, provider, model, response id, metadata, times."""
    return finished(Story().created("golden-step").started())


def request_digests() -> Story:
    """Digests of a request by section, in the report of its attempt."""
    return finished(Story().created("golden-request-digests").started())


def decision_record() -> Story:
    """Decisions on a start, an action, a finish; a failure decided without an attempt."""
    story = finished(Story().created("golden-decision").started())
    story.add(v.MessageSent(added=(Message(role="user", parts=said("Again")),)), "pending", USER).acquired()
    return story.add(v.TurnFailed(error=ERROR, decision=decision("D9", "fail")), "error")


def message_interrupted() -> Story:
    """A partial answer kept by an interruption, then resumed."""
    story = Story().created("golden-interrupted").started()
    story.add(v.TurnInterrupted(), "running", USER)
    partial = Message(
        role="assistant", parts=said("Three"), interrupted=True, step=replace(STEP, finish_reason="unknown")
    )
    story.add(v.InterruptionFinished(attempt=1, added=(partial,), report=NO_REPORT), "waiting")
    go_on = Message(role="user", visibility="model", parts=said("Go on."))
    return story.add(v.TurnResumed(added=(go_on,)), "pending", USER)


def retry() -> Story:
    """A retry with its classified error, and the next try."""
    story = Story().created("golden-retry").started()
    event = v.RetryScheduled(attempt=1, delay_us=500_000, not_before=T + 5_500_000, error=ERROR, report=REPORT)
    story.add(event, "pending").acquired().started(attempt=2)
    return story


def attempt_usage() -> Story:
    """Usage of attempts that failed, were interrupted, or were cut by release and takeover."""
    story = Story().created("golden-usage").started()
    error = replace(ERROR, retryable=False)
    story.add(v.RetryScheduled(attempt=1, delay_us=1, not_before=T + 5_000_001, error=ERROR, report=REPORT), "pending")
    story.acquired().started(attempt=2)
    story.add(v.Released(reason="shutdown", report=REPORT), "pending").acquired().started(attempt=3)
    takeover = v.Acquired(worker=WorkerId("worker-2"), epoch=4, release="0.1.0", takeover=True, report=REPORT)
    story.add(takeover, "running").started(attempt=4)
    story.add(v.TurnFailed(error=error, attempt=4, report=REPORT), "error").add(v.TurnResumed(), "pending", USER)
    story.add(replace(takeover, epoch=5, takeover=False, report=None), "running").started(attempt=5)
    story.add(v.TurnInterrupted(), "running", USER)
    return story.add(v.InterruptionFinished(attempt=5, report=REPORT), "waiting")


def open_actions() -> Story:
    """Actions of each kind (client call, approval, budget) with action id and on_expiry; one is let expire."""
    story = Story().created("golden-actions").started()
    asked = calls(tool("browser", "client"), tool("shell", approval=True))
    story.add(v.StepCommitted(attempt=1, added=(asked,), report=NO_REPORT), "running")
    owed = (
        ActionItem(kind="client_call", call=CallKey("5.0.0")),
        ActionItem(kind="approval", call=CallKey("5.0.1")),
    )
    required = v.ActionRequired(
        decision=decision("D2", "require_action"), deadline=T + 66_000_000, on_expiry="go_on", items=owed
    )
    story.add(required, "requires_action")
    result = ToolResultPart(call=CallKey("5.0.0"), output=Content({"url": "https://example.org/"}))
    approval = ApprovalAnswer(call=CallKey("5.0.1"), approved=True, arguments=Content('{"safe": true}'))
    answers = v.ResultsSubmitted(action=6, added=(Message(role="tool", parts=(result,)),), approvals=(approval,))
    story.add(answers, "pending", USER).acquired()
    batch = v.AttemptStarted(attempt=1, kind="tools", decision=decision("D1", "run_tools"), calls=(CallKey("5.0.1"),))
    story.add(batch, "running")
    output = ToolResultPart(call=CallKey("5.0.1"), output=Content("a b c"), started_at=T, ended_at=T + 5)
    story.add(v.ToolResultRecorded(attempt=1, result=output), "running")
    story.add(v.StepCommitted(attempt=1, answers=(Answer(call=CallKey("5.0.1")),)), "running")
    question = v.ActionRequired(
        decision=decision("D7b", "require_action"),
        deadline=T + 72_000_000,
        on_expiry="end_turn",
        items=(ActionItem(kind="budget"),),
    )
    story.add(question, "requires_action")
    raised = v.ResultsSubmitted(action=12, budget=BudgetAnswer(end_turn=False, raised=BUDGET))
    story.add(raised, "pending", USER).acquired()
    story.add(replace(question, deadline=T + 16_000_000), "requires_action")
    return story.add(v.ActionExpiredTurnEnded(action=15), "waiting", replace(WORKER, kind="system", id=None))


def boundary(version: int) -> tuple[Message, ...]:
    """Return the three messages of a compaction boundary."""
    marker = ToolCallPart(
        name="chat_summarized", arguments=Content("{}"), provider_call_id="chat_summarized", runner="provider"
    )
    result = ToolResultPart(call=CallKey(f"{version}.1.0"), output=Content({"source": "manual"}))
    return (
        Message(role="user", visibility="model", parts=said("They asked of files."), boundary="chat_summarized"),
        Message(role="assistant", visibility="user", parts=(marker,), boundary="chat_summarized"),
        Message(role="tool", visibility="user", parts=(result,), boundary="chat_summarized"),
    )


def compaction() -> Story:
    """A compaction asked for and undone, then an automatic one, which re-inserts the question."""
    story = finished(Story().created("golden-compaction").started())
    story.add(v.CompactionRequested(hint=Content("Keep the names.")), "pending", USER).acquired()
    start = v.AttemptStarted(attempt=1, kind="compact", decision=decision("D3", "compact"))
    story.add(start, "running")
    committed = v.CompactionCommitted(attempt=1, manual=True, context_tokens=4_000, added=boundary(10), report=REPORT)
    story.add(committed, "running")
    story.add(v.TurnFinished(cause="compacted", decision=decision("D5", "finish")), "waiting")
    story.add(v.CompactionUndone(boundary=MessageId("10.0")), "waiting", USER)
    story.add(v.MessageSent(added=(Message(role="user", parts=said("And now?")),)), "pending", USER).acquired()
    story.add(replace(start, decision=decision("D10", "compact")), "running")
    again = Message(role="user", visibility="model", parts=said("And now?"), origin=MessageId("13.0"))
    automatic = v.CompactionCommitted(attempt=1, manual=False, added=(*boundary(16), again), report=REPORT)
    story.add(automatic, "running").started(attempt=1)
    return story


def flags_and_release() -> Story:
    """Behaviour flags of a chat, and the releases that created and acquired it."""
    return Story().created("golden-flags", flags=(1,))


def queue_item() -> Story:
    """A queued message with its own model and effort, edited, then promoted."""
    story = Story().created("golden-queue").started()
    queued = QueuedMessage(message=Message(role="user", parts=said("Next")), model="claude-test-2", effort="high")
    story.add(v.MessageSent(queued=(queued,)), "running", USER)
    edited = replace(queued, message=Message(role="user", parts=said("Next, please")), effort="low")
    story.add(v.QueuedMessageEdited(id=MessageId("5.0"), message=edited), "running", USER)
    story.add(v.StepCommitted(attempt=1, added=(ASSISTANT,), report=NO_REPORT), "running")
    finish = v.TurnFinished(cause="complete", decision=decision("D6", "finish"), promoted=(MessageId("5.0"),))
    return story.add(finish, "running").started()


def attempt_kind() -> Story:
    """Attempts of all four kinds: context, generate, tools, compact."""
    story = Story().created("golden-attempts")
    story.add(v.AttemptStarted(attempt=1, kind="context", decision=decision("D8", "persist_context")), "running")
    context = Message(
        role="system",
        parts=(TextPart(text=Content("Files: a b c")),),
        context=ContextMark(source="workspace", revision="r7"),
    )
    story.add(v.ContextPersisted(attempt=1, source="workspace", revision="r7", added=(context,)), "running").started()
    story.add(v.StepCommitted(attempt=1, added=(calls(tool("shell")),), report=NO_REPORT), "running")
    key = CallKey("7.0.0")
    story.add(v.AttemptStarted(attempt=1, kind="tools", decision=decision("D1", "run_tools"), calls=(key,)), "running")
    story.add(v.ToolResultRecorded(attempt=1, result=ToolResultPart(call=key, output=Content("a b c"))), "running")
    story.add(v.StepCommitted(attempt=1, answers=(Answer(call=key),)), "running")
    story.add(v.AttemptStarted(attempt=1, kind="compact", decision=decision("D10", "compact")), "running")
    story.add(v.CompactionCommitted(attempt=1, manual=False, added=boundary(12), report=REPORT), "running")
    return story.started()


LOGS: Final[dict[str, Story]] = {
    make.__name__: make()
    for make in (
        step,
        message_interrupted,
        retry,
        open_actions,
        compaction,
        flags_and_release,
        queue_item,
        attempt_kind,
        request_digests,
        decision_record,
        attempt_usage,
    )
}
