"""Whose metadata it is: what a provider attaches to a part comes back to it and to the same model alone. Pure.

Signatures, encrypted reasoning and item ids are worthless or harmful elsewhere, so metadata carries the provider and
the model it was asked from, and whoever builds a wire request takes its own and drops the rest whole.
"""

from __future__ import annotations

from events.content import Json
from generation.prompt_types import PromptReasoning


def tag(provider: str, model: str, data: Json, **more: Json) -> dict[str, Json]:
    """Return ``data`` marked as coming from ``model`` (as it was asked for) of ``provider``; ``more`` stands beside."""
    return {"provider": provider, "model": model, "data": data, **more}


def own(metadata: Json, provider: str, model: str) -> dict[str, Json] | None:
    """Return the data that :func:`tag` marked, where it is of this provider and model; None for all other metadata."""
    if not isinstance(metadata, dict) or metadata.get("provider") != provider or metadata.get("model") != model:
        return None
    data = metadata.get("data")
    return data if isinstance(data, dict) else None


def own_reasoning(part: PromptReasoning, provider: str, model: str) -> dict[str, Json] | None:
    """Return the data of a reasoning part where both it and the part are of this provider and model."""
    if part.provider not in {None, provider} or part.model not in {None, model}:
        return None
    return own(part.metadata, provider, model)
