"""What is known of a call that was cut: by provider, and by the moment of the cut."""

from __future__ import annotations

import pytest

from chatfold.testing.servers import Answer, Fail, Usage
from events.messages import Usage as OurUsage
from generation.assemble import Assembler
from generation.errors import ProviderError
from generation.providers.contract import Provider
from tests.generation.providers.kit import NAMES, TOOLS, request, serving

pytestmark = pytest.mark.anyio

_TOLD = Usage(input=7, output=5)
_INPUT = {"anthropic": 7, "openai": 0, "openai-chat": 0}
"""What is known of the input once the service has sent its first event."""

_CUTS: dict[str, tuple[Answer | Fail, bool, bool]] = {
    "refused": (Fail(400), False, False),
    "before its first event": (Answer("some words", usage=_TOLD, cut_after_frames=0), True, False),
    "after its first event": (Answer("some words", usage=_TOLD, cut_after_frames=1), True, True),
    "in its text": (Answer("some words", usage=_TOLD, chunk_size=2, cut_after=2), True, True),
}
"""What the service does -> whether the call is unmetered, and whether its first event has come."""


async def _assemble(provider: Provider, assembler: Assembler) -> None:
    async for part in provider.stream(request("hi")):
        assembler.add(part)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("place", _CUTS)
async def test_what_is_known_of_a_call_by_where_it_was_cut(name: str, place: str) -> None:
    reply, unmetered, begun = _CUTS[place]
    assembler = Assembler(TOOLS)
    async with serving(name, [reply]) as (_, provider):
        with pytest.raises(ProviderError):
            await _assemble(provider, assembler)
    step = assembler.step(name, "m")
    assert (step.unmetered, step.usage.input) == (unmetered, _INPUT[name] if begun else 0)


@pytest.mark.parametrize("name", NAMES)
async def test_a_whole_answer_is_metered(name: str) -> None:
    assembler = Assembler(TOOLS)
    async with serving(name, [Answer("some words", usage=_TOLD)]) as (_, provider):
        await _assemble(provider, assembler)
    step = assembler.step(name, "m")
    assert (step.unmetered, step.usage) == (False, OurUsage(input=7, output=5))
