"""Limits of requests and of their PDFs, to the byte and the page."""

from __future__ import annotations

import base64

import pytest

from generation.errors import ProviderError
from generation.prompt_limits import PromptSize, check_limits, pages_of
from generation.prompt_types import (
    ModelRequest,
    PromptCall,
    PromptFile,
    PromptMessage,
    PromptPart,
    PromptReasoning,
    PromptResult,
    PromptText,
)
from generation.providers.anthropic_wire import body_and_prefix

NAME = "anthropic"


def pdf(pages: int, head: bytes = b"%PDF-1.7\n", name: str | None = None) -> PromptFile:
    tree = b"<< /Type /Pages /Count 3 >>\n" + b"<< /Type /Page >> <</Type/Page>>\n"[:18] * pages
    return PromptFile(media_type="application/pdf", data=base64.b64encode(head + tree).decode(), name=name)


def size_of(*parts: PromptPart) -> PromptSize:
    size = PromptSize()
    size.take(PromptMessage(role="user", parts=parts))
    return size


def request(context_limit: int | None = None, *parts: PromptPart, system: str = "") -> ModelRequest:
    messages = (PromptMessage(role="user", parts=parts),) if parts else ()
    return ModelRequest(model="m", system=(system,) if system else (), messages=messages, context_limit=context_limit)


@pytest.mark.parametrize(
    ("part", "size"),
    [
        (PromptText(text="abc"), 3),
        (PromptText(text="\u00e9\U0001f600"), 6),
        (PromptReasoning(text="abcd"), 4),
        (PromptCall(id="c", name="f", arguments="{}"), 2),
        (PromptResult(id="c", name="f", text="ok"), 2),
        (PromptFile(media_type="image/png", data="AAAA"), 4),
        (PromptFile(media_type="application/pdf", data="JVBERi0="), 8),
        (PromptFile(media_type="text/plain", data="AAAA"), 3),
        (PromptFile(media_type="video/mp4", data="AAAA"), 0),
        (PromptResult(id="c", name="f", text="", media=(PromptFile(media_type="image/png", data="AAAA"),)), 4),
    ],
)
def test_what_counts(part: PromptPart, size: int) -> None:
    assert size_of(part).size == size


@pytest.mark.parametrize(
    ("data", "pages"),
    [
        (pdf(0).data, 0),
        (pdf(3).data, 3),
        (base64.b64encode(b"%PDF-1.4 compressed").decode(), 0),
        (base64.b64encode(b" %PDF-1.4").decode(), None),
        ("no base64", None),
        ("", None),
    ],
)
def test_pages(data: str, pages: int | None) -> None:
    assert pages_of(data) == pages


@pytest.mark.parametrize(
    ("context", "pages", "taken"),
    [
        (None, 100, True),
        (None, 101, False),
        (200_000, 100, True),
        (200_000, 101, False),
        (200_001, 101, True),
        (1_000_000, 600, True),
        (1_000_000, 601, False),
    ],
)
def test_pages_by_the_context(context: int | None, pages: int, *, taken: bool) -> None:
    asked = request(context, pdf(pages - 40), PromptText(text="and"), pdf(40))
    if taken:
        body_and_prefix(asked)
        return
    with pytest.raises(ProviderError) as caught:
        body_and_prefix(asked)
    assert (caught.value.error.kind, caught.value.error.retryable) == ("config", False)
    assert f"{pages} pages" in caught.value.error.message


def test_a_file_that_is_no_pdf() -> None:
    with pytest.raises(ProviderError, match=r"\(paper\.pdf\) is no PDF") as caught:
        body_and_prefix(request(None, pdf(1), pdf(1, head=b"MZ", name="paper.pdf")))
    assert caught.value.error.detail == "limit=not_a_pdf"


@pytest.mark.parametrize(("more", "taken"), [(0, True), (1, False)])
def test_32_mib(more: int, *, taken: bool) -> None:
    most = 32 << 20
    size = size_of(PromptText(text="x" * (most - 5 + more)))
    if taken:
        check_limits(request(system="12345"), size, NAME, most)
        return
    with pytest.raises(ProviderError, match=r"has 32\.0 MiB, and Anthropic takes 32 MiB") as caught:
        check_limits(request(system="12345"), size, NAME, most)
    assert (caught.value.error.kind, caught.value.error.retryable) == ("config", False)


def test_a_size_goes_on_from_a_copy() -> None:
    size = size_of(PromptText(text="a"), pdf(2), pdf(1, head=b""))
    other = size.copy()
    other.take(PromptMessage(role="user", parts=(PromptText(text="b"), pdf(1))))
    assert (size.pages, other.pages, other.broken) == (2, 3, "")
    assert other.size > size.size
