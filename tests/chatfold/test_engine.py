"""The engine as an application uses it: each command once, over the memory store and the scripted model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from chatfold import (
    Agent,
    ChatNotFound,
    ChatQuery,
    Engine,
    InvalidValue,
    Refusal,
    Settings,
    TextPart,
    TransitionNotAllowed,
    client_tool,
    result,
    tool,
)
from chatstate.audit import audit
from chatstate.errors import IdempotencyConflict
from events.state import ChatState
from generation.errors import UnknownAgent, UnknownModel
from generation.providers.script import Say, Script, UseTool, Wait, turn
from generation.providers.scripted import ScriptedProvider
from store.errors import ChatExists


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


PICK = client_tool("pick", "Let the user pick.", {"type": "object", "properties": {}})


def engine_of(script: Script, *, worker: bool = True) -> Engine:
    agent = Agent(name="helper", model="scripted/any", tools=[add, PICK])
    settings = Settings(poll=0.05, grace=0.2, model_retry_unit=0.01)
    providers = {"scripted": ScriptedProvider(script)}
    return Engine("memory://", [agent], worker=worker, providers=providers, settings=settings)


@pytest.fixture
async def idle() -> AsyncIterator[Engine]:
    """An engine without a worker: chats stay where commands put them."""
    async with engine_of([], worker=False) as engine:
        yield engine


def texts(state: ChatState) -> list[str]:
    transcript = state.need_transcript("read texts")
    parts = [part for item in transcript.messages for part in item.message.parts]
    return [part.text.text for part in parts if isinstance(part, TextPart)]


async def sound(engine: Engine, chat: str) -> None:
    assert list(audit(await engine.events(chat))) == []


async def test_a_turn_with_a_local_tool() -> None:
    async with engine_of([turn(UseTool("add", {"a": 1, "b": 2})), turn(Say("Three."))]) as engine:
        created = await engine.create_chat("helper", "1 + 2?", owner="ada", title="Sums", labels={"kind": "sum"})
        state = await engine.settled(created.chat)
        assert (state.control.status, texts(state)) == ("waiting", ["1 + 2?", "Three."])
        (header,) = await engine.list_chats(ChatQuery(owner="ada"))
        assert (header.title, header.labels, header.status) == ("Sums", {"kind": "sum"}, "waiting")
        await sound(engine, created.chat)


async def test_a_client_tool_waits_for_its_client() -> None:
    async with engine_of([turn(UseTool("pick")), turn(Say("A file."))]) as engine:
        chat = (await engine.create_chat("helper", "Pick one.")).chat
        action = (await engine.settled(chat)).control.action
        assert action is not None
        (item,) = action.items
        assert item.call is not None
        await engine.submit_tool_results(chat, action.id, [result(item.call, {"name": "notes.txt"})])
        assert texts(await engine.settled(chat))[-1] == "A file."
        await sound(engine, chat)


async def test_queue_and_interrupt() -> None:
    held, reached = asyncio.Event(), asyncio.Event()
    script = [turn(Say("First"), Wait(held, reached=reached.set), Say(" ends.")), turn(Say("Second."))]
    async with engine_of(script) as engine:
        chat = (await engine.create_chat("helper", "One")).chat
        await reached.wait()
        one, two = [(await engine.send_message(chat, text)).queued[0] for text in ("Two", "Three")]
        await engine.reorder_queue(chat, [two, one])
        await engine.edit_queued(chat, two, "Three!")
        await engine.delete_queued(chat, one)
        (entry,) = await engine.queue(chat)
        assert (entry.id, entry.model) == (two, None)
        (part,) = entry.message.parts
        assert isinstance(part, TextPart)
        assert part.text.text == "Three!"
        await engine.interrupt(chat)
        state = await engine.settled(chat)
        assert texts(state) == ["One", "First", "Three!", "Second."]
        await sound(engine, chat)


async def test_edit_answers_anew() -> None:
    async with engine_of([turn(Say("One.")), turn(Say("Two."))]) as engine:
        created = await engine.create_chat("helper", "Say one")
        await engine.settled(created.chat)
        await engine.edit_message(created.chat, created.messages[0], "Say two")
        assert texts(await engine.settled(created.chat)) == ["Say two", "Two."]
        assert texts(await engine.state(created.chat, at=5)) == ["Say one", "One."]
        await sound(engine, created.chat)


async def test_fork_and_resume() -> None:
    async with engine_of([turn(Say("One.")), turn(Say("Other."))]) as engine:
        created = await engine.create_chat("helper", "Say one")
        await engine.settled(created.chat)
        fork = await engine.fork(created.chat, at=1, resume=True, title="Again")
        assert texts(await engine.settled(fork.chat)) == ["Say one", "Other."]
        await sound(engine, fork.chat)
        with pytest.raises(ChatNotFound):
            await engine.fork(created.chat, at=99)


@pytest.mark.parametrize(("chat_id", "owner"), [("copy", None), (None, "somebody")])
async def test_a_fork_that_is_sent_again_is_known_also_when_its_origin_is_gone(
    chat_id: str | None, owner: str | None
) -> None:
    async with engine_of([turn(Say("One."))]) as engine:
        created = await engine.create_chat("helper", "Say one")
        await engine.settled(created.chat)
        fork = await engine.fork(created.chat, chat_id=chat_id, owner=owner, command_id="f1")
        await engine.delete(created.chat)
        again = await engine.fork(created.chat, chat_id=chat_id, owner=owner, command_id="f1")
        assert (again.chat, again.version, again.repeated) == (fork.chat, fork.version, True)
        with pytest.raises(ChatNotFound):
            await engine.fork(created.chat, chat_id=chat_id, owner=owner, command_id="f2")
        with pytest.raises(IdempotencyConflict):
            await engine.fork(created.chat, chat_id=chat_id, owner=owner, title="Other", command_id="f1")


async def test_compact_clear_and_undo() -> None:
    async with engine_of([turn(Say("One.")), turn(Say("They said one.")), turn(Say("Two."))]) as engine:
        chat = (await engine.create_chat("helper", "Say one")).chat
        await engine.settled(chat)
        await engine.compact(chat, hint="numbers")
        state = await engine.settled(chat)
        assert (state.control.status, state.control.indexes.boundary_kind) == ("waiting", "chat_summarized")
        await engine.uncompact(chat)
        assert (await engine.state(chat)).control.indexes.boundary is None
        await engine.clear(chat)
        assert (await engine.state(chat)).control.indexes.boundary_kind == "chat_cleared"
        await sound(engine, chat)


async def test_metadata_and_archive(idle: Engine) -> None:
    chat = (await idle.create_chat("helper", system="Be brief.")).chat
    await idle.set_title(chat, "A title")
    await idle.set_labels(chat, {"a": "b"})
    await idle.set_model(chat, "scripted/other", effort="low")
    await idle.set_agent(chat, "helper")
    await idle.set_pinned(chat, pinned=True)
    await idle.set_retention(chat, 3600)
    assert (await idle.archive(chat)).state == "XW"
    with pytest.raises(TransitionNotAllowed):
        await idle.send_message(chat, "Hello?")
    assert (await idle.unarchive(chat)).state == "W"
    control = (await idle.state(chat)).control
    assert (control.model, control.effort, control.agent) == ("scripted/other", "low", "helper")
    assert (control.labels, control.pinned, control.retention_us) == ({"a": "b"}, True, 3_600_000_000)


async def test_erase_takes_the_content_and_keeps_the_facts(idle: Engine) -> None:
    created = await idle.create_chat("helper", "A secret")
    before = (await idle.state(created.chat)).control
    await idle.erase(created.chat, created.messages)
    after = await idle.state(created.chat)
    (message,) = after.need_transcript("read").messages
    (part,) = message.message.parts
    assert isinstance(part, TextPart)
    assert part.text.erased
    assert (after.control.status, after.control.history_version) == (before.status, before.history_version)


async def test_what_cannot_be_stored_is_refused_with_its_path(idle: Engine) -> None:
    for text in ("", "  ", "lone \ud800"):
        with pytest.raises(InvalidValue, match=r"\$\.message"):
            await idle.create_chat("helper", text)
    with pytest.raises(ChatNotFound):
        await idle.send_message("nobody", "Hello")
    with pytest.raises(ChatNotFound):
        await idle.state("nobody")


async def test_names_that_nobody_knows_are_refused_at_once(idle: Engine) -> None:
    with pytest.raises(UnknownAgent, match="there is no agent 'helpr'; declared here: helper"):
        await idle.create_chat("helpr", "Hello")
    with pytest.raises(UnknownModel, match="nonsense"):
        await idle.create_chat("helper", "Hello", model="nonsense")
    with pytest.raises(InvalidValue, match=r"\$\.effort"):
        await idle.create_chat("helper", "Hello", effort="much")
    assert await idle.list_chats() == []


async def test_the_model_of_a_message_is_that_of_its_turn() -> None:
    async with engine_of([turn(Say("One.")), turn(Say("Two."))]) as engine:
        chat = (await engine.create_chat("helper", "Hello")).chat
        await engine.settled(chat)
        await engine.send_message(chat, "Again", model="scripted/other", effort="low")
        state = await engine.settled(chat)
        step = state.need_transcript("read").messages[-1].message.step
        assert step is not None
        assert (step.model, state.control.model, state.control.effort) == ("other", "scripted/other", "low")


async def test_a_refusal_says_what_where_and_why(idle: Engine) -> None:
    chat = (await idle.create_chat("helper", "Hello")).chat
    with pytest.raises(Refusal) as caught:
        await idle.resume(chat)
    assert str(caught.value).endswith("a chat that is pending allows only: send, send_interrupt, edit, interrupt")
    assert (caught.value.code, caught.value.trigger, caught.value.state) == ("transition_not_allowed", "resume", "P0")


async def test_a_failed_turn_says_why_and_can_be_resumed() -> None:
    async with engine_of([turn(UseTool("add", {"a": 1, "b": 2}))]) as engine:
        chat = (await engine.create_chat("helper", "1 + 2?")).chat
        state = await engine.settled(chat)
        assert state.control.status == "error"
        assert state.control.last_error is not None
        assert (await engine.resume(chat)).status in {"pending", "running"}
        await engine.settled(chat)
        await sound(engine, chat)


async def test_the_id_of_a_deleted_chat_is_never_used_again(idle: Engine) -> None:
    await idle.create_chat("helper", "Hello", chat_id="once")
    with pytest.raises(TransitionNotAllowed, match="interrupt it first"):
        await idle.delete("once")
    await idle.interrupt("once")
    await idle.delete("once")
    await idle.delete("once")
    with pytest.raises(ChatNotFound):
        await idle.state("once")
    with pytest.raises(ChatNotFound):
        await idle.delete("never")
    with pytest.raises(ChatExists, match="once"):
        await idle.create_chat("helper", "Again?", chat_id="once")


async def test_what_set_model_is_not_given_stays(idle: Engine) -> None:
    chat = (await idle.create_chat("helper", system="Be brief.")).chat

    async def chosen() -> tuple[str | None, str | None]:
        control = (await idle.state(chat)).control
        return control.model, control.effort

    await idle.set_model(chat, effort="low")
    assert await chosen() == (None, "low")
    await idle.set_model(chat, "scripted/other")
    assert await chosen() == ("scripted/other", "low")
    await idle.set_model(chat, "scripted/other")
    assert await chosen() == ("scripted/other", "low")
    await idle.set_model(chat, effort=None)
    assert await chosen() == ("scripted/other", None)
    await idle.set_model(chat, None, effort="high")
    assert await chosen() == (None, "high")
    version = (await idle.state(chat)).control.version
    with pytest.raises(InvalidValue, match=r"\$\.model: give a model, an effort, or both"):
        await idle.set_model(chat)
    assert (await idle.state(chat)).control.version == version
