"""Telling what became of a seed: what was violated, the last steps, and the command that runs it again."""

from __future__ import annotations

from dataclasses import fields
from typing import Final

from chatfold.testing.simulation.profile import Size
from chatfold.testing.simulation.run import Outcome

COMMAND: Final = "python -m chatfold.testing.simulation"
_LAST: Final = 40


def command_of(seed: int, size: Size | None = None, command: str = COMMAND) -> str:
    """Return the ``command`` that runs a seed again, in the same world."""
    usual, wanted = Size(), size or Size()
    options = [
        f"--{field.name} {getattr(wanted, field.name)}"
        for field in fields(Size)
        if getattr(wanted, field.name) != getattr(usual, field.name)
    ]
    return " ".join([command, f"--seed {seed}", *options])


def failure_of(outcome: Outcome, size: Size | None = None, command: str = COMMAND) -> str:
    """Return what people need to know of a seed that failed."""
    last = outcome.trace[-_LAST:]
    return "\n".join(
        [
            f"seed {outcome.seed} failed after {outcome.seconds:.3f} virtual seconds and {outcome.steps} steps:",
            f"  {outcome.violation}",
            f"its last {len(last)} steps (virtual seconds, who, what):",
            *(f"  {line}" for line in last),
            "run it again:",
            f"  {command_of(outcome.seed, size, command)}",
            f"  {command_of(outcome.seed, size, command)} --trace    # every step",
        ]
    )


def summary_of(outcome: Outcome) -> str:
    """Return one line of a seed that went well, or did not."""
    verdict = "failed" if outcome.violation is not None else "well"
    return (
        f"seed {outcome.seed}: {verdict}; {outcome.events} events, {outcome.steps} steps, "
        f"{outcome.seconds:.1f} virtual seconds, digest {outcome.digest}"
    )
