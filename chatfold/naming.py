"""The engine's command that proposes a title, and the names that applications need for titles and labels.

``Agent(titles=Titles())`` turns on what is done by itself.
"""

from __future__ import annotations

from chatfold.checks import checked_chat
from chatfold.commanding import Commanding
from chatstate.classify import classify
from chatstate.errors import ChatForeign, TransitionNotAllowed
from events.levels import known_at
from events.vocabulary import SideCallRecorded
from generation.errors import TitleNotProposed, UnknownAgent
from generation.naming import CHEAP, Titles
from generation.side_jobs import propose_title
from generation.titles import fallback_title

__all__ = ["CHEAP", "ChatNaming", "TitleNotProposed", "Titles", "fallback_title"]


class ChatNaming(Commanding):
    """Titles on request. ``Engine`` has it."""

    async def propose_title(self, chat: str) -> str:
        """Ask a model for a title of a chat, and return it; the chat keeps its own until ``set_title`` changes it.

        What the calls took and cost is recorded with the chat, whether or not there is a title.

        Raises:
            ChatNotFound: There is no such chat.
            ChatForeign: It was imported; fork or adopt it first.
            TransitionNotAllowed: It is archived, or began before this release was alone with its database.
            UnknownAgent: Its agent is not here.
            TitleNotProposed: No model gave a title that can be used; of kind ``timeout`` where none answered in time.
        """
        known = checked_chat(chat)
        loaded = await self._load("propose_title", known)
        control = loaded.state.control
        agent = self.runtime.agents.get(control.agent)
        if loaded.header.foreign:
            raise ChatForeign("propose_title", classify(control), "it was imported; fork or adopt it first")
        if control.archived:
            raise TransitionNotAllowed("propose_title", classify(control), "it is archived")
        if not known_at(loaded.header.reader_level, SideCallRecorded):
            reason = "a worker of an older release may run this chat"
            raise TransitionNotAllowed("propose_title", classify(control), reason)
        if agent is None:
            raise UnknownAgent(control.agent, tuple(self.runtime.agents))
        answer = await propose_title(self.runtime, agent, loaded)
        if answer.error is not None:
            raise TitleNotProposed(answer.error)
        return answer.text
