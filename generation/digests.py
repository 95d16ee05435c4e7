"""Digests of a model request by section, so that a later reader sees which part of a prompt changed. Pure."""

from __future__ import annotations

from events.records import RequestDigests
from generation.digest import digest_of
from generation.prompt_types import ModelRequest


def digest_request(request: ModelRequest) -> RequestDigests:
    """Return the SHA-256 (hex) of each section of ``request``; options cover the model, effort and limits too."""
    options = {
        "model": request.model,
        "max_output": request.max_output,
        "effort": request.effort,
        "tool_choice_none": request.tool_choice_none,
        "options": request.options,
    }
    return RequestDigests(
        system=digest_of(request.system),
        tools=digest_of(request.tools),
        messages=digest_of(request.messages),
        options=digest_of(options),
    )
