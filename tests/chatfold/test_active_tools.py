"""A chat's choice of tools: of those that its agent has, and what becomes of it where the agent changes."""

from __future__ import annotations

import logging
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


async def test_an_engine_without_the_agent_asks_the_living_workers(sqlite_url: str) -> None:
    async with engine_of(WRITER, url=sqlite_url) as worker, Engine(sqlite_url, worker=False) as web:
        chat = (await web.create_chat("writer", "Hi.")).chat
        await web.settled(chat)
        with pytest.raises(InvalidValue, match="agent 'writer' has no tool 'nope'; it has: read, write"):
            await web.set_active_tools(chat, ["read", "nope"])
        await web.set_active_tools(chat, ["read"])
        assert await chosen(worker, chat) == ("read",)
        elsewhere = (await web.create_chat("painter")).chat
        await web.set_active_tools(elsewhere, ["nope"])  # nobody knows what it has
        assert await chosen(web, elsewhere) == ("nope",)


async def test_a_name_that_is_left_over_is_told(sqlite_url: str, caplog: pytest.LogCaptureFixture) -> None:
    async with Engine(sqlite_url, worker=False) as web:
        chat = (await web.create_chat("writer")).chat
        await web.set_active_tools(chat, ["read", "nope"])
        assert (await web.diagnose(chat)).unknown_tools == ()
        with caplog.at_level(logging.WARNING):
            async with engine_of(WRITER, url=sqlite_url):
                for _ in range(2):
                    await web.send_message(chat, "Hi.")
                    assert (await web.settled(chat)).control.status == "waiting"
                found = await web.diagnose(chat)
    assert found.unknown_tools == ("nope",)
    assert found.advice == (
        "Send a message. It chose tools that agent 'writer' does not have: 'nope'. See set_active_tools."
    )
    told = [vars(each) for each in caplog.records if each.getMessage() == "active_tools_unknown"]
    assert [(each["chat"], each["agent"], each["tools"]) for each in told] == [(chat, "writer", ["nope"])]
