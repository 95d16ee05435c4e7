"""From a model's stream to the parts of an assistant message. Pure: parts in, times given with them.

An :class:`Assembler` can be asked at any moment, so an interrupted answer is kept as far as it came. It joins
surrogate pairs that a stream split, notes what it had to replace, and freezes for each call what its tool declared.
What ends a step badly is judged in ``generation.outcome``; committing is the business of the actions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias, TypeVar

from msgspec.structs import replace

from events.content import Content, Json
from events.ids import MessageId, call_key
from events.messages import Step, Usage
from events.parts import Part, ReasoningPart, SourcePart, TextPart, ToolCallPart, ToolResultPart
from events.records import ToolPolicy
from generation.assemble_blocks import Block, CallBlock, ReasoningBlock, ResultBlock, SourceBlock, TextBlock
from generation.errors import ClassifiedError, ProviderError
from generation.providers.contract import (
    CallDelta,
    CallEnd,
    Finish,
    ProviderResult,
    ReasoningDelta,
    ReasoningEnd,
    SourceFound,
    StreamPart,
    TextDelta,
    TextEnd,
    UsageSoFar,
)
from generation.repair import parse_object, repaired_value, short_text, storable_usage, token_count, whole_text

B = TypeVar("B", bound=Block)

Fits: TypeAlias = Callable[[str, str], bool]
"""Whether a tool, named first, takes the arguments of a JSON text."""

_NO_USAGE: Final = Usage()

_WHOLE: Final = frozenset({"tool_calls", "stop", "unknown"})
"""Reasons that tell of no limit, filter or refusal by which an answer may end within a call."""


class Assembler:
    """Folds one stream into the parts of its message.

    Args:
        tools: Declared tools by name. A call of a name that is not declared is kept as a local call, which its
            executor answers by an error.
        fits: Whether a tool takes arguments, by its name and their JSON text. A call that the client would run or
            approve is kept as a local call where it does not: nobody is asked about what will not run.

    Attributes:
        usage: Usage known so far.
        finish: The stream's last part, once it came.
        first_part_at: Time of the first part of the answer, in microseconds UTC.
    """

    __slots__ = (
        "_accepted",
        "_blocks",
        "_context_tokens",
        "_fits",
        "_response_id",
        "_tools",
        "_whole",
        "finish",
        "first_part_at",
        "usage",
    )

    def __init__(self, tools: Mapping[str, ToolPolicy], fits: Fits | None = None) -> None:
        self._tools: Final = tools
        self._fits: Final = fits
        self._blocks: Final[dict[int, Block]] = {}
        self.usage = _NO_USAGE
        self.finish: Finish | None = None
        self.first_part_at: int | None = None
        self._response_id: str | None = None
        self._context_tokens: int | None = None
        self._whole: tuple[Part, ...] | None = None
        self._accepted = False

    def add(self, part: StreamPart | UsageSoFar, at: int | None = None) -> tuple[StreamPart, ...]:
        """Take the next part.

        Args:
            part: The part as the provider gave it.
            at: When it came, in microseconds UTC; None where times are not wanted.

        Returns:
            What may be shown of it: text without surrogates, nothing for half a pair that still waits for its other
            half.

        Raises:
            ProviderError: The stream breaks the contract: a block changed its kind.
        """
        match part:
            case UsageSoFar():
                self._accepted = True
                self.usage = storable_usage(part.usage)
                self._context_tokens = _tokens(part.context_tokens, self._context_tokens)
                self._response_id = short_text(part.response_id or "")[0] or self._response_id
                return ()
            case Finish():
                self.finish = part = _storable(part)
                self.usage = part.usage or self.usage
                self._context_tokens = _tokens(part.context_tokens, self._context_tokens)
                self._response_id = part.response_id or self._response_id
                return (*self._flush_all(), part)
            case _:
                if self.first_part_at is None:
                    self.first_part_at = at
                return self._add(part, at)

    def _add(self, part: StreamPart, at: int | None) -> tuple[StreamPart, ...]:
        match part:
            case TextDelta() | TextEnd():
                return self._block(TextBlock, part.block).take(part)
            case ReasoningDelta() | ReasoningEnd():
                return self._block(ReasoningBlock, part.block).take(part, at)
            case CallDelta() | CallEnd():
                return self._block(CallBlock, part.block).take(part, at)
            case ProviderResult():
                output, repaired = repaired_value(part.output, "$.output")
                part = replace(part, call_id=short_text(part.call_id)[0], name=short_text(part.name)[0], output=output)
                self._blocks[part.block] = ResultBlock(part, repaired, at)
                return (part,)
            case SourceFound():
                url, title = whole_text(part.url)[0], whole_text(part.title or "")[0]
                part = replace(part, source_id=short_text(part.source_id)[0], url=url, title=title or None)
                self._blocks[part.block] = SourceBlock(part.source_id, url, part.title)
                return (part,)
            case Finish():
                return (part,)

    def _block(self, kind: type[B], number: int) -> B:
        block = self._blocks.get(number)
        if block is None:
            block = self._blocks[number] = kind()
        if not isinstance(block, kind):
            detail = f"block {number} was a {type(block).__name__} and became a {kind.__name__}"
            message = "The model's answer arrived in a form that makes no sense."
            raise ProviderError(ClassifiedError(kind="generic", message=message, detail=detail))
        return block

    def _flush_all(self) -> tuple[StreamPart, ...]:
        return tuple(part for number, block in sorted(self._blocks.items()) for part in block.flush(number))

    def parts(self, message: MessageId, *, interrupted: bool = False, ended_at: int | None = None) -> tuple[Part, ...]:
        """Return the parts of the message so far.

        Blank text is left out, and reasoning without text and metadata.

        Args:
            message: The id that the message will have; results of the provider refer to their calls by it.
            interrupted: The stream will not go on: of calls only those are kept whose arguments are a JSON object,
                and of the provider's results only those of calls that are kept.
            ended_at: When it was interrupted, in microseconds UTC: the end of reasoning that was cut.
        """
        if self.finish is None or interrupted or any(type(block) is ResultBlock for block in self._blocks.values()):
            return self._parts(message, interrupted=interrupted, ended_at=ended_at)
        if self._whole is None:
            # Asked for its output first and then, maybe more than once, for its message: all are the same parts.
            self._whole = self._parts(message)
        return self._whole

    def _parts(self, message: MessageId, *, interrupted: bool = False, ended_at: int | None = None) -> tuple[Part, ...]:
        parts: list[Part] = []
        calls: dict[str, int] = {}
        for _, block in sorted(self._blocks.items()):
            match block:
                case TextBlock() if block.text.strip():
                    parts.append(self._text(block))
                case ReasoningBlock() if block.text.strip() or block.metadata is not None:
                    parts.append(self._reasoning(block, ended_at))
                case CallBlock() if self._keeps(block, interrupted=interrupted):
                    calls[block.id] = len(parts)
                    parts.append(self._call(block))
                case ResultBlock() if block.call_id in calls:
                    parts.append(_result(block, message, calls[block.call_id]))
                case SourceBlock():
                    title = Content(block.title) if block.title is not None else None
                    parts.append(SourcePart(source_id=block.source_id, url=Content(block.url), title=title))
                case _:
                    continue
        return tuple(parts)

    def _keeps(self, block: CallBlock, *, interrupted: bool) -> bool:
        if not interrupted:
            return block.whole
        return bool(block.name) and parse_object(block.arguments) is not None

    def _text(self, block: TextBlock) -> TextPart:
        metadata, repaired = _content(block.metadata, "$.metadata")
        return TextPart(
            text=Content(block.text),
            metadata=metadata,
            repaired=(("$.text",) if block.repaired else ()) + repaired,
        )

    def _reasoning(self, block: ReasoningBlock, cut_at: int | None) -> ReasoningPart:
        metadata, repaired = _content(block.metadata, "$.metadata")
        return ReasoningPart(
            text=Content(block.text),
            metadata=metadata,
            redacted=block.redacted,
            started_at=block.started_at,
            ended_at=cut_at if block.ended_at is None and block.started_at is not None else block.ended_at,
            repaired=(("$.text",) if block.repaired else ()) + repaired,
        )

    def _call(self, block: CallBlock) -> ToolCallPart:
        arguments, repaired = block.clean_arguments()
        policy = self._policy(block, arguments)
        metadata, more = _content(block.metadata, "$.metadata")
        return ToolCallPart(
            name=block.name,
            arguments=Content(arguments),
            provider_call_id=block.id,
            runner="provider" if block.provider_executed else policy.runner,
            crash=policy.crash,
            exclusive=policy.exclusive,
            stop_after=policy.stop_after,
            needs_approval=policy.needs_approval and not block.provider_executed,
            reconcile=policy.reconcile and not block.provider_executed,
            action_timeout_us=None if block.provider_executed else policy.action_timeout_us,
            action_on_expiry=None if block.provider_executed else policy.action_on_expiry,
            created_at=block.ended_at,
            metadata=metadata,
            repaired=block.replaced + repaired + more,
        )

    def _policy(self, block: CallBlock, arguments: str) -> ToolPolicy:
        """Return what is frozen of a call."""
        policy = self._tools.get(block.name) or ToolPolicy(name=block.name)
        asks = policy.runner == "client" or policy.needs_approval
        if not asks or block.provider_executed or self._fits is None or self._fits(block.name, arguments):
            return policy
        return ToolPolicy(name=policy.name, crash="rerun", exclusive=policy.exclusive)

    @property
    def awaits_call(self) -> bool:
        """Whether the answer ended as if it were whole, and one of its calls had arrived but half."""
        if self.finish is None or self.finish.reason not in _WHOLE:
            return False
        return any(type(block) is CallBlock and not block.whole for block in self._blocks.values())

    @property
    def _unmetered(self) -> bool:
        """Whether the service accepted the call and did not say, to its end, what it took.

        What is known of an answer that was cut (its input, mostly) is not all of it. What was refused before it was
        accepted took nothing, and has no usage that could be told.
        """
        if self.finish is not None:
            return self.finish.usage is None
        return self._accepted or bool(self._blocks)

    def step(self, provider: str, model: str, *, started_at: int | None = None, ended_at: int | None = None) -> Step:
        """Return what is known of the model call so far; times are microseconds UTC.

        Args:
            provider: The provider's name.
            model: The model that was asked for.
            started_at: When the call started.
            ended_at: When it ended.
        """
        finish = self.finish
        return Step(
            provider=provider,
            model=model,
            finish_reason=finish.reason if finish is not None else "unknown",
            usage=self.usage,
            response_id=self._response_id,
            metadata=Content(finish.metadata) if finish is not None and finish.metadata is not None else None,
            started_at=started_at,
            first_part_at=self.first_part_at,
            ended_at=ended_at,
            unmetered=self._unmetered,
            context_tokens=self._context_tokens,
        )


def _tokens(told: int | None, known: int | None) -> int | None:
    count = token_count(told)
    return known if count is None else count


def _storable(finish: Finish) -> Finish:
    return replace(
        finish,
        usage=None if finish.usage is None else storable_usage(finish.usage),
        response_id=short_text(finish.response_id)[0] or None if finish.response_id else None,
        model=short_text(finish.model)[0] or None if finish.model else None,
        metadata=repaired_value(finish.metadata, "$.metadata")[0] if finish.metadata is not None else None,
        explanation=whole_text(finish.explanation)[0] or None if finish.explanation else None,
    )


def _content(value: Json, path: str) -> tuple[Content | None, tuple[str, ...]]:
    if value is None:
        return None, ()
    cleaned, repaired = repaired_value(value, path)
    return Content(cleaned), repaired


def _result(block: ResultBlock, message: MessageId, call: int) -> ToolResultPart:
    metadata, more = _content(block.metadata, "$.metadata")
    return ToolResultPart(
        call=call_key(message, call),
        is_error=block.is_error,
        output=Content(block.output),
        provider_executed=True,
        metadata=metadata,
        ended_at=block.at,
        repaired=block.repaired + more,
    )
