"""Long chats as the engine writes them, made at once: turns of a user's message, a call, its result and an answer."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from events.content import Content
from events.digest import GENESIS
from events.encoding import encode
from events.ids import ChatId
from events.messages import Message
from events.parts import TextPart
from store.contract import Header, NewEvent, Store
from store.heading import header_of
from tests.chatstate import build as b
from tests.chatstate.chat import Chat

MESSAGES_OF_A_TURN = 4


def turn(chat: Chat, text: Callable[[], str]) -> None:
    """Have a turn of four messages."""
    chat.do(b.acquire())
    if len(chat.log) == 2:
        chat.do(b.record_policy(chat))
    chat.do(b.start(chat))
    call = replace(b.CALLS["rerun"], arguments=Content(text()))
    chat.do(b.commit(chat, Message(role="assistant", parts=(call,), step=b.STEP)))
    chat.do(b.start_tools(chat))
    chat.do(b.result(chat, chat.calls[0].key, text()))
    chat.do(b.commit(chat))
    chat.do(b.start(chat))
    chat.do(b.commit(chat, Message(role="assistant", parts=(TextPart(text=Content(text())),), step=b.STEP)))
    chat.do(b.finish(chat))


def long_chat(messages: int, text: Callable[[], str]) -> Chat:
    """Return a chat of about so many messages."""
    chat = Chat()
    chat.do(b.create(b.user(text())))
    turn(chat, text)
    for _ in range(messages // MESSAGES_OF_A_TURN - 1):
        chat.do(b.send(text()))
        turn(chat, text)
    return chat


async def put(store: Store, chat: Chat, identity: ChatId) -> Header:
    """Write a chat into a store, whole and without segments."""
    digest, events, blobs = GENESIS, list[NewEvent](), dict[str, bytes]()
    for recorded in chat.log:
        salt = recorded.version.to_bytes(16, "big")
        encoded = encode(recorded, salt=salt, previous_digest=digest)
        digest = encoded.stored.digest
        events.append(NewEvent(stored=encoded.stored))
        blobs |= encoded.blobs
    header = header_of(chat.state, digest, chat=identity, title=None, foreign=False, reader_level=store.write_level)
    assert await store.import_chat(header, events, blobs)
    return header
