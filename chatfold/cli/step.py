"""``step``: the debugger. What it shows is ``chatfold.stepper``'s; here it is opened and run."""

from __future__ import annotations

import asyncio
import importlib.util
from typing import Final

from chatfold.cli.guard import Failure, UsageProblem
from chatfold.cli.sources import named
from chatfold.replaying.conditions import parse_condition
from chatfold.replaying.logs import STDIN, LogSource
from chatfold.stepper.longlog import open_long
from chatfold.stepper.model import Stepper

NEEDS: Final = "chatfold step needs Textual: pip install 'chatfold[step]'"


def run_step(
    source: str, *, at: int | None, stop: str | None, follow: bool, db: str | None, log_level: str | None
) -> None:
    """Step through a log; see the command.

    Raises:
        Failure: Textual is not installed.
        UsageProblem: The log has no such version, or cannot be stepped through or followed.
        ConditionError: The breakpoint cannot be read.
    """
    if importlib.util.find_spec("textual") is None:
        raise Failure(NEEDS)
    condition = parse_condition(stop) if stop is not None else None
    if source == STDIN:
        raise UsageProblem("- (stdin) cannot be stepped through: the keys come from there; save it in a file")
    found = named(source, db, log_level)
    if follow and found.place != "chat":
        raise UsageProblem(f"{source} is a file, and does not grow; --follow is for a chat in a store")
    log = open_long(found)
    if at is not None and at > len(log.events):
        raise UsageProblem(f"{log.name} has no version {at}; its last is {len(log.events)}")
    stepper = Stepper(log, at, condition)
    asyncio.run(_shown(stepper, found, follow=follow))


async def _shown(stepper: Stepper, source: LogSource, *, follow: bool) -> None:
    from chatfold.stepper.app import StepApp
    from chatfold.stepper.following import following

    file = source.where if source.place == "file" else f"{source.where}.jsonl"
    if not follow or source.store is None:
        await StepApp(stepper, file).run_async()
        return
    async with following(source.store, stepper.log) as live:
        await StepApp(stepper, file, live).run_async()
