"""``fork``: a chat as it was at a version goes on as another one, once it was said what cannot be taken back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import typer
from msgspec import Struct
from msgspec.structs import asdict

from chatfold.checks import checked_model
from chatfold.cli.agents import load_agents
from chatfold.cli.guard import FAILED, UsageProblem
from chatfold.cli.output import Out, printable
from chatfold.cli.places import existing_store, load_settings
from chatfold.cli.shapes import ForkedLine
from chatfold.engine import Engine
from chatfold.inputs import message_of
from chatfold.replaying.effects import ToolEffect, effects_after
from chatfold.replaying.logs import LogSource
from chatfold.settings import Settings
from generation.agents import Agent

SHOWN = 20
"""Effects that are told one by one."""


class Fork(Struct, frozen=True, kw_only=True):
    """What a fork shall be.

    Attributes:
        chat: The origin.
        at: From which version; None for the newest.
        chat_id: Its id; None for one that is made up.
        agent, model: Other ones than the origin's; None for the same.
        message: What its user says next.
        resume: Run the turn that the copied history owes.
    """

    chat: str
    at: int | None
    chat_id: str | None
    agent: str | None
    model: str | None
    message: str | None
    resume: bool


def run_fork(
    out: Out, fork: Fork, *, agents: Sequence[str], yes: bool, json: bool, db: str | None, log_level: str | None
) -> None:
    """Fork a chat; see the command.

    Raises:
        UsageProblem: There is no such version, or a message and the owed turn are asked for both.
        typer.Exit: With 1, where tools did something since, and that this is known was not said.
    """
    if fork.resume and fork.message is not None:
        raise UsageProblem("--resume runs the turn that is owed, --message begins another: give one of them")
    # Before anything is made: a fork that is half done would be there, and its id taken.
    checked_model(fork.model)
    if fork.message is not None:
        message_of(fork.message)
    settings = load_settings(db, log_level)
    url = existing_store(settings)
    log = LogSource("chat", fork.chat, url).read()
    at = len(log.events) if fork.at is None else fork.at
    if at > len(log.events):
        raise UsageProblem(f"{fork.chat} has no version {at}; its last is {len(log.events)}")
    effects = tuple(effects_after(log.bare(), at))
    _warn(out, effects, at)
    if effects and not yes:
        if json:
            out.data.json(_line(fork, at, effects, None))
        out.note("nothing was made; --yes makes the fork all the same")
        raise typer.Exit(FAILED)
    loaded = load_agents(agents) if agents else []
    made = asyncio.run(_made(url, settings, fork, loaded))
    if json:
        out.data.json(_line(fork, at, effects, made))
    else:
        out.data.line(printable(made[0]))
        out.note(f"forked from version {at}; `chatfold chat --chat {made[0]}` goes on with it")


def _line(fork: Fork, at: int, effects: Sequence[ToolEffect], made: tuple[str, int] | None) -> ForkedLine:
    chat, version = (None, None) if made is None else made
    told = tuple(asdict(each) for each in effects)
    return ForkedLine(origin=fork.chat, at=at, chat=chat, version=version, effects=told)


def _warn(out: Out, effects: Sequence[ToolEffect], at: int) -> None:
    """Say what tools did after the version: the fork does not know of it, and its model may do it again."""
    if not effects:
        return
    grave = sum(not each.repeatable for each in effects)
    out.warn(f"after version {at} tools did what a fork cannot undo: {len(effects)} calls, {grave} not safe to repeat")
    for each in effects[:SHOWN]:
        safe = "safe to repeat" if each.repeatable else "not safe to repeat"
        call = f" ({each.call})" if each.call is not None else ""
        out.note(printable(f"  version {each.version}: {each.tool}{call}, run by the {_WHO[each.runner]}, {safe}"))
    if len(effects) > SHOWN:
        out.note(f"  and {len(effects) - SHOWN} more; --json tells all")


_WHO = {"local": "worker", "client": "client", "provider": "provider"}


async def _made(url: str, settings: Settings, fork: Fork, agents: list[Agent]) -> tuple[str, int]:
    async with Engine(url, agents, worker=False, settings=settings) as engine:
        made = await engine.fork(fork.chat, at=fork.at, chat_id=fork.chat_id)
        if fork.agent is not None:
            made = await engine.set_agent(made.chat, fork.agent)
        if fork.model is not None:
            made = await engine.set_model(made.chat, fork.model)
        if fork.message is not None:
            made = await engine.send_message(made.chat, fork.message)
        elif fork.resume:
            made = await engine.resume(made.chat)
        return str(made.chat), made.version
