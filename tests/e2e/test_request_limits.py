"""The engine before a request that its service would refuse for its size."""

from __future__ import annotations

import base64
import uuid

import pytest

from chatfold.testing.servers import Answer
from events.content import Content
from events.parts import FilePart, TextPart
from generation.models import ModelConfig
from tests.e2e.checks import check
from tests.e2e.kit import MODEL, Place, stage, texts


@pytest.fixture
def place(url: str) -> Place:
    """These limits are this provider's."""
    return Place(provider="anthropic", url=url, agent=f"agent-{uuid.uuid4().hex}")


def paper(pages: int) -> FilePart:
    data = base64.b64encode(b"%PDF-1.7\n" + b"<< /Type /Page >>\n" * pages).decode()
    return FilePart(media_type="application/pdf", data=Content(data), name=Content("paper.pdf"))


async def test_a_pdf_with_too_many_pages_fails_the_turn_before_anything_is_sent(place: Place) -> None:
    async with stage(place, [Answer("It is about folds.")]) as scene:
        chat = await scene.start([TextPart(text=Content("What is this?")), paper(101)])
        state = await scene.settled(chat, "error")
        error = state.control.last_error
        assert error is not None
        assert (error.kind, error.retryable, error.provider) == ("config", False, "anthropic")
        assert error.message.text == (
            "The PDFs of the conversation have 101 pages, and Anthropic takes 100. Remove some."
        )
        assert scene.server.requests == []
        (question,) = [item for item in state.messages if item.message.role == "user"]
        await scene.engine.edit_message(chat, question.id, [TextPart(text=Content("What is this?")), paper(100)])
        assert texts(await scene.settled(chat)) == ["It is about folds."]
        await check(scene, chat)


async def test_a_compaction_model_that_takes_fewer_pages_fails_the_turn_before_anything_is_sent(place: Place) -> None:
    large = ModelConfig(provider="anthropic", name=MODEL, context_limit=1_000_000)
    small = ModelConfig(provider="anthropic", name="model-two", context_limit=200_000)
    async with stage(place, [Answer("It is about folds.")], model=large, compaction_model=small) as scene:
        chat = await scene.start([TextPart(text=Content("What is this?")), paper(101)])
        await scene.settled(chat)
        await scene.engine.compact(chat)
        error = (await scene.settled(chat, "error")).control.last_error
        assert error is not None
        assert (error.kind, error.retryable, error.provider) == ("config", False, "anthropic")
        assert error.message.text == (
            "The PDFs of the conversation have 101 pages, and Anthropic takes 100. Remove some."
        )
        # It was usable and failed when it was used: the chat's own model is not asked in its place.
        assert [request.body["model"] for request in scene.server.requests] == [MODEL]
        await check(scene, chat)
