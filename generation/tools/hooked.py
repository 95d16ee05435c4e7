"""What hooks say of a call of a tool: before it runs, and after it ran."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from events.content import Json, same_json
from events.ids import ChatId
from generation.budget import MIN_BUDGET
from generation.errors import ClassifiedError, HookFailed
from generation.hooks.dispatch import Hooks
from generation.tools.arguments import read_arguments
from generation.tools.output import CallResult, error_answer
from generation.tools.policy import ToolCall
from generation.tools.registry import CallRefused

_NOT_ASKED = "Not run: it could not be asked whether it may."
_NOT_APPROVED = (
    "Not run: it was approved, but it may run with other arguments only, and a call runs with those that were approved "
    "or not at all. To have these approved, call it again with them: "
)


class CallHooks:
    """Asks hooks about the calls of one chat.

    Args:
        hooks: The hooks.
        chat: The chat.
    """

    def __init__(self, hooks: Hooks, chat: ChatId) -> None:
        self._hooks = hooks
        self._chat = chat

    async def before(self, call: ToolCall) -> tuple[ToolCall, str | None, CallResult | None]:
        """Ask whether a call may run.

        Returns:
            The call as it shall run, what the model is to be told beside its result, and the result where it shall not
            run. Of one whose arguments are gone there is nothing to ask: it is refused when it comes to run.
        """
        if call.in_force is None:
            return call, None, None
        given = _told(call)
        facts: dict[str, Json] = {"tool": call.name, "call": call.key, "input": given, "approved": call.approved}
        try:
            verdict = await self._hooks.ask("pre_tool_use", self._chat, call.key, facts, input_as="input")
        except HookFailed as failure:
            return call, None, _refused(call, _NOT_ASKED, failure.classified())
        if verdict.deny is not None:
            return call, None, _refused(call, f"Not run: {verdict.deny}")
        if verdict.input is not None and not same_json(verdict.input, given):
            changed = msgspec.json.encode(verdict.input).decode()
            if call.approved:
                return call, None, _refused(call, _NOT_APPROVED + changed)
            call = replace(call, rewritten=changed)
        return call, verdict.context, None

    async def after(self, result: CallResult) -> CallResult:
        """Tell of a result; a hook that cannot be told ends the turn, and the result is recorded all the same."""
        output = result.answer.output
        facts: dict[str, Json] = {"tool": result.name, "call": result.key, "is_error": result.answer.is_error}
        try:
            verdict = await self._hooks.ask("post_tool_use", self._chat, result.key, {**facts, "output": output})
        except HookFailed as failure:
            return replace(result, fault=failure.classified())
        contexts = [text for text in (result.context, verdict.context) if text is not None]
        return replace(result, context="\n\n".join(contexts) or None)


def _told(call: ToolCall) -> Json:
    """Return the arguments that a call would run with; None where they are none that anything could run with."""
    try:
        return read_arguments(call.in_force)
    except CallRefused:
        return None


def _refused(call: ToolCall, text: str, fault: ClassifiedError | None = None) -> CallResult:
    """Return the result of a call that does not run."""
    answer = error_answer(text, MIN_BUDGET)
    return CallResult(key=call.key, name=call.name, answer=answer, rewritten=call.rewritten, fault=fault)
