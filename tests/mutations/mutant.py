"""What a mutant is: a wrong change, and what the gate must say of it."""

from __future__ import annotations

from typing import NamedTuple

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
