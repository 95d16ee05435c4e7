"""``fork``: a chat as it was at a version goes on as another one, once it was said what cannot be taken back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import typer
from msgspec import Struct
from msgspec.structs import asdict, replace

from chatfold.cli.agents import BUILT_IN, load_agents
from chatfold.cli.guard import FAILED, UsageProblem
from chatfold.cli.output import Out, printable
from chatfold.cli.places import command, existing_store, load_settings
from chatfold.cli.shapes import ForkedLine
from chatfold.cli.sources import must_have
from chatfold.cli.typed import told_as
from chatfold.engine import Engine
from chatfold.randomness import new_id
from chatfold.replaying.effects import ToolEffect, effects_after
from chatfold.replaying.logs import Log, LogSource, is_file
from chatfold.settings import Settings
from chatfold.version import RELEASE
from events.control import Control
from events.counting import counted
from events.ids import ChatId
from events.logfile import LogFile, header_of
from events.vocabulary import PolicyRecorded
from generation.agents import Agent
from generation.errors import UnknownModel
from generation.providers.registry import provider_names

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
        UsageProblem: It is a file, there is no such version, or a message and the owed turn are asked for both.
        typer.Exit: With 1, where tools did something since, and that this is known was not said.
    """
    if fork.resume and fork.message is not None:
        raise UsageProblem("--resume runs the turn that is owed, --message begins another: give one of them")
    if is_file(fork.chat):
        raise UsageProblem(f"{fork.chat} is a file, and a chat of a store is forked: `chatfold import` makes one of it")
    settings = load_settings(db, log_level)
    url = existing_store(settings)
    log = LogSource("chat", fork.chat, url).read()
    at = len(log.events) if fork.at is None else fork.at
    must_have(fork.chat, at, len(log.events))
    loaded = load_agents(agents) if agents else []
    with told_as(chat_id="--as", agent="--agent", message="--message"):
        tried = asyncio.run(_try(settings, fork, loaded, log))
    if fork.model is not None and not loaded:
        _check_provider(out, fork.model, tried.agent)
    if fork.agent is not None and not loaded:
        _check_agent(out, fork.agent, log)
    effects = tuple(effects_after(log.bare(), at))
    _warn(out, effects, at)
    if effects and not yes:
        if json:
            out.data.json(_line(fork, at, effects, None))
        out.note("nothing was made; --yes makes the fork all the same")
        raise typer.Exit(FAILED)
    made = asyncio.run(_make(url, settings, fork, loaded))
    if json:
        out.data.json(_line(fork, at, effects, made))
    else:
        out.data.line(printable(made[0]))
        out.note(printable(f"forked from version {at}; {_goes_on(*made, agents, db)}"))


def _check_provider(out: Out, model: str, agent: str) -> None:
    """Check that a model's provider is there, where no agents say which there are.

    The agent that is built in is run with the providers that are built in. Those of an application may be known to its
    workers alone: then a warning must do.

    Raises:
        UnknownModel: It is not.
    """
    provider, known = model.partition("/")[0], ", ".join(provider_names())
    if provider in provider_names():
        return
    if agent == BUILT_IN:
        raise UnknownModel(model, f"there is no such provider; known here: {known}")
    out.warn(
        f"provider {provider} of --model {model} is not known here (known: {known}): the fork's turns fail unless the "
        f"workers that run agent {agent} have it"
    )


def _check_agent(out: Out, agent: str, log: Log) -> None:
    """Warn of an agent that is not known here, where no agents say which there are: workers may have it.

    Known are the one that is built in, and those that ran the chat.
    """
    ran = {each.event.policy.agent for each in log.bare() if isinstance(each.event, PolicyRecorded)}
    known = sorted({BUILT_IN, *ran})
    if agent not in known:
        out.warn(
            f"agent {agent} of --agent is not known here (known: {', '.join(known)}): the fork's turns wait until a "
            "worker runs that has it; --agents says which there are"
        )


def _goes_on(chat: str, made: Control, agents: Sequence[str], db: str | None) -> str:
    """Say which command goes on with a fork."""
    runs = made.status == "pending"
    flags = [] if runs else ["--chat", chat]
    loads = agents or ([] if made.agent == BUILT_IN else ["MODULE:NAME"])
    flags += [word for each in loads for word in ("--agents", each)]
    if db is not None:
        flags += ["--db", db if db.startswith("sqlite:") else "URL"]  # other URLs may have a password
    has = f", whose agents have {made.agent}," if "MODULE:NAME" in loads else ""
    return f"`{command('worker' if runs else 'chat', *flags)}`{has} {'runs its turn' if runs else 'goes on with it'}"


def _line(fork: Fork, at: int, effects: Sequence[ToolEffect], made: tuple[str, Control] | None) -> ForkedLine:
    chat, version = (None, None) if made is None else (made[0], made[1].version)
    told = tuple(asdict(each) for each in effects)
    return ForkedLine(origin=fork.chat, at=at, chat=chat, version=version, effects=told)


def _warn(out: Out, effects: Sequence[ToolEffect], at: int) -> None:
    """Say what tools did after the version: the fork does not know of it, and its model may do it again."""
    if not effects:
        return
    calls = counted(len(effects), "call")
    grave = sum(not each.repeatable for each in effects)
    out.warn(f"after version {at} tools did what a fork cannot undo: {calls}, {grave or 'none'} not safe to repeat")
    for each in effects[:SHOWN]:
        safe = "safe to repeat" if each.repeatable else "not safe to repeat"
        call = f" ({each.call})" if each.call is not None else ""
        out.note(printable(f"  version {each.version}: {each.tool}{call}, run by the {_WHO[each.runner]}, {safe}"))
    if len(effects) > SHOWN:
        out.note(f"  and {len(effects) - SHOWN} more; --json tells all")


_WHO = {"local": "worker", "client": "client", "provider": "provider"}


async def _try(settings: Settings, fork: Fork, agents: list[Agent], log: Log) -> Control:
    """Make the fork of a copy, which is dropped: what is refused late would leave one that is half done.

    Returns:
        How the fork would be.
    """
    header = header_of(ChatId(log.chat), log.events, release=RELEASE, blobs=log.blobs)
    async with Engine("memory://", agents, worker=False, settings=settings) as engine:
        copy = await engine.import_log(LogFile(header=header, events=log.events, blobs=log.blobs), as_id=new_id())
        return (await _fork(engine, replace(fork, chat=copy.chat)))[1]


async def _make(url: str, settings: Settings, fork: Fork, agents: list[Agent]) -> tuple[str, Control]:
    async with Engine(url, agents, worker=False, settings=settings) as engine:
        return await _fork(engine, fork)


async def _fork(engine: Engine, fork: Fork) -> tuple[str, Control]:
    made = await engine.fork(fork.chat, at=fork.at, chat_id=fork.chat_id)
    if fork.agent is not None:
        made = await engine.set_agent(made.chat, fork.agent)
    if fork.model is not None:
        made = await engine.set_model(made.chat, fork.model)
    if fork.message is not None:
        made = await engine.send_message(made.chat, fork.message)
    elif fork.resume:
        made = await engine.resume(made.chat)
    return str(made.chat), (await engine.state(made.chat)).control
