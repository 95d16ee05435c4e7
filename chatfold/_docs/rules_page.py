"""Makes ``docs/decision-rules.md`` from ``generation.decide.RULES``; what a rule means is said there."""

from __future__ import annotations

import textwrap
from typing import Final

from chatfold._docs.rules_explained import EXPLAINED
from generation.decide import RULES, Rule
from generation.models import DEFAULT_THRESHOLDS, LARGE_CONTEXT

_OUTCOMES: Final = {
    "run_tools": ("attempt_started", "of kind `tools`: the open calls of the newest answer run here"),
    "require_action": ("action_required", "the client is asked, until a deadline"),
    "persist_context": ("attempt_started", "of kind `context`: the context source is asked"),
    "compact": ("attempt_started", "of kind `compact`: the conversation so far is summarised"),
    "generate": ("attempt_started", "of kind `generate`: the model is asked"),
    "finish": ("turn_finished", "the turn ends; a queued message is taken up"),
    "fail": ("turn_failed", "the turn ends with an error that says what to do"),
}
"""Action without its detail -> the event that carries it out, and what that means."""


def render() -> str:
    """Return the page."""
    usual, large = DEFAULT_THRESHOLDS
    lines = [
        "# The decision rules",
        "",
        "When a worker holds a chat and nothing of it is under way, `decide_generation_action(history, policy)`",
        "says what happens next. It is a pure function of what is in the log: history, and the recorded policy (agent,",
        "model, limits, thresholds, tools). The rules are tried in this order, and the first that holds is taken.",
        "",
        "| rule | holds when | action |",
        "| --- | --- | --- |",
        *(f"| [{rule.id}](#{rule.id.lower()}) | {rule.when} | `{rule.action}` |" for rule in RULES),
        "",
        "The event that carries a decision out records it: rule, action, the `facts` by which the rule held, the rules",
        "`passed` by, the digest of the `policy`, and in `read` what the tried rules read beside those facts. It was",
        "taken at the version just before that event, so it can be taken again from the log at any time, and comes out",
        "the same. An outcome that needs no decision (a model call that failed and is tried again, a step that is",
        "committed) records none.",
        "",
        "| action | event | what happens |",
        "| --- | --- | --- |",
        *(f"| `{action}` | [`{event}`](events.md#{event}) | {what} |" for action, (event, what) in _shown().items()),
        "",
        "## The words in the rules",
        "",
        "- *The turn* starts after the newest message that a user sent; its *steps* are the model's committed answers.",
        "- *The newest message that counts* is not removed, not compressed, and not for the user alone.",
        "- *The boundary* is what the newest compaction or clear wrote: the model reads nothing before it.",
        "- *The threshold* is a share of the context limit, the stricter of the chat's and the compaction model's:",
        f"  `ModelConfig.compaction_threshold` per cent, by default {usual}, or {large} where the limit is",
        f"  {LARGE_CONTEXT:,} tokens or more. Without a `context_limit` there is none, and D9 and D10 never hold.",
        "- *A budget question* asks the client whether to go on with a raised budget or to end the turn.",
        "",
        "## The rules one by one",
        "",
        "What a rule reads is in `read` or `facts` under the names given; a name that is absent is neutral: no call",
        "open, nothing asked for, none. `queue` is there where messages wait: no rule asks for them, and what follows",
        "the end of a turn depends on them.",
        *(line for rule in RULES for line in _section(rule)),
    ]
    return "\n".join(lines) + "\n"


def _section(rule: Rule) -> tuple[str, ...]:
    explained = EXPLAINED[rule.id]
    reads = "nothing that the rules before it did not read" if not explained.reads else ""
    reads = reads or ", ".join(f"`{name}`" for name in explained.reads)
    text = textwrap.fill(f"{explained.text} Reads {reads}.", 118, break_long_words=False, break_on_hyphens=False)
    return ("", f"### {rule.id}", "", f"`{rule.action}`: {rule.when}.", "", text)


def action_name(rule: Rule) -> str:
    """Return a rule's action without its detail: ``finish`` of ``finish(complete)``."""
    return rule.action.partition("(")[0]


def _shown() -> dict[str, tuple[str, str]]:
    return {name: _OUTCOMES[name] for name in dict.fromkeys(map(action_name, RULES))}
