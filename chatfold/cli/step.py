"""``step``: the debugger. What it shows is ``chatfold.stepper``'s; here it is opened and run."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from typing import TYPE_CHECKING, Final, TextIO

from chatfold.cli.guard import Failure, UsageProblem
from chatfold.cli.sources import named
from chatfold.replaying.conditions import Condition, parse_condition
from chatfold.replaying.logs import STDIN, LogSource
from chatfold.stepper.longlog import LongLog, open_long
from chatfold.stepper.model import Stepper

if TYPE_CHECKING:
    from chatfold.stepper.following import StoredChat

NEEDS: Final = "chatfold step needs Textual: pip install 'chatfold[step]'"


def run_step(
    source: str, *, at: int | None, stop: str | None, follow: bool, db: str | None, log_level: str | None
) -> None:
    """Step through a log; see the command.

    Raises:
        Failure: Textual is not installed.
        UsageProblem: The log has no such version, or cannot be stepped through or followed; or this is no terminal.
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
    asyncio.run(_shown(found, at, condition, follow=follow))


async def _shown(source: LogSource, at: int | None, stop: Condition | None, *, follow: bool) -> None:
    if source.place == "file":
        await _app(open_long(source), at, stop, source.where)
        return
    # A store brings its database's driver; who reads files should not wait for it.
    from chatfold.stepper.following import StoredChat
    from store import open_store

    if source.store is None:
        raise UsageProblem(f"chat {source.where} is in a store, and none is named")
    async with open_store(source.store) as store:
        chat = await StoredChat.opened(store, source.where, near=at)
        await _app(chat.log, at, stop, f"{source.where}.jsonl", chat, follow=follow)


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()


async def _app(
    log: LongLog,
    at: int | None,
    stop: Condition | None,
    file: str,
    chat: StoredChat | None = None,
    *,
    follow: bool = False,
) -> None:
    from chatfold.stepper.app import StepApp

    if at is not None and not 0 <= at <= len(log.events):
        raise UsageProblem(f"{log.name} has no version {at}; its last is {len(log.events)}")
    if not (_is_terminal(sys.__stdin__) and _is_terminal(sys.__stderr__)):
        # Textual would write escapes to whatever is there, and wait for keys for ever.
        raise UsageProblem("step needs a terminal, for its keys and its screen; `chatfold show` and `why` need none")
    await StepApp(Stepper(log, at, stop), file, chat, follow=follow).run_async()
