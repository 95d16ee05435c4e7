"""The mutants: for each a wrong change, and what the gate must say of it: in which log, by which check, where.

Each text that is replaced stands in its file once (a test looks). Where a log of the corpus changes for good, or one is
added that shows a mutant earlier in the order of names, what is expected changes too: look at the version and the rule
before you write them down.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from chatfold.corpus.gate import Check


class Mutant(NamedTuple):
    """A wrong change, and what the gate says of it: the first log that shows it, the check, the version, the rule."""

    name: str
    file: str
    old: str
    new: str
    log: str
    check: Check
    version: int
    rule: str


MUTANTS: Final = (
    Mutant(
        name="client_calls_run_here",
        file="generation/decide.py",
        old="    local = [call for call in calls if call.may_run]\n",
        new="    local = list(calls)\n",
        log="approval",
        check="decide",
        version=6,
        rule="D2",
    ),
    Mutant(
        name="errors_stop_the_turn",
        file="events/indexes.py",
        old="        if calls[place].stop_after and not part.is_error:\n",
        new="        if calls[place].stop_after:\n",
        log="simulated_139_chat0",
        check="fold",
        version=34,
        rule="D1",
    ),
    Mutant(
        name="one_step_more",
        file="generation/decide.py",
        old="    if steps < policy.max_steps + more:\n",
        new="    if steps <= policy.max_steps + more:\n",
        log="max_steps",
        check="decide",
        version=14,
        rule="D7",
    ),
    Mutant(
        name="full_contexts_are_compacted_for_ever",
        file="generation/decide.py",
        old=(
            "    if not reaches(indexes.context_tokens, threshold) or not reaches(first, threshold):\n"
            "        return None\n"
        ),
        new=(
            "    if not reaches(indexes.context_tokens, threshold) or not reaches(first, threshold) or first:\n"
            "        return None\n"
        ),
        log="compact_in_vain",
        check="decide",
        version=16,
        rule="D9",
    ),
    Mutant(
        name="compacts_late",
        file="generation/reading.py",
        old="    return threshold is not None and 0 < tokens >= threshold\n",
        new="    return threshold is not None and 0 < tokens > threshold\n",
        log="compact_early",
        check="decide",
        version=9,
        rule="D10",
    ),
    Mutant(
        name="refresh_is_forgotten",
        file="generation/decide.py",
        old=("    asked = control.context_refresh_at is not None\n    if same_source"),
        new=("    asked = False\n    if same_source"),
        log="context",
        check="decide",
        version=12,
        rule="D8",
    ),
    Mutant(
        name="budgets_are_not_asked",
        file="generation/decide.py",
        old=("    if not seen.reached:\n        return None\n"),
        new=("    if not seen.reached or seen.reached:\n        return None\n"),
        log="budget_raised",
        check="decide",
        version=9,
        rule="D7b",
    ),
    Mutant(
        name="steps_are_not_counted",
        file="events/indexes.py",
        old="    indexes.steps += 1\n",
        new="    indexes.steps += body.interrupted\n",
        log="answer",
        check="fold",
        version=5,
        rule="D11",
    ),
    Mutant(
        name="summaries_count_as_no_attempt",
        file="events/reducer_workers.py",
        old='    control.model_attempts += event.kind in ("generate", "compact")\n',
        new='    control.model_attempts += event.kind == "generate"\n',
        log="compact_asked",
        check="fold",
        version=9,
        rule="D3",
    ),
    Mutant(
        name="cached_tokens_are_free",
        file="events/messages.py",
        old="            read += other.cache_read\n",
        new="            read += 0\n",
        log="answer",
        check="fold",
        version=5,
        rule="D11",
    ),
    Mutant(
        name="first_prompt_is_the_newest",
        file="events/indexes.py",
        old=("        if indexes.assistants_after == 1:\n            indexes.first_context_tokens"),
        new=("        if indexes.assistants_after:\n            indexes.first_context_tokens"),
        log="approval",
        check="fold",
        version=14,
        rule="D11",
    ),
    Mutant(
        name="reports_cost_nothing",
        file="events/reducer_shared.py",
        old="    carriers: tuple[Message | AttemptReport, ...] = added if report is None else (*added, report)\n",
        new="    carriers: tuple[Message | AttemptReport, ...] = added\n",
        log="compact_asked",
        check="fold",
        version=10,
        rule="D3",
    ),
    Mutant(
        name="takeovers_are_not_counted",
        file="events/reducer_workers.py",
        old="    control.takeovers += event.takeover\n",
        new="    control.takeovers += 0\n",
        log="asked_what_happened",
        check="fold",
        version=7,
        rule="D1",
    ),
    Mutant(
        name="queue_is_left_waiting",
        file="chatstate/handlers/worker.py",
        old=("        answers=ctx.answers(),\n        promoted=ctx.head,\n    )\n\n\ndef fail_turn"),
        new=("        answers=ctx.answers(),\n    )\n\n\ndef fail_turn"),
        log="conversed_100_chat0",
        check="rerun",
        version=46,
        rule="D6",
    ),
    Mutant(
        name="a_failed_answer_is_lost",
        file="chatstate/handlers/worker.py",
        old=("        added=kept,\n        unknown=_lost(ctx.control.indexes.open_calls),\n"),
        new="        unknown=_lost(ctx.control.indexes.open_calls),\n",
        log="simulated_249_chat0",
        check="rerun",
        version=17,
        rule="D11",
    ),
    Mutant(
        name="edits_keep_the_queue",
        file="chatstate/handlers/user.py",
        old="        dequeued=tuple(item.id for item in ctx.control.queue),\n",
        new="        dequeued=(),\n",
        log="conversed_216_chat0",
        check="rerun",
        version=28,
        rule="D1",
    ),
    Mutant(
        name="waits_do_not_grow",
        file="generation/retry.py",
        old="    return DELAYS_US[min(max(failures, 0), len(DELAYS_US) - 1)]\n",
        new="    return DELAYS_US[0]\n",
        log="given_up",
        check="rerun",
        version=8,
        rule="D11",
    ),
    Mutant(
        name="one_attempt_more",
        file="generation/retry.py",
        old="    if not error.retryable or attempts >= max_attempts:\n",
        new="    if not error.retryable or attempts > max_attempts:\n",
        log="given_up",
        check="rerun",
        version=11,
        rule="D11",
    ),
    Mutant(
        name="an_interruption_keeps_nothing",
        file="chatstate/handlers/worker.py",
        old="        kept = closed(command.message, ctx.version, len(given))\n",
        new="        kept = ()\n",
        log="conversed_100_chat0",
        check="rerun",
        version=41,
        rule="D11",
    ),
    Mutant(
        name="cut_calls_are_not_told",
        file="generation/plans.py",
        old='            return c.StartAttempt(fence=fence, kind="generate", decision=record, cut=report)\n',
        new='            return c.StartAttempt(fence=fence, kind="generate", decision=record)\n',
        log="edits",
        check="rerun",
        version=6,
        rule="D11",
    ),
    Mutant(
        name="the_latest_deadline_counts",
        file="chatstate/handlers/action.py",
        old="        deadline=ctx.now + min(timeouts),\n",
        new="        deadline=ctx.now + max(timeouts),\n",
        log="client_both",
        check="rerun",
        version=6,
        rule="D2",
    ),
    Mutant(
        name="results_have_no_bound",
        file="generation/plans.py",
        old="result_budget=result_budget(policy.model.context_limit if policy.model is not None else None),\n",
        new="result_budget=None,\n",
        log="approval",
        check="rerun",
        version=6,
        rule="D2",
    ),
)
"""All of them."""
