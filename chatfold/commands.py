"""The engine's commands: what users and clients do to chats.

Each is one append; a worker of this process may acquire the chat in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Literal, TypeAlias, get_args

from msgspec.structs import replace

from chatfold.inputs import (
    MessageInput,
    checked_effort,
    checked_labels,
    checked_model,
    checked_retention,
    derived_chat_id,
    fingerprint,
    message_of,
    queued,
    submitted,
)
from chatfold.receipts import Receipt, receipt
from chatstate import commands as c
from chatstate.errors import ChatNotFound
from chatstate.fork import plan_imports
from events.content import Content, Json
from events.errors import InvalidValue
from events.ids import ChatId, CommandId, MessageId
from events.records import Actor, ApprovalAnswer, BudgetAnswer, Origin
from events.replay import state_at
from events.values import check_value
from generation.errors import UnknownAgent
from generation.runtime import Runtime
from generation.worker import Worker
from store.append import CommandIdentity, Outcome, PlanRun
from store.loading import read_recorded

BusyBehaviour: TypeAlias = Literal["queue", "interrupt"]
Commands: TypeAlias = Callable[[PlanRun], Sequence[c.AnyCommand]]


class ChatCommands:
    """Commands on chats. ``Engine`` is one; it is not used by itself.

    Every method takes a ``command_id``: the same id with the same content does its work once and returns the first
    receipt again, with other content it is refused (IdempotencyConflict). Refusals are typed: see ``chatstate.errors``.
    """

    runtime: Runtime
    worker: Worker | None
    queue_limit: int

    async def create_chat(
        self,
        agent: str,
        message: MessageInput | None = None,
        *,
        owner: str = "",
        system: str | None = None,
        chat_id: str | None = None,
        title: str | None = None,
        labels: Mapping[str, str] | None = None,
        model: str | None = None,
        effort: str | None = None,
        command_id: str | None = None,
    ) -> Receipt:
        """Create a chat.

        Args:
            agent: Name of the agent that answers.
            message: The first user message; without one the chat waits.
            owner: The user whose chat it is.
            system: A system text of this chat alone, after the agent's own.
            chat_id: The id to use; without it one is derived from owner and command id, or made up.
            title: A title for lists.
            labels: Labels for lists.
            model: A model (``provider/name``) other than the agent's.
            effort: Reasoning effort other than the model's.
            command_id: See the class.

        Raises:
            UnknownAgent: This engine has agents, and none of this name.
            UnknownModel: The model has not the form ``provider/name``.
            TransitionNotAllowed: A chat of this id exists.
            InvalidValue: A text cannot be stored exactly.
        """
        self._check_agent(agent)
        messages = [message_of(system, role="system")] if system is not None else []
        messages += [message_of(message, author=owner or None)] if message is not None else []
        if chat_id is None:
            chat_id = derived_chat_id(owner, command_id) if command_id is not None else self.runtime.new_id()
        for name, value in (("owner", owner), ("title", title), ("chat_id", chat_id)):
            check_value(value, f"$.{name}")
        if not chat_id:
            raise InvalidValue("$.chat_id", "is empty")
        command = c.CreateChat(
            chat=ChatId(chat_id),
            owner=owner,
            agent=agent,
            release=self.runtime.release,
            messages=tuple(messages),
            title=Content(title) if title is not None else None,
            labels=checked_labels(labels or {}),
            model=checked_model(model),
            effort=checked_effort(effort),
        )
        # The release is not the caller's: one that asks again after an upgrade asks for the same.
        given = fingerprint(command.trigger, replace(command, release=""))
        return await self._commands(chat_id, lambda _: (command,), command_id, given, who=owner or None)

    async def send_message(
        self,
        chat: str,
        message: MessageInput,
        *,
        busy: BusyBehaviour = "queue",
        model: str | None = None,
        effort: str | None = None,
        author: str | None = None,
        command_id: str | None = None,
    ) -> Receipt:
        """Send a user's message; where the chat is busy it is queued, or (``interrupt``) ends the current turn.

        Args:
            chat: The chat.
            message: What the user says.
            busy: What to do where a turn is under way.
            model: A model (``provider/name``) for the turns from this one on.
            effort: Reasoning effort for the turns from this one on.
            author: Who says it, where several people share a chat.
            command_id: See the class.

        Raises:
            QueueFull: The queue holds as many messages as it may.
            UnknownModel: The model has not the form ``provider/name``.
            InvalidValue: The text is blank or cannot be stored exactly; ``busy`` or ``effort`` has no such value.
        """
        if busy not in get_args(BusyBehaviour):
            raise InvalidValue("$.busy", f"must be queue or interrupt, not {busy!r}")
        body = queued(message, checked_model(model), checked_effort(effort), author)

        def commands(run: PlanRun) -> Sequence[c.AnyCommand]:
            if busy == "queue":
                return (c.SendMessage(message=body, queue_limit=self.queue_limit),)
            return (c.SendInterrupting(message=body, queue_limit=self.queue_limit, lease_dead=run.lease_dead),)

        return await self._commands(chat, commands, command_id, fingerprint("send", busy, body), who=author)

    async def edit_message(
        self, chat: str, message_id: str, message: MessageInput, *, command_id: str | None = None
    ) -> Receipt:
        """Replace a user's message; it and all after it leave history, the queue is emptied, the chat answers anew.

        Args:
            chat: The chat.
            message_id: The message, as receipts and the transcript name it.
            message: What the user says instead.
            command_id: See the class.

        Raises:
            MessageNotFound: It is not in history, or not any more.
            NotAUserMessage: It is not a user's.
        """
        command = c.EditMessage(target=MessageId(message_id), message=message_of(message))
        return await self._command(chat, command, command_id, transcript=True)

    async def interrupt(self, chat: str, *, command_id: str | None = None) -> Receipt:
        """End the current turn now; what was produced is kept. The head of the queue, if there is one, is taken up.

        Raises:
            TransitionNotAllowed: No turn is under way, or it is being interrupted already.
        """
        given = fingerprint("interrupt")
        return await self._commands(chat, lambda run: (c.Interrupt(lease_dead=run.lease_dead),), command_id, given)

    async def resume(self, chat: str, *, command_id: str | None = None) -> Receipt:
        """Run the turn that history owes: after an error, an interrupt or a fork.

        Raises:
            NothingOwed: The newest turn was answered.
            TransitionNotAllowed: A turn is under way.
        """
        return await self._command(chat, c.Resume(), command_id)

    async def submit_tool_results(
        self,
        chat: str,
        action: int,
        results: Mapping[str, Json] | Sequence[c.SubmittedResult] = (),
        *,
        approvals: Sequence[ApprovalAnswer] = (),
        budget: BudgetAnswer | None = None,
        command_id: str | None = None,
    ) -> Receipt:
        """Answer what the chat asks of its client.

        Args:
            chat: The chat.
            action: The id of the open action.
            results: Output by call, or results that say whether they are errors.
            approvals: Answers to calls that need approval.
            budget: The answer to a budget question.
            command_id: See the class.

        Raises:
            ActionStale: Another action is open, or none.
            ToolResultsInvalid: The answers do not match what is open.
        """
        command = c.SubmitResults(action=action, results=submitted(results), approvals=tuple(approvals), budget=budget)
        return await self._command(chat, command, command_id)

    async def edit_queued(
        self,
        chat: str,
        message_id: str,
        message: MessageInput,
        *,
        model: str | None = None,
        effort: str | None = None,
        command_id: str | None = None,
    ) -> Receipt:
        """Rewrite a queued message in its place.

        Raises:
            QueuedNotFound: It is not in the queue any more.
        """
        body = queued(message, checked_model(model), checked_effort(effort), None)
        command = c.EditQueued(target=MessageId(message_id), message=body)
        return await self._command(chat, command, command_id)

    async def reorder_queue(self, chat: str, order: Sequence[str], *, command_id: str | None = None) -> Receipt:
        """Put the whole queue in this order of message ids.

        Raises:
            QueuedNotFound: These are not the ids in the queue, each once.
        """
        return await self._command(chat, c.ReorderQueue(order=tuple(map(MessageId, order))), command_id)

    async def delete_queued(self, chat: str, message_id: str, *, command_id: str | None = None) -> Receipt:
        """Delete a queued message.

        Raises:
            QueuedNotFound: It is not in the queue any more.
        """
        return await self._command(chat, c.DeleteQueued(target=MessageId(message_id)), command_id)

    async def promote_queued(self, chat: str, message_id: str, *, command_id: str | None = None) -> Receipt:
        """Move a queued message to the head and end the current turn.

        Raises:
            QueuedNotFound: It is not in the queue any more.
        """
        target = MessageId(message_id)
        return await self._commands(
            chat,
            lambda run: (c.PromoteQueued(target=target, lease_dead=run.lease_dead),),
            command_id,
            fingerprint("promote", target),
        )

    async def compact(self, chat: str, *, hint: str | None = None, command_id: str | None = None) -> Receipt:
        """Have the conversation so far summarised: from then on the model reads the summary, the user sees all.

        Args:
            chat: The chat.
            hint: What matters, for whoever writes the summary.
            command_id: See the class.

        Raises:
            NothingToCompact: No answer follows the newest boundary.
        """
        check_value(hint, "$.hint")
        command = c.Compact(hint=Content(hint) if hint is not None else None)
        return await self._command(chat, command, command_id)

    async def uncompact(self, chat: str, *, command_id: str | None = None) -> Receipt:
        """Take the newest compaction back."""
        return await self._command(chat, c.Uncompact(), command_id, transcript=True)

    async def clear(self, chat: str, *, command_id: str | None = None) -> Receipt:
        """Let the model start over, without a summary; the user still sees all.

        Raises:
            NothingToClear: Nothing that the model reads follows the newest boundary.
        """
        return await self._command(chat, c.Clear(), command_id)

    async def archive(self, chat: str, *, command_id: str | None = None) -> Receipt:
        """Put the chat away: it is read, forked and exported, and changes no more until it is taken out again."""
        return await self._command(chat, c.Archive(), command_id)

    async def unarchive(self, chat: str, *, command_id: str | None = None) -> Receipt:
        """Take the chat out again."""
        return await self._command(chat, c.Unarchive(), command_id)

    async def set_title(self, chat: str, title: str | None, *, command_id: str | None = None) -> Receipt:
        """Change the title."""
        check_value(title, "$.title")
        command = c.SetTitle(title=Content(title) if title is not None else None)
        return await self._command(chat, command, command_id)

    async def set_labels(self, chat: str, labels: Mapping[str, str], *, command_id: str | None = None) -> Receipt:
        """Replace the labels, all of them.

        Raises:
            InvalidValue: A name or value is not a text, or cannot be stored exactly.
        """
        return await self._command(chat, c.SetLabels(labels=checked_labels(labels)), command_id)

    async def set_model(
        self, chat: str, model: str | None, *, effort: str | None = None, command_id: str | None = None
    ) -> Receipt:
        """Choose model and effort for turns from now on; None means the agent's own."""
        return await self._command(
            chat, c.SetModel(model=checked_model(model), effort=checked_effort(effort)), command_id
        )

    async def set_agent(self, chat: str, agent: str, *, command_id: str | None = None) -> Receipt:
        """Hand the chat to another agent.

        Raises:
            UnknownAgent: This engine has agents, and none of this name.
        """
        self._check_agent(agent)
        return await self._command(chat, c.SetAgent(agent=agent), command_id)

    async def set_pinned(self, chat: str, pinned: bool, *, command_id: str | None = None) -> Receipt:  # noqa: FBT001
        """Pin or unpin the chat."""
        return await self._command(chat, c.SetPinned(pinned=pinned), command_id)

    async def set_retention(self, chat: str, seconds: float | None, *, command_id: str | None = None) -> Receipt:
        """Record how long the chat is to be kept after its last change; None: without limit.

        Raises:
            InvalidValue: The time is negative or not a number.
        """
        command = c.SetRetention(retention_us=checked_retention(seconds))
        return await self._command(chat, command, command_id)

    async def erase(self, chat: str, message_ids: Sequence[str], *, command_id: str | None = None) -> Receipt:
        """Erase the content of messages for good; facts and digests stay.

        Raises:
            MessageNotFound: One of them is not in this chat.
        """
        command = c.Erase(targets=tuple(map(MessageId, message_ids)))
        return await self._command(chat, command, command_id, transcript=True)

    async def adopt(self, chat: str, *, command_id: str | None = None) -> Receipt:
        """Take over an imported chat: from now on it runs here."""
        return await self._command(chat, c.Adopt(), command_id)

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
            NothingOwed: ``resume`` was asked and nothing is owed.
        """
        store = self.runtime.journal.store
        log = await read_recorded(store, ChatId(chat), upto=at)
        if not log or (at is not None and not 1 <= at <= log[-1].version):
            raise ChatNotFound("fork", "N", f"there is no chat {chat}" + (f" with version {at}" if log else ""))
        origin = state_at(log, log[-1].version)
        control = origin.control
        stored = await store.read_events(ChatId(chat), after=control.version - 1, upto=control.version, content=False)
        if chat_id is None:
            chat_id = derived_chat_id(owner or control.owner, command_id) if command_id else self.runtime.new_id()
        fork = c.ForkChat(
            chat=ChatId(chat_id),
            owner=control.owner if owner is None else owner,
            agent=control.agent,
            release=self.runtime.release,
            origin=Origin(chat=chat, version=control.version, digest=stored[0].digest.hex()),
            owed=control.owed,
            title=Content(title) if title is not None else origin.need_transcript("fork").title,
            labels=control.labels,
            model=control.model,
            effort=control.effort,
        )
        imports = plan_imports(origin)
        tail: tuple[c.AnyCommand, ...] = (c.Resume(),) if resume else ()
        given = fingerprint("fork", chat, at, chat_id, owner, resume, title)
        return await self._commands(chat_id, lambda _: (fork, *imports, *tail), command_id, given)

    def _check_agent(self, agent: str) -> None:
        # An engine without agents serves those of other processes: it cannot know them.
        if self.runtime.agents and agent not in self.runtime.agents:
            raise UnknownAgent(agent, tuple(self.runtime.agents))

    async def _command(
        self,
        chat: str,
        command: c.AnyCommand,
        command_id: str | None,
        *,
        transcript: bool = False,
        who: str | None = None,
    ) -> Receipt:
        given = fingerprint(command.trigger, command)
        return await self._commands(chat, lambda _: (command,), command_id, given, transcript=transcript, who=who)

    async def _commands(
        self,
        chat: str,
        commands: Commands,
        command_id: str | None,
        given: bytes,
        *,
        transcript: bool = False,
        who: str | None = None,
    ) -> Receipt:
        identity = CommandIdentity(
            command=CommandId(command_id or self.runtime.new_id()),
            actor=Actor(kind="user", id=who),
            fingerprint=given if command_id is not None else None,
        )
        worker = self.worker
        with worker.taking(ChatId(chat)) if worker is not None else nullcontext():
            outcome = await self._execute(chat, commands, identity, transcript=transcript)
            if worker is not None and not outcome.repeated:
                worker.adopt(outcome.chat)
        if worker is not None:
            worker.notice(outcome.chat)
            if outcome.repeated:
                # The first try may have taken the chat without its caller's or this worker's knowing.
                worker.suspect(ChatId(chat))
        return receipt(outcome)

    async def _execute(self, chat: str, commands: Commands, identity: CommandIdentity, *, transcript: bool) -> Outcome:
        worker = self.worker

        def plan(run: PlanRun) -> None:
            before = run.state.control.status if run.state.control.exists else "waiting"
            for command in commands(run):
                run.do(command)
            control = run.state.control
            owed_here = control.status == "pending" and before != "pending" and control.not_before is None
            if worker is None or not owed_here or self.runtime.policy_for(control) is None:
                return
            if worker.may_take(ChatId(chat)):
                worker.take(ChatId(chat), run)

        return await self.runtime.journal.execute(ChatId(chat), plan, identity, transcript=transcript)
