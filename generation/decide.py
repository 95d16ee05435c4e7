"""``decide_generation_action``: reads committed history and the recorded policy and says what happens next.

Pure and total.

Rules stand in one ordered table; the first match wins, and its id is recorded with the decision. History is control
with its maintained indexes, so a decision costs the same at any length, and reads no content.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from events.control import Control, refused_as_one
from events.given import checked_kind
from events.records import Decision, FinishCause, Policy
from events.spending import spending
from events.state import ChatState
from generation.decision import (
    AskClient,
    CollectContext,
    Compact,
    Fail,
    Finish,
    Generate,
    GenerationDecision,
    RunTools,
)
from generation.reading import (
    Facts,
    Reads,
    compaction_threshold,
    reaches,
    read_budget,
    read_budget_answer,
    read_calls,
    read_compaction,
    read_context,
    read_last,
    read_queue,
    read_steps,
    read_stop_after,
    read_usage,
)
from generation.rule_words import WORDS, Say

EMPTY_ANSWER: Final = "empty_answer"
"""The fact of the decision that an answer without parts is (``empty_answer``)."""


class Rule(NamedTuple):
    """A rule: its id, its action, when it holds in words, and the function that tests it.

    ``holds`` returns the facts by which the rule holds, None where it does not. ``reads`` tells all that it reads
    beside what the rules before it read; None where that is nothing.
    """

    id: str
    action: str
    when: str
    holds: Callable[[Control, Policy], Facts | None]
    reads: Reads | None = None

    @property
    def why(self) -> Say:
        """Says why it held, by the evidence of its decision (``Decision.evidence``)."""
        return WORDS[self.id].why

    @property
    def why_not(self) -> Say:
        """Says why it was passed by, by the evidence of the decision that was taken instead."""
        return WORDS[self.id].why_not


def _unusable(_: Control, policy: Policy) -> Facts | None:
    if policy.max_steps < 1 or policy.model is None:
        return {"max_steps": policy.max_steps, "model": policy.model.name if policy.model else None}
    return None


def _local_open(control: Control, _: Policy) -> Facts | None:
    calls = control.indexes.open_calls
    if not calls:
        return None
    local = [call for call in calls if call.may_run]
    if refused_as_one(calls):
        return {"local": len(local), "recorded": sum(call.recorded for call in calls), "refused": len(calls)}
    return {"local": len(local), "recorded": sum(call.recorded for call in local)} if local else None


def _client_owes(control: Control, _: Policy) -> Facts | None:
    if not control.indexes.open_calls:
        return None
    owed = [call for call in control.indexes.open_calls if not call.may_run]
    approvals = sum(call.runner == "local" for call in owed)
    return {"client": len(owed) - approvals, "approvals": approvals} if owed else None


def _budget_ended(control: Control, _: Policy) -> Facts | None:
    return {"answer": "end_turn"} if control.budget_ended else None


def _compaction_requested(control: Control, _: Policy) -> Facts | None:
    if control.compaction == "requested" and control.indexes.assistants_after:
        return {"assistants_after_boundary": control.indexes.assistants_after}
    return None


def _stop_after(control: Control, _: Policy) -> Facts | None:
    return {"stop_after_tool": True} if control.indexes.stop_after else None


def _compacted(control: Control, _: Policy) -> Facts | None:
    return {"compaction": "committed"} if control.compaction == "committed" else None


def _answered(control: Control, _: Policy) -> Facts | None:
    indexes = control.indexes
    if indexes.last_role == "assistant" and not indexes.last_interrupted and not indexes.open_calls:
        return {"last": "assistant"}
    return None


def _steps_used(control: Control, policy: Policy) -> Facts | None:
    # Where a hook let the turn go on, these steps may be one more.
    steps, more = control.indexes.steps, control.indexes.more_step
    if steps < policy.max_steps + more:
        return None
    facts: Facts = {"steps": steps, "max_steps": policy.max_steps}
    return facts | {"nudged": True} if more else facts


def _budget_spent(control: Control, policy: Policy) -> Facts | None:
    if policy.budget is None and control.budget is None:
        return None
    seen = spending(control, policy)
    if not seen.reached:
        return None
    name = seen.reached[0]
    amount, limit = getattr(seen.spent, name), getattr(seen.allowed, name)
    facts: Facts = {name: amount, "limit": limit}
    return facts if amount >= limit else {**facts, "priced": False}


def _context_missing(control: Control, policy: Policy) -> Facts | None:
    indexes = control.indexes
    if policy.context_source is None:
        return None
    same_source = indexes.context_source == policy.context_source
    asked = control.context_refresh_at is not None
    if same_source and not asked and policy.context_revision in (None, indexes.context_revision):
        return None
    facts: Facts = {
        "source": policy.context_source,
        "recorded": indexes.context_revision,
        "wanted": policy.context_revision,
    }
    return {**facts, "refresh": True} if asked else facts


def _still_over(control: Control, policy: Policy) -> Facts | None:
    indexes = control.indexes
    if indexes.boundary is None:
        return None
    threshold = compaction_threshold(policy)
    first = indexes.first_context_tokens
    if not reaches(indexes.context_tokens, threshold) or not reaches(first, threshold):
        return None
    return {"context_tokens": indexes.context_tokens, "first_context_tokens": first, "threshold": threshold}


def _over(control: Control, policy: Policy) -> Facts | None:
    threshold = compaction_threshold(policy)
    tokens = control.indexes.context_tokens
    if not reaches(tokens, threshold) or not control.indexes.visible_after:
        return None
    return {"context_tokens": tokens, "threshold": threshold}


def _always(control: Control, _: Policy) -> Facts | None:
    return {"attempt": control.attempt + 1}


RULES: Final = (
    Rule("D0", "fail", "the policy is unusable (max steps < 1, no model)", _unusable),
    Rule(
        "D1",
        "run_tools",
        "local calls are open that may run, or several calls of which one must be alone: these are refused as one",
        _local_open,
        read_calls,
    ),
    Rule("D2", "require_action", "client calls are open, or local calls that wait for approval", _client_owes),
    Rule(
        "D2b", "finish(budget)", "a budget question was answered with: end the turn", _budget_ended, read_budget_answer
    ),
    Rule(
        "D3",
        "compact(manual)",
        "a manual compaction is requested and there is an answer to compact",
        _compaction_requested,
        read_compaction,
    ),
    Rule(
        "D4",
        "finish(stop_after_tool)",
        "the turn holds a non-error result of a stop-after tool",
        _stop_after,
        read_stop_after,
    ),
    Rule("D5", "finish(compacted)", "the turn was opened by compact and its compaction is committed", _compacted),
    Rule(
        "D6",
        "finish(complete)",
        "the newest message that counts is a finished answer without open calls",
        _answered,
        read_last,
    ),
    Rule(
        "D7", "finish(max_steps)", "steps of the turn since its last resume reached max steps", _steps_used, read_steps
    ),
    Rule(
        "D7b",
        "require_action(budget)",
        "a budget (tokens, cost, turns) is spent and was not raised, or is one of cost and the model has no price",
        _budget_spent,
        read_budget,
    ),
    Rule(
        "D8",
        "persist_context",
        "the agent's context source is not recorded, or at another revision, or was marked for refresh",
        _context_missing,
        read_context,
    ),
    Rule(
        "D9",
        "fail(over_limit)",
        "usage is over the threshold, and was so in the first answer after the boundary",
        _still_over,
        read_usage,
    ),
    Rule("D10", "compact(automatic)", "usage is over the threshold and something follows the boundary", _over),
    Rule("D11", "generate", "otherwise", _always),
)
"""The decision rules in order (section 6 of the specification)."""


class _Place(NamedTuple):
    """A rule in its place: the ids of those passed by before it, and what all that were tried by then read."""

    rule: Rule
    passed: tuple[str, ...]
    reads: tuple[Reads, ...]


def _place(place: int, rule: Rule) -> _Place:
    tried = RULES[: place + 1]
    reads = (*(each.reads for each in tried if each.reads is not None), read_queue)
    return _Place(rule, tuple(each.id for each in RULES[:place]), reads)


_IN_ORDER: Final = tuple(_place(place, rule) for place, rule in enumerate(RULES))
"""The rules in order."""


def decide_generation_action(history: ChatState, policy: Policy) -> GenerationDecision:
    """Return what happens next in a running chat that is not interrupting.

    Args:
        history: The chat's state; its control is enough.
        policy: The recorded policy.

    Raises:
        InvalidValue: What is given is no state, or no policy.
    """
    _checked(history, policy)
    control = history.control
    for rule, passed, reads in _IN_ORDER:
        facts = rule.holds(control, policy)
        if facts is not None:
            record = Decision(
                rule=rule.id,
                action=rule.action,
                facts=facts,
                passed=passed,
                policy=control.policy,
                read=_read(control, policy, reads, facts),
            )
            return _ACTIONS[rule.id](control, record)
    raise AssertionError("the last rule always holds")  # pragma: no cover - totality of the table


def _checked(history: object, policy: object) -> None:
    checked_kind(history, ChatState, "$.history", "a state of a chat, as state_at gives it")
    checked_kind(policy, Policy, "$.policy", "a recorded policy")


def reading(control: Control, policy: Policy) -> Facts:
    """Return all that the rules read, those that a decision would not come to included; neutral values are left out."""
    return _read(control, policy, _IN_ORDER[-1].reads, {})


def _read(control: Control, policy: Policy, reads: tuple[Reads, ...], known: Facts) -> Facts:
    read: Facts = {}
    for add in reads:
        add(control, policy, read)
    for name in known:
        read.pop(name, None)
    return read


def empty_answer(control: Control) -> Decision:
    """Return the decision that a model's answer without parts is: the turn is complete, and no rule is asked."""
    return Decision(rule="D6", action="finish(complete)", facts={EMPTY_ANSWER: True}, policy=control.policy)


def decide_again(recorded: Decision, history: ChatState, policy: Policy) -> GenerationDecision:
    """Return what is decided today where a recorded decision was taken.

    Args:
        recorded: The decision of the log: it tells whether a model had answered without parts, which history does not.
        history: The chat's state just before its event; control is enough.
        policy: The policy that was in force.

    Raises:
        InvalidValue: What is given is no decision, no state, or no policy.
    """
    checked_kind(recorded, Decision, "$.recorded", "a recorded decision")
    _checked(history, policy)
    running = history.control.running
    if recorded.facts.get(EMPTY_ANSWER) and running is not None and running.kind == "generate":
        return Finish(record=empty_answer(history.control), cause="complete")
    return decide_generation_action(history, policy)


def _run_tools(control: Control, record: Decision) -> RunTools:
    calls = control.indexes.open_calls
    # One call that must be alone draws all others into the batch, the client's and those that wait for approval too, so
    # that it is refused as one: nobody is asked for what will not run.
    one = refused_as_one(calls)
    return RunTools(record=record, calls=tuple(c.key for c in calls if (one or c.may_run) and not c.recorded))


def _finish(cause: FinishCause) -> Callable[[Control, Decision], Finish]:
    return lambda _control, record: Finish(record=record, cause=cause)


_NO_MODEL: Final = "Neither the chat nor its agent names a model. Give the agent one, or choose one for the chat."
_NO_STEPS: Final = (
    "The agent's step limit (max_steps) is below 1, so nothing may be answered. Correct the agent's limits."
)
_OVER_LIMIT: Final = (
    "The conversation is over the model's context limit even after it was compacted. "
    "Raise the limit, choose a model with a larger context, or open a new chat."
)


def _fail_unusable(_: Control, record: Decision) -> Fail:
    message = _NO_MODEL if record.facts["model"] is None else _NO_STEPS
    return Fail(record=record, kind="config", message=message)


_ACTIONS: Final[dict[str, Callable[[Control, Decision], GenerationDecision]]] = {
    "D0": _fail_unusable,
    "D1": _run_tools,
    "D2": lambda _, record: AskClient(record=record),
    "D2b": _finish("budget"),
    "D3": lambda _, record: Compact(record=record, manual=True),
    "D4": _finish("stop_after_tool"),
    "D5": _finish("compacted"),
    "D6": _finish("complete"),
    "D7": _finish("max_steps"),
    "D7b": lambda _, record: AskClient(record=record, budget=True),
    "D8": lambda _, record: CollectContext(record=record),
    "D9": lambda _, record: Fail(record=record, kind="config", message=_OVER_LIMIT),
    "D10": lambda _, record: Compact(record=record, manual=False),
    "D11": lambda _, record: Generate(record=record),
}
