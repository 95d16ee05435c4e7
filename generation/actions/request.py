"""The one place where a model request is made: from an attempt's agent, model and prompt, with its digests."""

from __future__ import annotations

from events.records import ModelPolicy, RequestDigests
from generation.actions.attempt import Attempt
from generation.digests import digest_request
from generation.prompt import BuiltPrompt
from generation.prompt_types import ModelRequest


def make_request(
    attempt: Attempt,
    model: ModelPolicy,
    prompt: BuiltPrompt,
    *,
    system: tuple[tuple[str, ...], str] | None = None,
    tool_choice_none: bool = False,
) -> tuple[ModelRequest, RequestDigests]:
    """Return the request to ``model``, and the digests of its sections.

    Args:
        attempt: The attempt that it is for.
        model: The model that is asked.
        prompt: What it is asked.
        system: The agent's system texts and the prompt's, and the digest of all, where they are known.
        tool_choice_none: Whether the tools stand there unused. They are declared all the same, in the same order: the
            provider's cached prefix stays valid.

    Raises:
        ProviderError: The model is not configured here any more.
    """
    own = attempt.runtime.declared(attempt.agent, attempt.policy)
    texts: tuple[str, ...]
    system_digest: str | None
    if not prompt.system:
        texts, system_digest = own.system, own.system_digest
    elif system is not None:
        texts, system_digest = system
    else:
        texts, system_digest = (*own.system, *prompt.system), None
    config = attempt.config(model)
    request = ModelRequest(
        model=model.name,
        system=texts,
        messages=prompt.messages,
        tools=own.tools,
        tool_choice_none=tool_choice_none,
        max_output=model.max_output,
        effort=model.effort,
        options=dict(config.options),
        extra=dict(config.extra),
    )
    digests = digest_request(
        request,
        system=system_digest,
        tools=own.tools_digest,
        messages=prompt.digest,
        options=attempt.runtime.options_digest(request),
    )
    return request, digests
