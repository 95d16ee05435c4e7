"""The rules that the items of a Responses request must keep among each other.

Owns references to what the server keeps, ids, calls and their outputs, and reasoning with the item that it belongs to.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from chatfold.testing.servers.openai_common import check_schema, invalid
from chatfold.testing.servers.recording import Json
from chatfold.testing.servers.responses_shape import (
    FunctionCallItem,
    FunctionOutputItem,
    FunctionTool,
    InputText,
    Item,
    MessageItem,
    OutputText,
    ReasoningItem,
    ReferenceItem,
    RefusalPart,
    ResponsesRequest,
    WebSearchItem,
    WebSearchTool,
)

__all__ = ["IssuedItems", "check_items", "check_options", "resolve_input", "searched"]

_PREFIXES = {
    "message": "msg",
    "function_call": "fc",
    "function_call_output": "fc",
    "reasoning": "rs",
    "web_search_call": "ws",
}
_INCLUDABLE = {
    "code_interpreter_call.outputs",
    "computer_call_output.output.image_url",
    "file_search_call.results",
    "message.input_image.image_url",
    "message.output_text.logprobs",
    "reasoning.encrypted_content",
    "web_search_call.action.sources",
    "web_search_call.results",
}


@dataclass(slots=True)
class IssuedItems:
    """What a server has given out, and what it keeps because `store` was not false."""

    encrypted: dict[str, str] = field(default_factory=dict)
    """The id of a reasoning item by its encrypted content."""
    reasoning_before: dict[str, str] = field(default_factory=dict)
    """The id of a reasoning item by the id of the item that directly followed it."""
    items: dict[str, Item] = field(default_factory=dict)
    """Kept items by id."""
    responses: dict[str, list[Item]] = field(default_factory=dict)
    """Input and output of kept responses, by the response's id."""
    searches: dict[str, Json] = field(default_factory=dict)
    """What a search that the service ran looked for, without its sources, by the item's id."""

    def forget(self, response: str | None = None) -> None:
        """Keep a response no more, as the service does after a while, nor what no other one has; None: none of all.

        Raises:
            KeyError: There is no such response.
        """
        for each in [response] if response is not None else list(self.responses):
            gone = self.responses.pop(each)
            kept = {item.id for items in self.responses.values() for item in items}
            for item in gone:
                if item.id not in kept:
                    self.items.pop(item.id or "", None)


def searched(action: Json) -> Json:
    """What a search looked for: its action without the sources, which only who asks for them gets."""
    return {name: value for name, value in action.items() if name != "sources"}


def resolve_input(body: ResponsesRequest, issued: IssuedItems) -> list[Item]:
    """The whole conversation: that of the previous response, then the input, references resolved.

    Raises:
        RequestRefused: The previous response or an item is not kept.
    """
    before: Sequence[Item] = ()
    if body.previous_response_id is not None:
        if body.previous_response_id not in issued.responses:
            text = f"Previous response with id '{body.previous_response_id}' not found."
            raise invalid(text, "previous_response_id", "previous_response_not_found")
        before = issued.responses[body.previous_response_id]
    elif body.input is None:
        text = "One of 'input' or 'previous_response_id' or 'prompt' or 'conversation_id' must be provided."
        raise invalid(text, None, "missing_required_parameter")
    given = [MessageItem(role="user", content=body.input)] if isinstance(body.input, str) else body.input or []
    return [*before, *(_kept(item, issued) for item in given)]


def _kept(item: Item, issued: IssuedItems) -> Item:
    by_id = isinstance(item, ReferenceItem) or (isinstance(item, ReasoningItem) and item.encrypted_content is None)
    if not by_id or item.id is None:
        return item
    if item.id not in issued.items:
        text = (
            f"Item with id '{item.id}' not found. Items are not persisted when `store` is set to false. Try again with "
            "`store` set to true, or remove this item from your input."
        )
        raise invalid(text, "input", status=404)
    return issued.items[item.id]


def check_items(items: list[Item], issued: IssuedItems) -> None:
    """Check a conversation.

    Raises:
        RequestRefused: A rule is broken.
    """
    seen: set[str] = set()
    for index, item in enumerate(items):
        if item.id is not None:
            _check_id(item, index, seen)
            seen.add(item.id)
        if isinstance(item, MessageItem):
            _check_parts(item, index)
        if isinstance(item, ReasoningItem):
            _check_reasoning(item, items[index + 1 :], issued)
        if isinstance(item, WebSearchItem):
            _check_search(item, index, issued)
        needed = issued.reasoning_before.get(item.id or "")
        if needed is not None and (index == 0 or items[index - 1].id != needed):
            text = (
                f"Item '{item.id}' of type '{item.type}' was provided without its required 'reasoning' item: "
                f"'{needed}'."
            )
            raise invalid(text, "input")
    _check_calls(items)


def _check_id(item: Item, index: int, seen: set[str]) -> None:
    if item.id in seen:
        text = f"Duplicate item found with id {item.id}. Remove duplicate items from your input and try again."
        raise invalid(text, "input")
    prefix = _PREFIXES.get(item.type or "", "")
    if item.id is not None and not item.id.startswith(prefix):
        text = f"Invalid 'input[{index}].id': '{item.id}'. Expected an ID that begins with '{prefix}'."
        raise invalid(text, f"input[{index}].id", "invalid_value")


def _check_parts(item: MessageItem, index: int) -> None:
    output = item.role == "assistant"
    for at, part in enumerate(item.content if not isinstance(item.content, str) else ()):
        if isinstance(part, OutputText | RefusalPart) != output:
            supported = "'output_text' and 'refusal'" if output else "'input_text', 'input_image', and 'input_file'"
            text = f"Invalid value: '{part.type}'. Supported values are: {supported}."
            raise invalid(text, f"input[{index}].content[{at}].type", "invalid_value")
        if item.role in {"system", "developer"} and not isinstance(part, InputText):
            text = f"Invalid value: '{part.type}'. Supported values are: 'input_text'."
            raise invalid(text, f"input[{index}].content[{at}].type", "invalid_value")


def _check_reasoning(item: ReasoningItem, rest: list[Item], issued: IssuedItems) -> None:
    content = item.encrypted_content
    if content is not None and content not in issued.encrypted:
        text = (
            f"The encrypted content {content[:4]}...{content[-4:]} could not be verified. Reason: Encrypted content "
            "could not be decrypted or parsed."
        )
        raise invalid(text, None, "invalid_encrypted_content")
    if content is not None and issued.encrypted[content] != item.id:
        text = (
            f"The encrypted content for item {item.id} could not be verified. Reason: Encrypted content item_id did "
            "not match the target item id."
        )
        raise invalid(text, None, "invalid_encrypted_content")
    follower = rest[0] if rest else None
    expected = [after for after, before in issued.reasoning_before.items() if before == item.id]
    own = isinstance(follower, ReasoningItem | FunctionCallItem | WebSearchItem) or (
        isinstance(follower, MessageItem) and follower.role == "assistant"
    )
    if follower is None or not own or (follower.id is not None and follower.id not in expected):
        text = f"Item '{item.id}' of type 'reasoning' was provided without its required following item."
        raise invalid(text, "input")


def _check_search(item: WebSearchItem, index: int, issued: IssuedItems) -> None:
    """A search comes back as it was given out; that is stricter than the service, which does not look."""
    if item.id not in issued.searches:
        text = f"Item with id '{item.id}' not found."
        raise invalid(text, "input", status=404)
    if searched(item.action or {}) != issued.searches[item.id]:
        text = f"Invalid value for 'input[{index}].action': it is not what the search '{item.id}' did."
        raise invalid(text, f"input[{index}].action", "invalid_value")


def _check_calls(items: list[Item]) -> None:
    """Each call has exactly one output, and each output comes after its call."""
    calls: list[str] = []
    answered: set[str] = set()
    for item in items:
        if isinstance(item, FunctionCallItem):
            if item.call_id in calls:
                text = f"Duplicate function call found with call_id {item.call_id}."
                raise invalid(text, "input")
            calls.append(item.call_id)
        elif isinstance(item, FunctionOutputItem):
            if item.call_id not in calls:
                text = f"No tool call found for function call output with call_id {item.call_id}."
                raise invalid(text, "input")
            if item.call_id in answered:
                text = f"Duplicate function call output found with call_id {item.call_id}."
                raise invalid(text, "input")
            answered.add(item.call_id)
    missing = [call for call in calls if call not in answered]
    if missing:
        text = f"No tool output found for function call {missing[0]}."
        raise invalid(text, "input")


def check_options(body: ResponsesRequest) -> None:
    """Check includes, tools and the choice of tools.

    Raises:
        RequestRefused: A rule is broken.
    """
    for index, name in enumerate(body.include or []):
        if name not in _INCLUDABLE:
            supported = ", ".join(f"'{known}'" for known in sorted(_INCLUDABLE))
            text = f"Invalid value: '{name}'. Supported values are: {supported}."
            raise invalid(text, f"include[{index}]", "invalid_value")
    names = [tool.name if isinstance(tool, FunctionTool) else tool.type for tool in body.tools or []]
    for index, tool in enumerate(body.tools or []):
        if isinstance(tool, WebSearchTool):
            _check_domains(tool, index)
            continue
        if tool.name in names[:index]:
            text = f"Duplicate tool name '{tool.name}'."
            raise invalid(text, f"tools[{index}].name", "invalid_value")
        check_schema(tool.name, tool.parameters, f"tools[{index}].parameters", strict=bool(tool.strict))
    choice = body.tool_choice
    if (choice == "required" or isinstance(choice, dict)) and not names:
        text = "Tool choice 'required' must be specified with 'tools' parameter."
        raise invalid(text, "tool_choice")
    if isinstance(choice, dict) and choice.get("type") == "function" and choice.get("name") not in names:
        text = f"Tool choice '{choice.get('name')}' not found in 'tools' parameter."
        raise invalid(text, "tool_choice")


def _check_domains(tool: WebSearchTool, index: int) -> None:
    filters = tool.filters
    if filters is not None and filters.allowed_domains and filters.blocked_domains:
        text = "Only one of 'allowed_domains' and 'blocked_domains' can be set."
        raise invalid(text, f"tools[{index}].filters", "invalid_value")
