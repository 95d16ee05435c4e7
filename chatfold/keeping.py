"""The engine's commands on chats as things that are kept: archive, labels, model, erase, adopt, delete, fork."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn

from msgspec import UNSET, UnsetType

from chatfold.checks import (
    check_known_tools,
    checked_chat,
    checked_command_id,
    checked_effort,
    checked_flag,
    checked_labels,
    checked_message_ids,
    checked_new_chat,
    checked_person,
    checked_retention,
    checked_title,
    checked_tool_names,
)
from chatfold.commanding import Commanding
from chatfold.diagnosis import tools_of_workers
from chatfold.inputs import derived_chat_id
from chatfold.receipts import Receipt
from chatfold.retention import may_be_deleted
from chatstate import commands as c
from chatstate.classify import classify
from chatstate.errors import ChatNotFound, Refusal, TransitionNotAllowed
from chatstate.fork import plan_imports
from events.content import Content
from events.errors import InvalidValue
from events.ids import ChatId
from events.records import ErrorInfo, Origin
from events.replay import state_at
from events.state import ChatState
from events.values import checked_whole
from store.append import PlanRun
from store.loading import load_chat, must_be_there, read_recorded


class ChatKeeping(Commanding):
    """Commands that keep chats in order. ``Engine`` has them; see ``ChatCommands`` for command ids and refusals."""

    async def archive(self, chat: str, *, command_id: str | None = None) -> Receipt:
        """Put the chat away: it is read, forked and exported, and changes no more until it is taken out again."""
        return await self._command(chat, c.Archive(), command_id)

    async def unarchive(self, chat: str, *, command_id: str | None = None) -> Receipt:
        """Take the chat out again."""
        return await self._command(chat, c.Unarchive(), command_id)

    async def set_title(self, chat: str, title: str | None, *, command_id: str | None = None) -> Receipt:
        """Change the title."""
        return await self._command(chat, c.SetTitle(title=checked_title(title)), command_id)

    async def set_labels(self, chat: str, labels: Mapping[str, str], *, command_id: str | None = None) -> Receipt:
        """Replace the labels, all of them.

        Raises:
            InvalidValue: A name or value is not a text, or cannot be stored exactly.
        """
        return await self._command(chat, c.SetLabels(labels=checked_labels(labels)), command_id)

    async def set_model(
        self,
        chat: str,
        model: str | UnsetType | None = UNSET,
        *,
        effort: str | UnsetType | None = UNSET,
        command_id: str | None = None,
    ) -> Receipt:
        """Choose model, effort, or both for turns from now on. What is not given stays as the chat has it.

        Args:
            chat: The chat.
            model: ``provider/name``; None for the agent's own.
            effort: The reasoning effort; None for that of whatever model answers.
            command_id: See the class.

        Raises:
            UnknownModel: The model has not the form ``provider/name``, or this engine has no such provider.
            InvalidValue: There is no such effort, or neither is given.
        """
        if model is UNSET and effort is UNSET:
            raise InvalidValue("$.model", "give a model, an effort, or both")
        command = c.SetModel(
            model=model if isinstance(model, UnsetType) else self._check_model(model),
            effort=effort if isinstance(effort, UnsetType) else checked_effort(effort),
        )
        return await self._command(chat, command, command_id)

    async def set_agent(self, chat: str, agent: str, *, command_id: str | None = None) -> Receipt:
        """Hand the chat to another agent.

        Of the tools that the chat has chosen (``set_active_tools``), those that the new agent does not have are dropped
        with it; where none is left, the new agent's own choice counts.

        Raises:
            UnknownAgent: This engine has agents, and none of this name.
        """
        command = c.SetAgent(agent=self._check_agent(agent))
        new = self.runtime.agents.get(agent)

        def commands(run: PlanRun) -> Sequence[c.AnyCommand]:
            chosen = run.state.control.active_tools
            if new is None or not chosen:
                return (command,)
            kept = tuple(name for name in chosen if name in new.tool_names)
            return (command,) if kept == chosen else (command, c.SetActiveTools(tools=kept or None))

        return await self._commands(chat, commands, command_id, (command.trigger, command))

    async def set_active_tools(
        self, chat: str, tools: Sequence[str] | None, *, command_id: str | None = None
    ) -> Receipt:
        """Choose the tools that the model may call from now on.

        A call of another tool is answered with an error that says so. What is committed already goes on: a call that
        the client owes is still owed.

        Args:
            chat: The chat.
            tools: Names of tools that the chat's agent has. An empty list means all, None the agent's own choice
                (``Agent.active_tools``).
            command_id: See the class.

        Raises:
            InvalidValue: It is no list of texts, or the chat's agent does not have them all, as far as that is known:
                of an agent that this engine does not have, living workers say which tools it has.
            TransitionNotAllowed: The chat is archived, or it began before this release was alone with its database.
        """
        command = c.SetActiveTools(tools=checked_tool_names(tools))
        workers = await self.runtime.journal.store.list_workers() if command.tools else ()

        def commands(run: PlanRun) -> Sequence[c.AnyCommand]:
            name = run.state.control.agent
            agent = self.runtime.agents.get(name)
            known = tools_of_workers(name, workers) if agent is None else agent.tool_names
            if known is not None:
                check_known_tools(command.tools or (), name, known)
            return (command,)

        return await self._commands(chat, commands, command_id, (command.trigger, command))

    async def set_pinned(self, chat: str, pinned: bool, *, command_id: str | None = None) -> Receipt:  # noqa: FBT001
        """Pin or unpin the chat."""
        return await self._command(chat, c.SetPinned(pinned=checked_flag(pinned, "$.pinned")), command_id)

    async def set_retention(self, chat: str, seconds: float | None, *, command_id: str | None = None) -> Receipt:
        """Record how long the chat is to be kept after its last change; None: without limit.

        Nothing is deleted by it: ``Engine.expired_chats`` tells whose time is over. The last change is one that a user
        made (this too) or that changed history.

        Raises:
            InvalidValue: The time is negative or not a number.
        """
        command = c.SetRetention(retention_us=checked_retention(seconds))
        return await self._command(chat, command, command_id)

    async def erase(self, chat: str, message_ids: Sequence[str], *, command_id: str | None = None) -> Receipt:
        """Erase the content of messages for good; facts and digests stay.

        Messages that left history (an edit removed them, their compaction was undone, or they were deleted from the
        queue) can be named too. What belongs to no message goes with any: pieces of an answer that is not committed,
        what was asked of a summary that never came, labels of turns, texts of errors that are over, and titles that
        the chat has no more. The title that it has stays: ``set_title(chat, None)`` first takes it off. So does the
        error that it is in, until it is resumed or answers again.

        Raises:
            MessageNotFound: One of them is not, and never was, in this chat.
        """
        command = c.Erase(targets=checked_message_ids(message_ids, "$.message_ids"))
        return await self._command(chat, command, command_id, transcript=True)

    async def adopt(self, chat: str, *, command_id: str | None = None) -> Receipt:
        """Take over an imported chat: from now on it runs here."""
        return await self._command(chat, c.Adopt(), command_id)

    async def reconcile(self, chat: str, *, command_id: str | None = None) -> Receipt:
        """Lead a chat out of a combination that must not be (InvalidState): its open calls are answered, it fails.

        From there on its user decides, as after any failed turn.

        Raises:
            TransitionNotAllowed: The chat is sound.
        """
        error = ErrorInfo(
            kind="reconciled", message=Content("The chat was in a state that must not be. Resume it to go on.")
        )
        return await self._command(chat, c.Reconcile(error=error), command_id)

    async def delete(self, chat: str) -> None:
        """Delete a chat that waits, failed or is archived, or a foreign one.

        Its rows go, and its id is never used again.

        What stays is a tombstone with the log's last digest. Doing it again does nothing.

        Raises:
            ChatNotFound: There is no such chat, and there never was.
            TransitionNotAllowed: A turn is under way; interrupt it first.
        """
        store, identity = self.runtime.journal.store, checked_chat(chat)
        while True:
            loaded = await load_chat(store, identity, transcript=False)
            if loaded is None:
                must_be_there(await store.tombstone(identity), "delete", chat)
                return
            header = loaded.header
            if not may_be_deleted(header):
                state = classify(loaded.state.control)
                raise TransitionNotAllowed("delete", state, "a turn is under way; interrupt it first")
            if await store.delete(identity, header.version):
                self.runtime.journal.warm.drop(identity)
                self.runtime.observer.deleted(identity)
                return

    async def fork(
        self,
        chat: str,
        *,
        at: int | None = None,
        chat_id: str | None = None,
        owner: str | None = None,
        resume: bool = False,
        title: str | None = None,
        command_id: str | None = None,
    ) -> Receipt:
        """Copy a chat as it was at a version into a new one.

        Args:
            chat: The origin.
            at: The version; None for the newest.
            chat_id: Id of the new chat; without it one is derived or made up.
            owner: Whose the new chat is; None for the origin's owner.
            resume: Run the turn that the copied history owes.
            title: A title; None for the origin's.
            command_id: See the class.

        Raises:
            ChatNotFound: There is no origin, or it has no such version.
            InvalidValue: The version is not a number from 1 on, or an id is none.
            NothingOwed: ``resume`` was asked and nothing is owed.
        """
        source, named = checked_chat(chat), checked_command_id(command_id)
        whose = None if owner is None else checked_person(owner, "$.owner")
        version = None if at is None else checked_whole(at, "$.at", least=1)
        new_title = checked_title(title)
        try:
            origin, digest = await self._origin(source, version)
        except ChatNotFound as error:
            gone = error
            if chat_id is None and named is not None and whose is not None:
                chat_id = derived_chat_id(whose, named)
            if chat_id is None:
                raise
            # An earlier try of the same command may have made the copy while the origin was there.
            given = ("fork", chat, at, chat_id, owner, resume, title)
            return await self._commands(chat_id, lambda _: _refuse(gone), command_id, given)
        control = origin.control
        if chat_id is None:
            chat_id = self.runtime.new_id() if named is None else derived_chat_id(whose or control.owner, named)
        # A fork owes its turn from its first event on, and its messages come with the next: there is nothing to answer.
        answers = control.indexes.visible_after > 0 or control.indexes.boundary is not None
        fork = c.ForkChat(
            chat=checked_new_chat(chat_id, "$.chat_id"),
            owner=control.owner if whose is None else whose,
            agent=control.agent,
            release=self.runtime.release,
            origin=Origin(chat=source, version=control.version, digest=digest),
            owed=control.owed and answers,
            title=new_title if new_title is not None else origin.need_transcript("fork").title,
            labels=control.labels,
            model=control.model,
            effort=control.effort,
            active_tools=control.active_tools,
        )
        imports = plan_imports(origin)
        tail: tuple[c.AnyCommand, ...] = (c.Resume(),) if checked_flag(resume, "$.resume") else ()
        given = ("fork", chat, at, chat_id, owner, resume, title)
        return await self._commands(chat_id, lambda _: (fork, *imports, *tail), command_id, given)

    async def _origin(self, source: ChatId, version: int | None) -> tuple[ChatState, str]:
        """Return a chat as it was at a version (None: now), and the digest of its log there.

        Raises:
            ChatNotFound: There is no such chat, or it has no such version.
        """
        store = self.runtime.journal.store
        log = await read_recorded(store, source, upto=version)
        must_be_there(log or None, "fork", source)
        if version is not None and version > log[-1].version:
            raise ChatNotFound("fork", "N", f"chat {source} has no version {version}; its newest is {log[-1].version}")
        origin = state_at(log, log[-1].version)
        newest = origin.control.version
        stored = await store.read_events(source, after=newest - 1, upto=newest, content=False)
        if not stored:
            raise ChatNotFound("fork", "N", f"chat {source} was deleted meanwhile")
        return origin, stored[0].digest.hex()


def _refuse(refusal: Refusal) -> NoReturn:
    raise refusal
