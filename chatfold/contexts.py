"""The engine's commands on a chat's context: what is recorded, whether it is stale, and to collect it anew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from chatfold.checks import checked_chat, checked_flag
from chatfold.keeping import ChatKeeping
from chatfold.receipts import Receipt
from chatstate import commands as c
from chatstate.classify import classify
from chatstate.errors import TransitionNotAllowed
from events.content import Content
from events.messages import Message
from events.parts import ContextFault, ContextFilePart, ContextProblemPart, SkillPart
from events.state import ChatState
from generation.errors import UnknownAgent
from generation.plans import may_write_beside
from generation.staleness import look_whether_stale, watched
from store.append import PlanRun

ResourceStatus: TypeAlias = Literal["ok"] | ContextFault
"""How something of a workspace was found: ``ok``, or why it is not in the context."""


class ContextResource(Struct, frozen=True, kw_only=True):
    """Something of a workspace.

    Attributes:
        path: A file's, or a skill's folder.
        status: Whether it is in the context.
        skill: The skill's name, where it is one.
        detail: A skill's description, or why something is not in the context; empty for a file.
    """

    path: str
    status: ResourceStatus
    skill: str | None = None
    detail: str = ""


class ChatContext(Struct, frozen=True, kw_only=True):
    """What a chat has of its agent's context source.

    Attributes:
        source: The source's name; None while nothing is recorded.
        revision: The recorded state of it.
        resources: What was found.
        stale_since: Since when the source is known to have another context (microseconds UTC); None: not known to.
        refreshing: Whether it will be collected anew before the model is asked again.
        looked: Whether the source was asked just now. Not without ``look``, before anything is recorded, and where the
            source cannot tell (it has no ``revision_for``).
    """

    source: str | None = None
    revision: str | None = None
    resources: Sequence[ContextResource] = ()
    stale_since: int | None = None
    refreshing: bool = False
    looked: bool = False

    @property
    def dirty(self) -> bool:
        """Whether the source is known to have another context."""
        return self.stale_since is not None


class ChatContexts(ChatKeeping):
    """Commands on contexts. ``Engine`` has them; see ``ChatCommands`` for command ids and refusals."""

    async def context(self, chat: str, *, look: bool = False) -> ChatContext:
        """Return what a chat has of its agent's context source.

        Args:
            chat: The chat.
            look: Ask the source first whether it has another context by now, and mark the chat if so; ``looked`` says
                whether it could be asked. A worker asks by itself when it begins to run a chat.

        Raises:
            ChatNotFound: There is no such chat.
            UnknownAgent: This engine is to look, and does not have the chat's agent.
        """
        known, asked = checked_chat(chat), checked_flag(look, "$.look")
        loaded = await self._load("context", known)
        looked = False
        if asked:
            control = loaded.state.control
            if control.agent not in self.runtime.agents:
                raise UnknownAgent(control.agent, tuple(self.runtime.agents))
            looked = watched(self.runtime, control) is not None
            await look_whether_stale(self.runtime, known, loaded.state.control, self.runtime.identity())
            loaded = await self.runtime.journal.load(known, transcript=True) or loaded
        return replace(_shown(loaded.state), looked=looked)

    async def refresh_context(self, chat: str, *, command_id: str | None = None) -> Receipt:
        """Have the context collected anew before the model is asked again; a turn that runs does so too.

        Raises:
            TransitionNotAllowed: The chat's agent has no context source, or releases that run this chat know no
                refreshing.
        """

        def commands(run: PlanRun) -> Sequence[c.AnyCommand]:
            control = run.state.control
            agent = self.runtime.agents.get(control.agent)
            if control.exists and not control.archived:
                if agent is not None and agent.context is None:
                    reason = f"agent {control.agent} has no context source"
                    raise TransitionNotAllowed("mark_context", classify(control), reason)
                if not run.foreign and not may_write_beside(run):
                    reason = "a worker of an older release may run this chat"
                    raise TransitionNotAllowed("mark_context", classify(control), reason)
            return (c.MarkContext(mark="refresh"),)

        return await self._commands(chat, commands, command_id, ("mark_context", "refresh"))


def _shown(state: ChatState) -> ChatContext:
    control = state.control
    indexes = control.indexes
    if indexes.context_source is None:
        return ChatContext(refreshing=control.context_refresh_at is not None)
    messages = state.need_transcript("context").messages
    newest = next((item.message for item in reversed(messages) if item.message.context is not None), None)
    return ChatContext(
        source=indexes.context_source,
        revision=indexes.context_revision,
        resources=() if newest is None else _resources(newest),
        stale_since=control.context_stale_since,
        refreshing=control.context_refresh_at is not None,
    )


def _resources(message: Message) -> Sequence[ContextResource]:
    found = []
    for part in message.parts:
        match part:
            case ContextFilePart():
                found.append(ContextResource(path=_text(part.path), status="ok"))
            case SkillPart():
                name, about = _text(part.name), _text(part.description)
                found.append(ContextResource(path=_text(part.directory), status="ok", skill=name, detail=about))
            case ContextProblemPart():
                found.append(ContextResource(path=_text(part.path), status=part.fault, detail=_text(part.detail)))
            case _:
                pass
    return tuple(sorted(found, key=lambda each: each.path))


def _text(content: Content) -> str:
    return content.text if content.available else ""
