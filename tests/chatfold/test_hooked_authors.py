"""Hooks are told who will be the author of a message, also where it takes the place of another one."""

from __future__ import annotations

import pytest

from chatfold import Agent, Engine
from chatfold.hooks import HookCall, PythonHook
from chatstate.errors import MessageNotFound, TransitionNotAllowed
from events.content import Content, Json
from events.messages import Message
from events.parts import TextPart


async def test_hooks_are_told_the_author_that_a_replaced_message_keeps() -> None:
    told: list[tuple[Json, Json]] = []

    def note(call: HookCall) -> None:
        told.append((call.facts["text"], call.facts["author"]))

    agent, hooks = Agent(name="helper", model="scripted"), [PythonHook(note, ["user_prompt_submit"])]
    named = Message(role="user", parts=(TextPart(text=Content("Four")),), author="eve")
    async with Engine("memory://", [agent], worker=False, hooks=hooks) as engine:
        chat = (await engine.create_chat("helper")).chat
        await engine.send_message(chat, "One", author="ada")
        queued = (await engine.send_message(chat, "Two", author="bob")).queued[0]
        first = (await engine.state(chat)).messages[0].id
        await engine.edit_queued(chat, queued, "Three")
        await engine.edit_queued(chat, queued, named)
        await engine.edit_message(chat, first, "Five")
        with pytest.raises(MessageNotFound):
            await engine.edit_message(chat, "99.0", "Six")
        with pytest.raises(TransitionNotAllowed):
            await engine.edit_queued(chat, queued, "Seven")
        (kept,) = (await engine.state(chat)).messages
    expected = [("One", "ada"), ("Two", "bob"), ("Three", "bob"), ("Four", "eve"), ("Five", "ada")]
    assert told == [*expected, ("Six", None), ("Seven", None)]
    assert kept.message.author == "ada"
