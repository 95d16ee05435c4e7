"""The engine's commands on turns and the queue: create, send, edit, interrupt, answer, compact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias, get_args

from msgspec.structs import replace

from chatfold.admission import Admission
from chatfold.checks import (
    checked_command_id,
    checked_effort,
    checked_hint,
    checked_id,
    checked_labels,
    checked_message_id,
    checked_message_ids,
    checked_new_chat,
    checked_person,
    checked_title,
)
from chatfold.contexts import ChatContexts
from chatfold.costs import ChatCosts
from chatfold.inputs import (
    MessageInput,
    ResultsInput,
    checked_approvals,
    checked_budget_answer,
    derived_chat_id,
    message_of,
    queued,
    submitted,
    unfit_arguments,
)
from chatfold.naming import ChatNaming
from chatfold.receipts import Receipt
from chatstate import commands as c
from events.errors import InvalidValue
from events.ids import ChatId
from events.records import ApprovalAnswer, BudgetAnswer
from events.values import checked_whole
from generation.estimate import uncompacted_tokens
from generation.older import submission_at
from store.append import PlanRun

BusyBehaviour: TypeAlias = Literal["queue", "interrupt"]
_BUSY: Final = get_args(BusyBehaviour)


class ChatCommands(ChatContexts, ChatCosts, ChatNaming, Admission):
    """Commands on chats. ``Engine`` is one; it is not used by itself.

    Every method takes a ``command_id``: the same id with the same content does its work once and returns the first
    receipt again, with other content it is refused (IdempotencyConflict). Refusals are typed: see ``chatstate.errors``.
    Where the engine has hooks, a message that one of them denies is refused with HookDenied, and with HookFailed where
    one could not be asked.
    """

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
        parent: str | None = None,
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
            parent: The chat that this one is a part of, such as that of an agent which hands work to another: what it
                costs counts among its family's (``Engine.costs``).
            command_id: See the class.

        Raises:
            UnknownAgent: This engine has agents, and none of this name.
            UnknownModel: The model has not the form ``provider/name``, or this engine has no such provider.
            TransitionNotAllowed: A chat of this id exists.
            InvalidValue: A text cannot be stored exactly; an id is not one; there is no such parent; says where.
        """
        owner, named = checked_person(owner, "$.owner"), checked_command_id(command_id)
        messages = [message_of(system, role="system")] if system is not None else []
        messages += [message_of(message, author=owner or None)] if message is not None else []
        if chat_id is None:
            chat_id = derived_chat_id(owner, named) if named is not None else self.runtime.new_id()
        command = c.CreateChat(
            chat=checked_new_chat(chat_id, "$.chat_id"),
            owner=owner,
            agent=self._check_agent(agent),
            release=self.runtime.release,
            messages=tuple(messages),
            title=checked_title(title),
            labels=checked_labels({} if labels is None else labels),
            model=self._check_model(model),
            effort=checked_effort(effort),
            parent=None if parent is None else await self._existing(parent),
        )
        # The release is not the caller's, and what hooks say is not: one that asks again asks for the same.
        given = (command.trigger, replace(command, release=""))
        said = [await self._admitted(chat_id, each, named) for each in messages]
        started = await self._session_started(chat_id, agent, owner, named)
        place = 1 if system is not None else 0
        asked = replace(command, messages=(*said[:place], *started, *said[place:]))
        return await self._commands(chat_id, lambda _: (asked,), command_id, given, who=owner or None)

    async def _existing(self, parent: str) -> ChatId:
        known = ChatId(checked_id(parent, "$.parent"))
        if await self.runtime.journal.store.load_header(known) is None:
            raise InvalidValue("$.parent", f"there is no chat {parent}")
        return known

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
            UnknownModel: The model has not the form ``provider/name``, or this engine has no such provider.
            InvalidValue: The text is blank or cannot be stored exactly; ``busy`` or ``effort`` has no such value.
        """
        if busy not in _BUSY:
            raise InvalidValue("$.busy", f"must be queue or interrupt, not {busy!r}")
        body = queued(message, self._check_model(model), effort, author)
        said = replace(body, message=await self._admitted(chat, body.message, checked_command_id(command_id)))

        def commands(run: PlanRun) -> Sequence[c.AnyCommand]:
            if busy == "queue":
                return (c.SendMessage(message=said, queue_limit=self.queue_limit),)
            return (c.SendInterrupting(message=said, queue_limit=self.queue_limit, lease_dead=run.lease_dead),)

        return await self._commands(chat, commands, command_id, ("send", busy, body), who=author or None)

    async def edit_message(
        self, chat: str, message_id: str, message: MessageInput, *, command_id: str | None = None
    ) -> Receipt:
        """Replace a user's message; it and all after it leave history, the queue is emptied, the chat answers anew.

        It keeps its author, unless ``message`` is a whole message that names one.

        Args:
            chat: The chat.
            message_id: The message, as receipts and the transcript name it.
            message: What the user says instead.
            command_id: See the class.

        Raises:
            MessageNotFound: It is not in history, or not any more.
            NotAUserMessage: It is not a user's.
        """
        command = c.EditMessage(target=checked_message_id(message_id), message=message_of(message))
        given = (command.trigger, command)
        named = checked_command_id(command_id)
        said = await self._admitted(chat, command.message, named, replaces=command.target)
        asked = replace(command, message=said)
        return await self._commands(chat, lambda _: (asked,), command_id, given, transcript=True)

    async def interrupt(self, chat: str, *, command_id: str | None = None) -> Receipt:
        """End the current turn now; what was produced is kept. The head of the queue, if there is one, is taken up.

        Raises:
            TransitionNotAllowed: No turn is under way, or it is being interrupted already.
        """
        given = ("interrupt",)
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
        results: ResultsInput = (),
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
            ToolResultsInvalid: The answers do not match what is open, or one is no JSON; a call is approved with
                arguments that its tool does not take (known where this engine has the chat's agent, else they are an
                error as the call's result); or a budget question is answered with going on, and would be asked again at
                once.
            InvalidValue: Something given is no answer at all; says where.
        """
        answers, broken = checked_approvals(approvals)
        command = c.SubmitResults(
            action=checked_whole(action, "$.action"),
            results=submitted(results),
            approvals=answers,
            broken=broken,
            budget=checked_budget_answer(budget),
        )
        given = (command.trigger, command)

        def commands(run: PlanRun) -> Sequence[c.AnyCommand]:
            agent = self.runtime.agents.get(run.state.control.agent)
            known = agent.tools if agent is not None and not broken else ()
            unfit = unfit_arguments(answers, run.state.control, known)
            return (submission_at(replace(command, unfit=unfit), run.level),)

        return await self._commands(chat, commands, command_id, given)

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
        """Rewrite a queued message in its place; it keeps its author.

        Args:
            chat: The chat.
            message_id: The queued message.
            message: What the user says instead.
            model: Another model for the turns from this one on; None keeps what the message was sent with.
            effort: Another reasoning effort, likewise.
            command_id: See the class.

        Raises:
            QueuedNotFound: It is not in the queue any more.
        """
        body = queued(message, self._check_model(model), effort)
        command = c.EditQueued(target=checked_message_id(message_id), message=body)
        given = (command.trigger, command)
        said = await self._admitted(chat, body.message, checked_command_id(command_id), replaces=command.target)
        asked = replace(command, message=replace(body, message=said))
        return await self._commands(chat, lambda _: (asked,), command_id, given, transcript=True)

    async def reorder_queue(self, chat: str, order: Sequence[str], *, command_id: str | None = None) -> Receipt:
        """Put the whole queue in this order of message ids.

        Raises:
            QueuedNotFound: These are not the ids in the queue, each once.
        """
        return await self._command(chat, c.ReorderQueue(order=checked_message_ids(order, "$.order")), command_id)

    async def delete_queued(self, chat: str, message_id: str, *, command_id: str | None = None) -> Receipt:
        """Delete a queued message.

        Raises:
            QueuedNotFound: It is not in the queue any more.
        """
        return await self._command(chat, c.DeleteQueued(target=checked_message_id(message_id)), command_id)

    async def promote_queued(self, chat: str, message_id: str, *, command_id: str | None = None) -> Receipt:
        """Move a queued message to the head and end the current turn.

        Raises:
            QueuedNotFound: It is not in the queue any more.
        """
        target = checked_message_id(message_id)
        return await self._commands(
            chat,
            lambda run: (c.PromoteQueued(target=target, lease_dead=run.lease_dead),),
            command_id,
            ("promote", target),
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
        return await self._command(chat, c.Compact(hint=checked_hint(hint)), command_id)

    async def uncompact(self, chat: str, *, command_id: str | None = None) -> Receipt:
        """Take the newest compaction back: the model reads again what the summary stood for.

        Raises:
            TransitionNotAllowed: The newest boundary is no compaction, a turn is under way, or the conversation would
                not fit into the context of the chat's model any more.
        """
        return await self._commands(
            chat, lambda run: (self._uncompact(run),), command_id, ("uncompact",), transcript=True
        )

    def _uncompact(self, run: PlanRun) -> c.Uncompact:
        control = run.state.control
        held = self.runtime.policy_for(control, run.level)
        transcript = run.state.need_transcript("uncompact")
        policy = held.policy if held is not None else transcript.policies.get(control.policy)
        limit = policy.model.context_limit if policy is not None and policy.model is not None else None
        boundary = control.indexes.boundary
        estimated = uncompacted_tokens(transcript.messages, boundary) if boundary is not None else 0
        return c.Uncompact(limit_tokens=limit or None, estimated_tokens=estimated)

    async def clear(self, chat: str, *, command_id: str | None = None) -> Receipt:
        """Let the model start over, without a summary; the user still sees all.

        The summary of a compaction is a part of its boundary, and goes with what follows it. Right after a compaction
        nothing does: send a message first, or take the compaction back (``uncompact``) and clear then.

        Raises:
            NothingToClear: Nothing that the model reads follows the newest boundary.
        """
        return await self._command(chat, c.Clear(), command_id)
