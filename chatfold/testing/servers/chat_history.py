"""The rules of Chat Completions across messages and options.

Owns the pairing of calls and results, null content, and options that need each other.
"""

from chatfold.testing.servers.chat_shape import AssistantMessage, ChatRequest, Message, ToolMessage
from chatfold.testing.servers.openai_common import check_schema, invalid

__all__ = ["check_history", "check_options"]


def check_history(messages: list[Message]) -> None:
    """Check a conversation.

    Raises:
        RequestRefused: A rule is broken.
    """
    open_calls: list[str] = []
    expecting = False
    for index, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            _check_result(message, index, open_calls, expecting=expecting)
            open_calls.remove(message.tool_call_id)
            continue
        _check_answered(open_calls, index)
        expecting = False
        if isinstance(message, AssistantMessage):
            _check_assistant(message, index)
            open_calls = [call.id for call in message.tool_calls or []]
            expecting = bool(open_calls)
    _check_answered(open_calls, len(messages))


def _check_result(message: ToolMessage, index: int, open_calls: list[str], *, expecting: bool) -> None:
    param = f"messages.[{index}].role"
    if not expecting:
        text = (
            "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
        )
        raise invalid(text, param)
    if message.tool_call_id not in open_calls:
        text = (
            f"Invalid parameter: 'tool_call_id' of '{message.tool_call_id}' not found in 'tool_calls' of previous "
            "message."
        )
        raise invalid(text, f"messages.[{index}].tool_call_id")


def _check_answered(open_calls: list[str], index: int) -> None:
    if open_calls:
        text = (
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(open_calls)}"
        )
        raise invalid(text, f"messages.[{index}].role")


def _check_assistant(message: AssistantMessage, index: int) -> None:
    ids = [call.id for call in message.tool_calls or []]
    if len(ids) != len(set(ids)):
        text = f"Duplicate value for 'tool_call_id' in message with index {index}."
        raise invalid(text, f"messages.[{index}].tool_calls")
    if message.content is None and not ids and message.refusal is None:
        text = "Invalid value for 'content': expected a string, got null."
        raise invalid(text, f"messages.[{index}].content")
    if message.content == "" and not ids and message.refusal is None:
        text = f"Invalid 'messages[{index}].content': empty string."
        raise invalid(text, f"messages[{index}].content", "empty_string")


def check_options(body: ChatRequest) -> None:
    """Check options against each other, and the tools.

    Raises:
        RequestRefused: A rule is broken.
    """
    if body.stream_options is not None and not body.stream:
        text = "The 'stream_options' parameter is only allowed when 'stream' is enabled."
        raise invalid(text, "stream_options")
    if body.max_tokens is not None and body.max_completion_tokens is not None:
        text = "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported."
        raise invalid(text, "max_tokens")
    for name in ("tool_choice", "parallel_tool_calls"):
        if getattr(body, name) not in {None, "none"} and not body.tools:
            text = f"Invalid value for '{name}': '{name}' is only allowed when 'tools' are specified."
            raise invalid(text, name)
    for index, tool in enumerate(body.tools or []):
        function = tool.function
        param = f"tools[{index}].function.parameters"
        check_schema(function.name, function.parameters, param, strict=bool(function.strict))
