"""Why a chat did something, in words: from what the decision recorded, and from nothing else. Pure.

Owns how a decision is told as a whole: why its rule held, why each rule before it was passed by, and what was read.
What each rule says is ``generation.rule_words``'s; what each rule is for stands in docs/decision-rules.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from events.diff import shown
from events.given import checked_kind
from events.records import Decision, ErrorInfo, Fact
from generation.decide import RULES, Rule
from generation.rule_words import NOT_RECORDED

PAGE: Final = "docs/decision-rules.md"
"""The page that explains the rules, each under its id."""

_RULES: Final[Mapping[str, Rule]] = MappingProxyType({rule.id: rule for rule in RULES})
_UNKNOWN: Final = "this release has no rule of that name"


class PassedBy(Struct, frozen=True):
    """A rule that was tried before and did not hold.

    Attributes:
        rule: Its id.
        action: What it would have done.
        because: Why it did not hold.
    """

    rule: str
    action: str | None
    because: str


class Explanation(Struct, frozen=True, kw_only=True):
    """A decision in words.

    Attributes:
        rule: The id of its rule.
        action: What was decided.
        when: When the rule holds; None for a rule that this release does not have.
        because: Why it held.
        read: All that was read and recorded, by name; what is absent was neutral.
        passed: The rules before it.
        page: Where the rule is explained.
    """

    rule: str
    action: str
    when: str | None
    because: str
    read: Mapping[str, Fact]
    passed: tuple[PassedBy, ...]
    page: str


def explain(decision: Decision) -> Explanation:
    """Return a recorded decision in words.

    Raises:
        InvalidValue: It is no decision.
    """
    checked_kind(decision, Decision, "$.decision", "a recorded decision, as events of decisions have it")
    rule, evidence = _RULES.get(decision.rule), decision.evidence
    return Explanation(
        rule=decision.rule,
        action=decision.action,
        when=None if rule is None else rule.when,
        because=why(decision),
        read=evidence,
        passed=tuple(_passed(each, evidence) for each in decision.passed),
        page=page_of(decision.rule),
    )


def why(decision: Decision) -> str:
    """Return why the rule of a recorded decision held, in a clause."""
    rule = _RULES.get(decision.rule)
    if rule is not None:
        return rule.why(decision.evidence)
    facts = ", ".join(f"{name} is {shown(fact)}" for name, fact in decision.facts.items())
    return f"{facts}; {_UNKNOWN}" if facts else _UNKNOWN


def page_of(rule: str) -> str:
    """Return where a rule is explained; the page itself for a rule that this release does not have."""
    return f"{PAGE}#{rule.lower()}" if rule in _RULES else PAGE


def error_name(error: ErrorInfo) -> str:
    """Return what an error is called: its kind, and the status of the answer that told it."""
    status = "" if error.status_code is None else f", status {error.status_code}"
    return f"{error.kind}{status}"


def _passed(name: str, evidence: Mapping[str, Fact]) -> PassedBy:
    rule = _RULES.get(name)
    if rule is None:
        return PassedBy(name, None, f"{NOT_RECORDED}; {_UNKNOWN}")
    return PassedBy(name, rule.action, rule.why_not(evidence))
