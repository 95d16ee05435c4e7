"""Names that rules rename and no log has: misspelt ones, for which nothing was replaced. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from chatfold.redacting.facts import Kind
from chatfold.redacting.rules import KINDS, RedactionRules
from generation.nearest import meant


class UnusedRename(NamedTuple):
    """A rename that did nothing.

    Attributes:
        rule: It, as the rules file has it.
        problem: Why, and what may have been meant.
    """

    rule: str
    problem: str


def unused_renames(rules: RedactionRules, logs: Iterable[Mapping[Kind, frozenset[str]]]) -> tuple[UnusedRename, ...]:
    """Return the renames that no log had a name for.

    Args:
        rules: The rules.
        logs: Of each log the names by kind, of the kinds that the rules rename (``RedactionCheck.names``).
    """
    all_logs = list(logs)
    there = {kind: frozenset[str]().union(*(log.get(kind, ()) for log in all_logs)) for kind in KINDS}
    return tuple(
        UnusedRename(f"rename.{kind}.{name}", f"no log has it{meant(name, sorted(there[kind]))}")
        for kind in KINDS
        for name in rules.rename.get(kind, {})
        if name not in there[kind]
    )
