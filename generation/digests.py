"""Digests of a model request by section, so that a later reader sees which part of a prompt changed. Pure."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from events.records import RequestDigests
from generation.prompt_types import ModelRequest


def _digest(value: Any) -> str:
    return hashlib.sha256(msgspec.json.encode(value, order="sorted")).hexdigest()


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
        system=_digest(request.system),
        tools=_digest(request.tools),
        messages=_digest(request.messages),
        options=_digest(options),
    )
