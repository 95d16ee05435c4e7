"""The rules that an Anthropic conversation must keep across its messages.

Owns roles, empty content, calls and their results, thinking blocks and cache breakpoints; searches are
`anthropic_search`'s. Messages of one role that follow each other are one turn, as the service has them, so their order
is judged by turns.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn

from chatfold.testing.servers.anthropic_prefix import Coverage, Prefix
from chatfold.testing.servers.anthropic_search import IssuedSearches, check_searches
from chatfold.testing.servers.anthropic_shape import (
    CacheControl,
    MessagesRequest,
    RedactedThinking,
    ServerToolUse,
    TextBlock,
    Thinking,
    ToolResult,
    ToolUse,
    TurnMessage,
    WebSearchToolResult,
)
from chatfold.testing.servers.checks import RequestRefused
from chatfold.testing.servers.fields import checked

__all__ = ["IssuedThinking", "breakpoints", "check_history"]

_CACHE_LIMIT = 4
_WHOLE = "request"
_OF_ASSISTANTS = (ToolUse, Thinking, RedactedThinking, ServerToolUse, WebSearchToolResult)


@dataclass(slots=True)
class IssuedThinking:
    """The thinking, and what goes with it, that a server has given out; only this may come back."""

    signatures: dict[str, str] = field(default_factory=dict)
    """Thinking text by signature."""
    redacted: set[str] = field(default_factory=set)
    """The data of redacted thinking."""
    covers: Coverage = "text"
    """What a signature covers: a block comes back only with it."""
    prefixes: dict[str, str] = field(default_factory=dict)
    """The digest of what stood before a block, by its signature or data."""
    broken: set[str] = field(default_factory=set)
    """The ids of calls whose arguments were no JSON object."""
    searches: IssuedSearches = field(default_factory=IssuedSearches)
    """What searches have given out."""
    paused: set[str] = field(default_factory=set)
    """The last blocks of answers that paused: a conversation may end with one."""

    def __post_init__(self) -> None:
        """Check what signatures cover.

        Raises:
            TypeError: There is nothing of that name.
        """
        checked(self.covers, Coverage, "IssuedThinking.covers")


@dataclass(slots=True)
class _Turn:
    """Messages of one role in a row."""

    index: int
    """Index of its first message."""
    role: str
    blocks: list[tuple[str, Any]]
    """Each block with its place."""


def check_history(request: MessagesRequest, prefix: Prefix, issued: IssuedThinking, *, allow_prefill: bool) -> None:
    """Check a conversation.

    Args:
        request: The request, whose shape is right.
        prefix: What stands before each of its thinking blocks.
        issued: The thinking that may come back.
        allow_prefill: Whether the last message may be the assistant's, as older models allow.

    Raises:
        RequestRefused: A rule is broken.
    """
    turns = list(_turns(request))
    if not turns:
        _refuse("messages: at least one message is required")
    if turns[0].role != "user":
        _refuse('messages: first message must use the "user" role')
    goes_on = turns[-1].role == "assistant" and prefix.last in issued.paused
    if turns[-1].role == "assistant" and not allow_prefill and not goes_on:
        _refuse("This model does not support assistant message prefill. The conversation must end with a user message.")
    if not isinstance(request.system, str):
        _check_texts("system", [("system", block) for block in request.system or []])
    _check_ids(turns)
    for position, turn in enumerate(turns):
        _check_turn(turn, issued)
        check_searches(turn.blocks, issued.searches, goes_on=goes_on and turn is turns[-1])
        if turn.role == "system":
            _check_system(turn, turns[position - 1 : position], turns[position + 1 :])
        before = turns[position - 1] if position else None
        after = turns[position + 1] if position + 1 < len(turns) else None
        _check_results(turn, before)
        _check_calls(turn, after)
    if request.thinking is not None and request.thinking.type == "enabled":
        _check_starts_with_thinking([turn for turn in turns if turn.role == "assistant"])
    _check_prefixes(prefix, issued)
    _check_cache(request)


def _turns(request: MessagesRequest) -> Iterator[_Turn]:
    current: _Turn | None = None
    for index, message in enumerate(request.messages):
        if not message.blocks:
            _refuse(
                f"messages.{index}: all messages must have non-empty content except for the optional final "
                "assistant message"
            )
        blocks = _placed(index, message)
        if current is not None and current.role == message.role:
            current.blocks += blocks
            continue
        if current is not None:
            yield current
        current = _Turn(index, message.role, blocks)
    if current is not None:
        yield current


def _check_turn(turn: _Turn, issued: IssuedThinking) -> None:
    _check_texts("messages", turn.blocks)
    for place, block in turn.blocks:
        if isinstance(block, _OF_ASSISTANTS) and turn.role != "assistant":
            _refuse(f"{place}: `{block.type}` blocks can only be in `assistant` messages")
        if not isinstance(block, (TextBlock, *_OF_ASSISTANTS)) and turn.role != "user":
            _refuse(f"{place}: `{block.type}` blocks can only be in `user` messages")
        if isinstance(block, ToolResult) and block.is_error and not _is_text(block):
            _refuse(f"{place}: all content must be type `text` if `is_error` is true")
        if isinstance(block, TextBlock) and block.citations and turn.role == "user":
            _refuse(f"{place}: `citations` are not permitted on `text` blocks in `user` messages")
        if isinstance(block, Thinking) and issued.signatures.get(block.signature) is None:
            _refuse(f"{place}: Invalid `signature` in `thinking` block")
        if isinstance(block, Thinking) and issued.signatures[block.signature] != block.thinking:
            _refuse(
                f"{place}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be "
                "modified. These blocks must remain as they were in the original response."
            )
        if isinstance(block, RedactedThinking) and block.data not in issued.redacted:
            _refuse(f"{place}: Invalid `data` in `redacted_thinking` block")
    last = turn.blocks[-1][1]
    if turn.role == "assistant" and isinstance(last, Thinking | RedactedThinking):
        _refuse(f"messages.{turn.index}: The final block in an assistant message cannot be `thinking`.")


def _is_text(result: ToolResult) -> bool:
    return not isinstance(result.content, list) or all(isinstance(block, TextBlock) for block in result.content)


def _check_texts(where: str, blocks: list[tuple[str, Any]]) -> None:
    for _, block in blocks:
        inner = block.content if isinstance(block, ToolResult) and isinstance(block.content, list) else []
        for candidate in [block, *inner]:
            if not isinstance(candidate, TextBlock):
                continue
            if candidate.text == "":
                _refuse(f"{where}: text content blocks must be non-empty")
            if candidate.text.isspace():
                _refuse(f"{where}: text content blocks must contain non-whitespace text")


def _check_system(turn: _Turn, before: list[_Turn], after: list[_Turn]) -> None:
    """A system message stands behind a user turn, and only an assistant turn may follow it."""
    if not before or before[0].role != "user":
        _refuse(f"messages.{turn.index}: a `system` message must immediately follow a `user` message")
    if after and after[0].role != "assistant":
        _refuse(f"messages.{turn.index}: a `system` message must be last or be followed by an `assistant` message")


def _check_ids(turns: list[_Turn]) -> None:
    ids = [block.id for turn in turns for _, block in turn.blocks if isinstance(block, ToolUse)]
    if len(ids) != len(set(ids)):
        _refuse("messages: `tool_use` ids must be unique")


def _check_starts_with_thinking(answers: list[_Turn]) -> None:
    """With a budget for thinking, a turn that goes on after calls must have begun with thinking."""
    blocks = answers[-1].blocks if answers else []
    if not any(isinstance(block, ToolUse) for _, block in blocks):
        return
    place, first = blocks[0]
    if not isinstance(first, Thinking | RedactedThinking):
        _refuse(
            f"{place}.type: Expected `thinking` or `redacted_thinking`, but found `{first.type}`. When `thinking` is "
            "enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of "
            "`tool_use` and `tool_result` blocks). To avoid this requirement, disable `thinking`."
        )


def _check_calls(turn: _Turn, after: _Turn | None) -> None:
    """Each call is answered at the very start of the user turn that follows."""
    calls = [block.id for _, block in turn.blocks if isinstance(block, ToolUse)]
    leading: set[str] = set()
    for _, block in after.blocks if after is not None and after.role == "user" else []:
        if not isinstance(block, ToolResult):
            break
        leading.add(block.tool_use_id)
    missing = [call for call in calls if call not in leading]
    if missing:
        _refuse(
            f"messages.{turn.index}: `tool_use` ids were found without `tool_result` blocks immediately after: "
            f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in the next "
            "message."
        )


def _check_results(turn: _Turn, before: _Turn | None) -> None:
    """Each result answers a call of the turn before, and only once."""
    calls = {block.id for _, block in before.blocks if isinstance(block, ToolUse)} if before is not None else set()
    seen: set[str] = set()
    for place, block in turn.blocks:
        if not isinstance(block, ToolResult):
            continue
        if block.tool_use_id not in calls:
            _refuse(
                f"{place}: unexpected `tool_use_id` found in `tool_result` blocks: {block.tool_use_id}. Each "
                "`tool_result` block must have a corresponding `tool_use` block in the previous message."
            )
        if block.tool_use_id in seen:
            _refuse(
                f"{place}: each tool_use must have a single result. Found multiple `tool_result` blocks with id: "
                f"{block.tool_use_id}"
            )
        seen.add(block.tool_use_id)


def _check_prefixes(prefix: Prefix, issued: IssuedThinking) -> None:
    """Each thinking block stands behind what stood before it when it was given out."""
    for place, seal, before in prefix.before if issued.covers != "text" else ():
        if issued.prefixes.get(seal, before) != before:
            _refuse(f"{place}: Invalid `signature` in `thinking` block")


def breakpoints(request: MessagesRequest) -> Iterator[tuple[str, CacheControl]]:
    """The cache breakpoints with their places: the request's own first, the others in the order of their processing."""
    placed: list[tuple[str, Any]] = [(_WHOLE, request)]
    placed += [(f"tools.{at}", tool) for at, tool in enumerate(request.tools or [])]
    system = request.system if isinstance(request.system, list) else []
    placed += [(f"system.{at}", block) for at, block in enumerate(system)]
    for index, message in enumerate(request.messages):
        placed += _placed(index, message)
    for place, block in placed:
        control = getattr(block, "cache_control", None)
        if control is not None:
            yield place, control


def _placed(index: int, message: TurnMessage) -> list[tuple[str, Any]]:
    return [(f"messages.{index}.content.{at}", block) for at, block in enumerate(message.blocks)]


def _check_cache(request: MessagesRequest) -> None:
    """At most four breakpoints, those of an hour before those of five minutes."""
    marked = list(breakpoints(request))
    if len(marked) > _CACHE_LIMIT:
        _refuse(f"A maximum of {_CACHE_LIMIT} blocks with cache_control may be provided. Found {len(marked)}.")
    short = False
    for place, control in marked:
        if place == _WHOLE:
            continue  # it is on no block
        if control.ttl == "1h" and short:
            _refuse(
                "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks "
                "are processed in the following order: `tools`, `system`, `messages`."
            )
        short = short or control.ttl != "1h"


def _refuse(message: str) -> NoReturn:
    raise RequestRefused(message)
