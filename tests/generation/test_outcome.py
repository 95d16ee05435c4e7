"""Answers that are none."""

from __future__ import annotations

import pytest

from events.content import Absent, Content
from events.messages import FinishReason, Usage
from events.parts import Part, TextPart
from generation.errors import ProviderError
from generation.outcome import require_consent, require_output
from generation.providers.contract import Finish
from tests.generation.kit import call, text, thought

SILENT: list[tuple[Part, ...]] = [(), (thought("hm"),), (text(" "),)]


@pytest.mark.parametrize("parts", SILENT)
@pytest.mark.parametrize("reason", ["unknown", "tool_calls"])
def test_no_output_without_a_reason_is_tried_again(parts: tuple[Part, ...], reason: FinishReason) -> None:
    with pytest.raises(ProviderError) as caught:
        require_output(parts, reason, "openai")
    error = caught.value.error
    assert (error.kind, error.retryable, error.detail) == ("generic", True, f"finish reason: {reason}")
    assert "no output" in error.message


@pytest.mark.parametrize("parts", SILENT)
@pytest.mark.parametrize("reason", ["stop", "length"])
def test_a_model_may_stop_without_a_word(parts: tuple[Part, ...], reason: FinishReason) -> None:
    require_output(parts, reason, "openai")


@pytest.mark.parametrize("parts", [(text("a"),), (call(),), (TextPart(text=Content(Absent.ERASED, 3)),)])
@pytest.mark.parametrize("reason", ["unknown", "tool_calls", "stop"])
def test_text_or_calls_are_output(parts: tuple[Part, ...], reason: FinishReason) -> None:
    require_output(parts, reason, "openai")


@pytest.mark.parametrize("reason", ["refusal", "content_filter"])
@pytest.mark.parametrize(
    ("explanation", "message"), [("Not that.", "Not that."), (None, "Anthropic declined to answer.")]
)
def test_a_refusal_fails_with_its_explanation(reason: FinishReason, explanation: str | None, message: str) -> None:
    with pytest.raises(ProviderError) as caught:
        require_consent(Finish(reason=reason, usage=Usage(), explanation=explanation), "anthropic")
    error = caught.value.error
    assert (error.kind, error.retryable, error.message) == ("content_filter", False, message)


@pytest.mark.parametrize("reason", ["stop", "length", "tool_calls", "unknown"])
def test_other_reasons_are_no_refusals(reason: FinishReason) -> None:
    require_consent(Finish(reason=reason, usage=Usage()), "anthropic")
