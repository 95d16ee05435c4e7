"""What hooks say of a message before it is appended: it is refused, changed, or goes with a word for the model.

Nothing is held while they are asked: no lock, no transaction, no place in a queue.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from chatfold.checks import checked_chat
from chatfold.commanding import Commanding
from events.content import Content, Json
from events.ids import ChatId, CommandId, MessageId
from events.messages import Message
from events.parts import HookContextPart, TextPart
from generation.errors import HookDenied, HookFailed


class Admission(Commanding):
    """Asks hooks about what users send. ``Engine`` is one; it is not used by itself."""

    async def _admitted(
        self, chat: str, message: Message, command_id: str | None, *, replaces: MessageId | None = None
    ) -> Message:
        """Return a user's message as it shall be appended.

        Args:
            chat: The chat.
            message: The message.
            command_id: The command's, where it has one.
            replaces: The message in whose place it comes, whose author it keeps where it names none.

        Raises:
            HookDenied: A hook refused it.
            HookFailed: A hook could not be asked: nothing is appended.
        """
        hooks = self.runtime.hooks
        if message.role != "user" or not hooks.at("user_prompt_submit"):
            return message
        text = "\n\n".join(
            part.text.text for part in message.parts if isinstance(part, TextPart) and part.text.available
        )
        checked_chat(chat)
        place = command_id if command_id is not None else self.runtime.new_id()
        author = message.author
        if author is None and replaces is not None:
            author = await self._author_of(chat, replaces)
        facts: dict[str, Json] = {"text": text, "author": author}
        try:
            verdict = await hooks.ask("user_prompt_submit", chat, place, facts, input_as="text")
            if verdict.deny is not None:
                raise HookDenied("user_prompt_submit", verdict.deny)
        except (HookDenied, HookFailed):
            if not await self._is_done(chat, command_id):
                raise
            return message
        parts = message.parts
        if isinstance(verdict.input, str):
            parts = (TextPart(text=Content(verdict.input)), *(part for part in parts if not isinstance(part, TextPart)))
        if verdict.context is not None:
            parts = (*parts, HookContextPart(event="user_prompt_submit", text=Content(verdict.context)))
        return message if parts is message.parts else replace(message, parts=parts)

    async def _author_of(self, chat: str, message: MessageId) -> str | None:
        """Return the author of a message of history or of the queue; None where it has none, or is not there."""
        loaded = await self.runtime.journal.load(ChatId(chat), transcript=True)
        if loaded is None:
            return None
        transcript = loaded.state.need_transcript("ask hooks")
        if message in transcript.queued:
            return transcript.queued[message].message.author
        position = transcript.messages.find(message)
        return None if position is None else transcript.messages[position].message.author

    async def _is_done(self, chat: str, command_id: str | None) -> bool:
        """Whether a command was done before: what hooks say when it is repeated does not undo it."""
        if command_id is None:
            return False
        return await self.runtime.journal.store.find_command(ChatId(chat), CommandId(command_id)) is not None

    async def _session_started(self, chat: str, agent: str, owner: str, command_id: str | None) -> tuple[Message, ...]:
        """Return what hooks say at the start of a chat, as a system message of it; nothing where they say nothing.

        Raises:
            HookFailed: A hook could not be asked: the chat is not created.
        """
        hooks = self.runtime.hooks
        if not hooks.at("session_start"):
            return ()
        try:
            context = (await hooks.ask("session_start", chat, _START, {"agent": agent, "owner": owner})).context
        except HookFailed:
            if not await self._is_done(chat, command_id):
                raise
            return ()
        return () if context is None else (Message(role="system", parts=(TextPart(text=Content(context)),)),)


_START: Final = "0"
"""The place of the one start that a chat has."""
