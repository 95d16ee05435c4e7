"""``step``: the debugger. What it shows is ``chatfold.stepper``'s; here it is opened and run."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TextIO

from chatfold.cli.guard import Failure, UsageProblem
from chatfold.cli.sources import must_have, named
from chatfold.replaying.conditions import Condition, parse_condition
from chatfold.replaying.logs import STDIN, LogSource
from chatfold.stepper.longlog import LongLog, open_long
from chatfold.stepper.model import Stepper

if TYPE_CHECKING:
    from chatfold.stepper.following import StoredChat
    from generation.agents import Agent

NEEDS: Final = "chatfold step needs Textual: pip install 'chatfold[step]'"


def run_step(
    source: str,
    *,
    at: int | None,
    stop: str | None,
    follow: bool,
    agents: Sequence[str],
    db: str | None,
    log_level: str | None,
) -> None:
    """Step through a log; see the command.

    Raises:
        Failure: Textual is not installed.
        UsageProblem: The log has no such version, or cannot be stepped through or followed; there are no such agents;
            or this is no terminal.
        ConditionError: The breakpoint cannot be read.
    """
    if importlib.util.find_spec("textual") is None:
        raise Failure(NEEDS)
    condition = parse_condition(stop) if stop is not None else None
    given = _agents(agents) if agents else []
    if source == STDIN:
        raise UsageProblem("- (stdin) cannot be stepped through: the keys come from there; save it in a file")
    found = named(source, db, log_level)
    if follow and found.place != "chat":
        raise UsageProblem(f"{source} is a file, and does not grow; --follow is for a chat in a store")
    asyncio.run(_shown(found, _Start(at, condition, given, follow)))


def _agents(references: Sequence[str]) -> Sequence[Agent]:
    # It brings the whole engine: who names no agents should not wait for it.
    from chatfold.cli.agents import load_agents

    return load_agents(references)


class _Start(NamedTuple):
    """How the debugger begins: where, with which breakpoint and which agents, and whether it follows the chat."""

    at: int | None
    stop: Condition | None
    agents: Sequence[Agent]
    follow: bool


async def _shown(source: LogSource, start: _Start) -> None:
    if source.place == "file":
        await _app(open_long(source), start, source.where)
        return
    # A store brings its database's driver; who reads files should not wait for it.
    from chatfold.stepper.following import StoredChat
    from store import open_store

    if source.store is None:
        raise UsageProblem(f"chat {source.where} is in a store, and none is named")
    async with open_store(source.store) as store:
        chat = await StoredChat.opened(store, source.where, near=start.at)
        await _app(chat.log, start, f"{source.where}.jsonl", chat)


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()


async def _app(log: LongLog, start: _Start, file: str, chat: StoredChat | None = None) -> None:
    from chatfold.stepper.app import StepApp

    must_have(log.name, start.at, len(log.events))
    if not (_is_terminal(sys.__stdin__) and _is_terminal(sys.__stderr__)):
        # Textual would write escapes to whatever is there, and wait for keys for ever.
        raise UsageProblem("step needs a terminal, for its keys and its screen; `chatfold show` and `why` need none")
    stepper = Stepper(log, start.at, start.stop, agents=start.agents)
    await StepApp(stepper, file, chat, follow=start.follow).run_async()
