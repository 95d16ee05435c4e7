"""The one place where a model request is made: from an attempt's agent, model and prompt, with its digests."""

from __future__ import annotations

from typing import Literal, TypeAlias

from events.records import ModelPolicy, RequestDigests
from generation.actions.attempt import Attempt
from generation.chain import Continuation
from generation.digests import digest_request
from generation.prompt import BuiltPrompt
from generation.prompt_types import ModelRequest

Tools: TypeAlias = Literal["offered", "unused", "none"]
"""Whether a request offers the agent's tools, declares them to be left alone, or has none."""


def make_request(
    attempt: Attempt,
    model: ModelPolicy,
    prompt: BuiltPrompt,
    *,
    system: tuple[tuple[str, ...], str] | None = None,
    tools: Tools = "offered",
    max_output: int | None = None,
    chain: Continuation | None = None,
) -> tuple[ModelRequest, RequestDigests]:
    """Return the request to ``model``, and the digests of its sections.

    Args:
        attempt: The attempt that it is for.
        model: The model that is asked.
        prompt: What it is asked.
        system: The agent's system texts and the prompt's, and the digest of all, where they are known.
        tools: Whether the agent's tools are offered; or stand there unused, in the same order, so that the provider's
            cached prefix stays valid; or are left out.
        max_output: The most tokens of the answer where it is less than the model's configuration says.
        chain: The response to go on from. The digests are those of the whole prompt all the same: what the model is to
            read, however it comes to it.

    Raises:
        ProviderError: The model is not configured here any more.
    """
    own = attempt.declared
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
        messages=prompt.messages if chain is None else chain.messages,
        tools=() if tools == "none" else own.tools,
        tool_choice_none=tools != "offered",
        max_output=model.max_output if max_output is None else max_output,
        effort=model.effort,
        options=dict(config.options),
        extra=dict(config.extra),
        native=() if tools == "none" else tuple(attempt.agent.provider_tools),
        continues=None if chain is None else chain.response,
        context_limit=model.context_limit,
    )
    digests = digest_request(
        request,
        system=system_digest,
        tools=None if tools == "none" else own.tools_digest,
        messages=prompt.digest,
        options=attempt.runtime.options_digest(request),
    )
    return request, digests
