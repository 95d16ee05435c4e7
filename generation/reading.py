"""What each decision rule reads of control and policy, as a decision records it. Pure.

One small function per group of rules adds what it reads to a record of facts. A value that says nothing is left out: no
call open, nothing asked for, a count of zero. So what is absent is neutral, and a record stays small: each decision of
each turn carries one. Which rule reads by which function is said in ``generation.decide.RULES``; what the names mean in
words in ``generation.rule_words``. Where a rule's own facts have the same thing, it has the same name there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias, get_args

from events.control import Control
from events.records import Fact, LimitName, ModelPolicy, Policy
from events.spending import spending

Facts: TypeAlias = dict[str, Fact]
Reads: TypeAlias = Callable[[Control, Policy, Facts], None]
"""Adds to the facts what a rule reads beside what those before it read."""

_LIMITS: Final[tuple[LimitName, ...]] = get_args(LimitName)


def read_calls(control: Control, _: Policy, read: Facts) -> None:
    """Add the open calls, by who owes them: ``local`` may run here, ``client`` and ``approvals`` wait for the client.

    ``recorded`` of them have their result, ``exclusive`` must be alone.
    """
    calls = control.indexes.open_calls
    if not calls:
        return
    local = recorded = approvals = exclusive = 0
    for call in calls:
        if call.may_run:
            local += 1
        elif call.runner == "local":
            approvals += 1
        recorded += call.recorded
        exclusive += call.exclusive
    client = len(calls) - local - approvals
    if local:
        read["local"] = local
    if recorded:
        read["recorded"] = recorded
    if client:
        read["client"] = client
    if approvals:
        read["approvals"] = approvals
    if exclusive:
        read["exclusive"] = exclusive


def read_budget_answer(control: Control, _: Policy, read: Facts) -> None:
    """Add ``budget_ended`` where a budget question was answered with the end."""
    if control.budget_ended:
        read["budget_ended"] = True


def read_compaction(control: Control, _: Policy, read: Facts) -> None:
    """Add the phase of a manual ``compaction``; of one that is requested, how many answers there are to compact."""
    if control.compaction == "none":
        return
    read["compaction"] = control.compaction
    if control.compaction == "requested":
        read["assistants_after_boundary"] = control.indexes.assistants_after


def read_stop_after(control: Control, _: Policy, read: Facts) -> None:
    """Add ``stop_after_tool`` where the turn holds such a result."""
    if control.indexes.stop_after:
        read["stop_after_tool"] = True


def read_last(control: Control, _: Policy, read: Facts) -> None:
    """Add whose the ``last`` message that counts is, and whether it was ``interrupted``."""
    indexes = control.indexes
    if indexes.last_role is not None:
        read["last"] = indexes.last_role
    if indexes.last_interrupted:
        read["interrupted"] = True


def read_steps(control: Control, policy: Policy, read: Facts) -> None:
    """Add ``steps`` and ``max_steps``, and whether a hook let the turn go on (``nudged``)."""
    indexes = control.indexes
    if indexes.steps:
        read["steps"] = indexes.steps
    read["max_steps"] = policy.max_steps
    if indexes.more_step:
        read["nudged"] = True


def read_budget(control: Control, policy: Policy, read: Facts) -> None:
    """Add, of each limit of the budget, what is spent under its name, and the limit: ``tokens``, ``tokens_limit``."""
    if policy.budget is None and control.budget is None:
        return
    seen = spending(control, policy)
    for name in _LIMITS:
        limit: int | None = getattr(seen.allowed, name)
        if limit is not None:
            read[name], read[f"{name}_limit"] = getattr(seen.spent, name), limit
    if seen.unpriced:
        read["priced"] = False


def read_context(control: Control, policy: Policy, read: Facts) -> None:
    """Add the agent's context ``source``; where history has another, or another revision, what it has and is wanted."""
    indexes = control.indexes
    if policy.context_source is None:
        return
    read["source"] = policy.context_source
    if indexes.context_source != policy.context_source:
        read["recorded_source"] = indexes.context_source
    if policy.context_revision not in (None, indexes.context_revision):
        read["recorded"], read["wanted"] = indexes.context_revision, policy.context_revision
    if control.context_refresh_at is not None:
        read["refresh"] = True


def read_usage(control: Control, policy: Policy, read: Facts) -> None:
    """Add the tokens of the newest prompt, those of the first after the boundary, and the threshold.

    ``boundary``: there is one. ``visible_after``: what a compaction could compact follows it; of tokens over the
    threshold alone.
    """
    indexes = control.indexes
    if indexes.context_tokens:
        read["context_tokens"] = indexes.context_tokens
    threshold = compaction_threshold(policy)
    if threshold is not None:
        read["threshold"] = threshold
    if indexes.boundary is not None:
        read["boundary"] = True
        if indexes.first_context_tokens:
            read["first_context_tokens"] = indexes.first_context_tokens
    if reaches(indexes.context_tokens, threshold):
        read["visible_after"] = indexes.visible_after


def read_queue(control: Control, _: Policy, read: Facts) -> None:
    """Add how many messages wait in the ``queue``: no rule asks, and what follows the end of a turn depends on it."""
    if control.queue:
        read["queue"] = len(control.queue)


def reaches(tokens: int, threshold: int | None) -> bool:
    """Whether a usage calls for a compaction; one of 0 says that nothing was measured, and never does."""
    return threshold is not None and 0 < tokens >= threshold


def compaction_threshold(policy: Policy) -> int | None:
    """Return the prompt tokens from which history is compacted, None for never.

    The stricter limit of chat and compaction model counts.
    """
    strict = strictest(policy)
    return None if strict is None else _threshold(strict)


def strictest(policy: Policy) -> ModelPolicy | None:
    """Return that of chat and compaction model which calls for a compaction first; None where neither ever does."""
    if policy.compaction_model is None:
        return policy.model if policy.model is not None and _threshold(policy.model) is not None else None
    models = (model for model in (policy.model, policy.compaction_model) if model is not None)
    known = [(threshold, model) for model in models if (threshold := _threshold(model)) is not None]
    return min(known, key=lambda each: each[0])[1] if known else None


def _threshold(model: ModelPolicy) -> int | None:
    if model.context_limit is None or model.context_limit <= 0 or model.compaction_threshold >= 100:
        return None
    # The least count of tokens whose share of the limit is not below the threshold.
    return -(-model.context_limit * model.compaction_threshold // 100)
