"""The ``scripted`` provider: a deterministic model without a service, for demos and tests.

Owns playing a script's turns as streams. The vocabulary of scripts stands in ``script``, the default one in
``friendly``.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from math import inf
from typing import Final, cast

import anyio
import msgspec

from events.counting import counted
from events.errors import InvalidValue
from events.messages import FinishReason, Usage
from generation.errors import ClassifiedError, ProviderError
from generation.prompt_kept import made_of
from generation.prompt_types import ModelRequest, PromptCall, PromptMessage
from generation.providers.contract import (
    CallDelta,
    CallEnd,
    Finish,
    ReasoningDelta,
    ReasoningEnd,
    StreamPart,
    TextDelta,
    TextEnd,
    UsageSoFar,
)
from generation.providers.friendly import friendly
from generation.providers.metadata import tag
from generation.providers.script import Cut, Fail, Say, Script, Think, Turn, UseTool, Wait, turn
from generation.providers.sdk_errors import classified, stream_closed

NAME: Final = "scripted"


class ScriptExhausted(ProviderError):
    """A scripted model was called more often than its script has turns."""

    def __init__(self, turns: int, provider: str = NAME) -> None:
        message = f"The script has {counted(turns, 'turn')}, and none is left for this call."
        super().__init__(ClassifiedError(kind="config", message=message, provider=provider))
        self.turns = turns


class ScriptedProvider:
    """A model that answers from a script.

    Args:
        script: Turns, or a function of the request. The default is a small friendly model.
        delay: Seconds between two deltas.
        sleep: Waits so many seconds; injected by tests.
        name: The provider's name.

    Attributes:
        requests: The requests so far, for tests.

    Raises:
        InvalidValue: The script is no list of turns and no function, the delay no seconds, or the name no text.
    """

    def __init__(
        self,
        script: Script = friendly,
        *,
        delay: float = 0.0,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        name: str = NAME,
    ) -> None:
        turns: object = script
        if not callable(turns):
            if not isinstance(turns, Sequence) or isinstance(turns, str | bytes):
                raise InvalidValue("$.script", f"must be a list of turns, or a function, not {type(turns).__name__}")
            for place, each in enumerate(turns):
                if not isinstance(each, Turn | str):
                    raise InvalidValue(f"$.script[{place}]", f"must be a turn or a text, not {type(each).__name__}")
        seconds: object = delay
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < inf:
            raise InvalidValue("$.delay", f"must be seconds, not {delay!r:.80}")
        if not isinstance(cast("object", name), str):
            raise InvalidValue("$.name", f"must be a text, not {type(name).__name__}")
        self._script: Final = script
        self._delay: Final = delay
        self._sleep: Final = sleep
        self._name: Final = name
        self.requests: Final[list[ModelRequest]] = []

    @property
    def name(self) -> str:
        """The provider's name in model references."""
        return self._name

    async def close(self) -> None:
        """Close nothing: there is no connection."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart | UsageSoFar, None]:
        """Answer with the script's next turn; see the contract.

        Raises:
            ProviderError: The script fails or breaks off here, or its function raised.
            ScriptExhausted: The script has no turn left.
        """
        self.requests.append(request)
        async with classified(self._name):
            chosen = self._choose(request)
        said = made_of(request.messages, NAME, _Said)
        given = _tokens(said.size + len(msgspec.json.encode([request.system, request.tools])) + 2)
        usage = chosen.usage or Usage(input=given, output=_spoken(chosen))
        response_id = f"scripted_{len(self.requests)}"
        yield UsageSoFar(usage=Usage(input=usage.input), response_id=response_id)
        ids = _Ids(said.calls)
        for block, step in enumerate(chosen.steps):
            match step:
                case Wait():
                    if step.reached is not None:
                        step.reached()
                    await step.until.wait()
                case Fail():
                    raise ProviderError(step.error)
                case Cut():
                    raise stream_closed(self._name)
                case _:
                    for part in self._parts(step, block, request.model, ids):
                        await self._sleep(self._delay)
                        yield part
        yield Finish(
            reason=chosen.finish or _reason(chosen),
            usage=usage,
            response_id=response_id,
            model=request.model,
            explanation=chosen.explanation,
        )

    def _choose(self, request: ModelRequest) -> Turn:
        script = self._script
        if callable(script):
            chosen = script(request)
            given: object = chosen
            if not isinstance(given, Turn | str):
                close = getattr(given, "close", None)
                if callable(close):
                    close()  # a coroutine that nobody awaits
                why = f"The script's function must give a turn or a text, not {type(given).__name__}."
                raise ProviderError(ClassifiedError(kind="config", message=why, provider=self._name))
        elif len(self.requests) > len(script):
            raise ScriptExhausted(len(script), self._name)
        else:
            chosen = script[len(self.requests) - 1]
        return turn(chosen) if isinstance(chosen, str) else chosen

    def _parts(self, step: Say | Think | UseTool, block: int, model: str, ids: _Ids) -> Iterator[StreamPart]:
        match step:
            case Say():
                yield from (TextDelta(block=block, text=piece) for piece in _pieces(step.text, step.chunk))
                yield TextEnd(block=block)
            case Think():
                yield from (ReasoningDelta(block=block, text=piece) for piece in _pieces(step.text, step.chunk))
                metadata = tag(self._name, model, step.metadata) if step.metadata is not None else None
                yield ReasoningEnd(block=block, metadata=metadata, redacted=step.redacted)
            case UseTool():
                given = step.arguments
                arguments = given if isinstance(given, str) else msgspec.json.encode(given).decode()
                call_id = step.id or ids.next()
                yield CallDelta(block=block, text="", name=step.name, id=call_id)
                yield from (CallDelta(block=block, text=piece) for piece in _pieces(arguments, step.chunk))
                yield CallEnd(block=block, id=call_id, name=step.name, arguments=arguments)


class _Said:
    """What a conversation so far comes to: bytes of its messages as JSON, and the ids of its calls."""

    def __init__(self) -> None:
        self.size = 0
        self.calls: set[str] = set()

    def copy(self) -> _Said:
        other = _Said()
        other.size, other.calls = self.size, self.calls.copy()
        return other

    def take(self, message: PromptMessage) -> None:
        self.size += len(msgspec.json.encode(message)) + 1
        self.calls.update(part.id for part in message.parts if isinstance(part, PromptCall))


class _Ids:
    """Numbers calls on from those of the conversation."""

    def __init__(self, used: set[str]) -> None:
        self._used = used
        self._count = len(used)

    def next(self) -> str:
        """Return an id that no call of the conversation has."""
        self._count += 1
        while f"call_{self._count}" in self._used:
            self._count += 1
        return f"call_{self._count}"


def _pieces(text: str, size: int) -> Iterator[str]:
    return (text[at : at + size] for at in range(0, len(text), max(1, size)))


def _tokens(size: int) -> int:
    return size // 4 + 1


def _spoken(chosen: Turn) -> int:
    texts = [step.text for step in chosen.steps if isinstance(step, Say | Think)]
    calls = [msgspec.json.encode(step.arguments) for step in chosen.steps if isinstance(step, UseTool)]
    return _tokens(len("".join(texts).encode("utf-8", "replace")) + sum(map(len, calls)))


def _reason(chosen: Turn) -> FinishReason:
    return "tool_calls" if any(isinstance(step, UseTool) for step in chosen.steps) else "stop"
