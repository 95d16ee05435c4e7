"""A chat's choice of tools: of those that its agent has, and what becomes of it where the agent changes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from chatfold import Agent, Engine, InvalidValue, TransitionNotAllowed, tool
from chatfold.testing import ScriptedProvider
from events.vocabulary import ActiveToolsChanged, AgentChanged


@tool
def read() -> str:
    """Read."""
    return "read"


@tool
def write() -> str:
    """Write."""
    return "written"


@tool
def draw() -> str:
    """Draw."""
    return "drawn"


WRITER = Agent(name="writer", model="scripted", tools=[read, write])
PAINTER = Agent(name="painter", model="scripted", tools=[read, draw], active_tools=["draw"])


def engine_of(*agents: Agent, url: str = "memory://") -> Engine:
    provider = ScriptedProvider(lambda _request: "Done.")
    return Engine(url, agents, providers={"scripted": provider} if agents else {})


async def chosen(engine: Engine, chat: str) -> tuple[str, ...] | None:
    return (await engine.state(chat)).control.active_tools


@pytest.mark.parametrize(
    ("names", "path", "said"),
    [
        (["nope"], "$.tools[0]", "agent 'writer' has no tool 'nope'; it has: read, write"),
        (["read", "nope", "draw"], "$.tools[1]", "agent 'writer' has no tool 'nope', 'draw'; it has: read, write"),
    ],
)
async def test_names_that_the_agent_does_not_have_are_refused(names: Sequence[str], path: str, said: str) -> None:
    async with engine_of(WRITER, PAINTER) as engine:
        chat = (await engine.create_chat("writer", "Hi.")).chat
        version = (await engine.settled(chat)).control.version
        with pytest.raises(InvalidValue, match=said) as refused:
            await engine.set_active_tools(chat, names)
        assert refused.value.path == path
        state = await engine.state(chat)
        assert (state.control.active_tools, state.control.version) == (None, version)


async def test_whoever_does_not_have_the_agent_cannot_know_its_tools(sqlite_url: str) -> None:
    async with engine_of(WRITER, url=sqlite_url) as engine:
        chat = (await engine.create_chat("writer", "Hi.")).chat
        await engine.settled(chat)
        async with engine_of(url=sqlite_url) as other:
            await other.set_active_tools(chat, ["elsewhere"])
        assert await chosen(engine, chat) == ("elsewhere",)


async def test_an_archived_chat_takes_no_choice() -> None:
    async with engine_of(WRITER) as engine:
        chat = (await engine.create_chat("writer", "Hi.")).chat
        await engine.settled(chat)
        await engine.archive(chat)
        with pytest.raises(TransitionNotAllowed):
            await engine.set_active_tools(chat, ["read"])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (["read", "write"], ("read",)),
        (["write"], None),
        (["read"], ("read",)),
        ([], ()),
        (None, None),
    ],
)
async def test_another_agent_takes_over_what_it_has_of_the_choice(
    before: Sequence[str] | None, after: tuple[str, ...] | None
) -> None:
    async with engine_of(WRITER, PAINTER) as engine:
        chat = (await engine.create_chat("writer", "Hi.")).chat
        await engine.settled(chat)
        await engine.set_active_tools(chat, before)
        receipt = await engine.set_agent(chat, "painter", command_id="hand over")
        assert await chosen(engine, chat) == after
        assert (await engine.set_agent(chat, "painter", command_id="hand over")).repeated
        events = [each.event for each in await engine.events(chat)]
        changed = [type(event) for event in events if isinstance(event, AgentChanged | ActiveToolsChanged)]
        said_so = before is not None and tuple(before) != after
        assert changed == [ActiveToolsChanged, AgentChanged, *([ActiveToolsChanged] if said_so else [])]
        assert receipt.version == len(events), "in one append"
        await engine.send_message(chat, "And now?")
        state = await engine.settled(chat)
    policy = state.need_transcript("policy").policies[state.control.policy]
    own: dict[tuple[str, ...] | None, list[str]] = {None: ["draw"], (): ["draw", "read"]}
    assert [each.name for each in policy.tools] == own.get(after, ["read"])
