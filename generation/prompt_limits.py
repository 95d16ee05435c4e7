"""How large a request may be, and how many pages its documents may have: told before a service refuses it. Pure.

What counts is what is sent as it is: texts by their bytes, images and PDFs by their base64 form. Pages are counted by
the markers that a PDF has for each; a file in which none is found, as they are compressed, is let through.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final, final

from generation.error_texts import limit_message
from generation.errors import ClassifiedError, ProviderError
from generation.prompt_types import ModelRequest, PromptCall, PromptFile, PromptMessage, PromptPart, PromptResult
from generation.providers.files import IMAGES, PDF, is_text

ANTHROPIC_BYTES: Final = 32 << 20
"""Bytes of a request that Anthropic takes."""

PAGES: Final = 100
"""Pages of all PDFs of a request."""

LARGE_PAGES: Final = 600
"""The same where the context is large."""

LARGE: Final = 200_000
"""Tokens over which a context is large."""

_HEAD: Final = b"%PDF-"
_PAGE: Final = re.compile(rb"/Type\s*/Page(?![A-Za-z])")


@final
class PromptSize:
    """The size of messages, taken one after the other.

    Attributes:
        size: Bytes.
        pages: Pages of PDFs, as far as their markers tell.
        broken: The name of the first file that is said to be a PDF and is none; empty where it has no name.
    """

    __slots__ = ("broken", "pages", "size")

    def __init__(self) -> None:
        self.size = 0
        self.pages = 0
        self.broken: str | None = None

    def copy(self) -> PromptSize:
        """Return another one that goes on from here by itself."""
        other = PromptSize()
        other.size, other.pages, other.broken = self.size, self.pages, self.broken
        return other

    def take(self, message: PromptMessage) -> None:
        """Go on with the next message."""
        for part in message.parts:
            self._add(part)

    def _add(self, part: PromptPart) -> None:
        match part:
            case PromptFile():
                self._add_file(part)
            case PromptCall():
                self.size += bytes_of(part.arguments)
            case PromptResult():
                self.size += bytes_of(part.text)
                for file in part.media:
                    self._add_file(file)
            case _:
                self.size += bytes_of(part.text)

    def _add_file(self, file: PromptFile) -> None:
        if file.media_type == PDF:
            self.size += len(file.data)
            pages = pages_of(file.data)
            if pages is None and self.broken is None:
                self.broken = file.name or ""
            self.pages += pages or 0
        elif file.media_type in IMAGES:
            self.size += len(file.data)
        elif is_text(file.media_type):
            self.size += len(file.data) // 4 * 3


def bytes_of(text: str) -> int:
    """Return how many bytes a text has in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def pages_of(data: str) -> int | None:
    """Return how many pages a PDF has by its markers: 0 where it has none; None of what is no PDF.

    Args:
        data: The file in base64.
    """
    try:
        raw = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None
    return len(_PAGE.findall(raw)) if raw.startswith(_HEAD) else None


def check_limits(request: ModelRequest, size: PromptSize, provider: str, most_bytes: int) -> None:
    """Check a request before it is sent.

    Args:
        request: The request.
        size: The size of its messages.
        provider: Who is asked.
        most_bytes: The most bytes that it takes.

    Raises:
        ProviderError: A limit is passed: a ``config`` failure that no retry mends.
    """
    context = request.context_limit
    most_pages = LARGE_PAGES if context is not None and context > LARGE else PAGES
    whole = size.size + sum(map(bytes_of, request.system))
    if size.broken is not None:
        _refuse("not_a_pdf", provider, file=size.broken or "without a name")
    if whole > most_bytes:
        _refuse("too_large", provider, size=f"{whole / (1 << 20):.1f}", most=most_bytes >> 20)
    if size.pages > most_pages:
        _refuse("too_many_pages", provider, pages=size.pages, most=most_pages)


def _refuse(limit: str, provider: str, **facts: object) -> None:
    message = limit_message(limit, provider, **facts)
    raise ProviderError(ClassifiedError(kind="config", message=message, provider=provider, detail=f"limit={limit}"))
