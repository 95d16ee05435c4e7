"""Usage as the services of OpenAI tell it, or servers that speak like them. No I/O."""

from __future__ import annotations

from typing import Any

from events.messages import Usage
from generation.repair import token_count


def openai_usage(raw: Any, given: str, made: str) -> Usage | None:
    """Read usage; the service counts what came from and went into the cache among its input.

    Args:
        raw: What it told, as the SDK gives it, unchecked.
        given: What it calls what it was given: ``input`` (Responses) or ``prompt`` (Chat Completions).
        made: What it calls what it made: ``output`` or ``completion``.

    Returns:
        None where it told neither.
    """
    taken, output = _count(raw, f"{given}_tokens"), _count(raw, f"{made}_tokens")
    if taken is None and output is None:
        return None
    details = getattr(raw, f"{given}_tokens_details", None)
    read, written = _count(details, "cached_tokens") or 0, _count(details, "cache_write_tokens") or 0
    return Usage(
        input=max(0, (taken or 0) - read - written),
        output=output or 0,
        cache_read=read,
        cache_write=written,
        reasoning=_count(getattr(raw, f"{made}_tokens_details", None), "reasoning_tokens") or 0,
    )


def anthropic_usage(raw: Any, before: Usage) -> Usage:
    """Read usage of Anthropic, whose counts are cumulative.

    Args:
        raw: What an event told, as the SDK gives it, unchecked.
        before: What events before it told: what this one leaves out stays as it was.
    """
    details = getattr(raw, "output_tokens_details", None)
    return Usage(
        input=_or(_count(raw, "input_tokens"), before.input),
        output=_or(_count(raw, "output_tokens"), before.output),
        cache_read=_or(_count(raw, "cache_read_input_tokens"), before.cache_read),
        cache_write=_or(_count(raw, "cache_creation_input_tokens"), before.cache_write),
        reasoning=_or(_count(details, "thinking_tokens"), before.reasoning),
    )


def _count(raw: Any, name: str) -> int | None:
    return token_count(getattr(raw, name, None))


def _or(told: int | None, known: int) -> int:
    return known if told is None else told
