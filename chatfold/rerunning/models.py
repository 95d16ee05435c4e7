"""Stand-ins for models and context sources: they say what the log has of them.

Each asks the fate of the attempt that is under way.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from typing import Final, NoReturn, cast

from chatfold.rerunning.answers import (
    called_alone,
    classified,
    finish_of,
    judged,
    parts_of,
    text_of,
    thought_alone,
    told_of,
)
from chatfold.rerunning.fates import Fate
from events import vocabulary as v
from events.content import Content
from events.ids import ChatId
from events.messages import Message
from events.parts import Part
from events.records import ErrorInfo
from generation.context import Context
from generation.digests import tools_digest
from generation.errors import ClassifiedError, ProviderError
from generation.prompt_texts import summarised
from generation.prompt_types import ModelRequest
from generation.providers.contract import (
    CallDelta,
    CallEnd,
    ReasoningDelta,
    StreamPart,
    TextDelta,
    TextEnd,
    UsageSoFar,
)

_NO_TOOLS: Final = tools_digest((), ())


class RecordedModel:
    """A provider whose answers are the log's.

    Args:
        name: The provider's name.
        fate: Gives the fate of the attempt under way.
        asked: Told of each request.
    """

    goes_on = True
    """A service that goes on from responses it keeps: whether it does is said by the model's options."""

    def __init__(self, name: str, fate: Callable[[], Fate], asked: Callable[[ModelRequest], None]) -> None:
        self.name: Final = name
        self._fate: Final = fate
        self._asked: Final = asked

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart | UsageSoFar, None]:
        """Yield the answer; one that was cut never ends."""
        fate = self._fate()
        if fate.kind == "compact":
            self._pass_by(request, fate)
        self._asked(request)
        if (fault := _fault(fate)) is not None:
            raise fault
        for part in _stream(fate):
            yield part
        if not fate.ends:
            await asyncio.get_running_loop().create_future()
        error = getattr(fate.ended, "error", None)
        if fate.own and error is not None and not judged(error):
            raise ProviderError(classified(error, final=isinstance(fate.ended, v.TurnFailed)))

    def _pass_by(self, request: ModelRequest, fate: Fate) -> None:
        """Fail a request for a summary that was not the one the log tells of: that came after it.

        Raises:
            ProviderError: The log's was asked of another model, or was made without tools.
        """
        step, report = fate.step, fate.report
        if step is not None and (step.provider, step.model) != (self.name, request.model):
            raise ProviderError(ClassifiedError(kind="missing_key", message="Not usable then."))
        digests = report.request if report is not None else None
        if digests is not None and digests.tools == _NO_TOOLS and (request.tools or request.native):
            raise ProviderError(ClassifiedError(kind="config", message="Too large then.", too_large=True))

    async def close(self) -> None:
        """Close nothing."""


def _fault(fate: Fate) -> Exception | None:
    """Return the error that nobody expected, where an effect ended by one: its type is all that is known of it."""
    error = getattr(fate.ended, "error", None)
    if not fate.own or error is None or fate.step is not None:
        return None
    return cast("Exception", type(text_of(error.detail) or "Exception", (Exception,), {})())


def _stream(fate: Fate) -> Iterator[StreamPart | UsageSoFar]:
    ended, step = fate.ended, fate.step
    if isinstance(ended, v.CompactionCommitted) and fate.own:
        yield TextDelta(block=0, text=summary_in(ended)[0])
        yield TextEnd(block=0)
        if step is not None:
            yield finish_of(step)
        return
    yield from parts_of(fate.message)
    yield from _never_kept(fate)
    error = getattr(ended, "error", None)
    if step is None:
        return
    if error is not None and fate.own:
        if thought_alone(error):
            yield ReasoningDelta(block=0, text="...")
        if called_alone(error):
            yield CallEnd(block=0, id="call", name="call", arguments="{}")
        if judged(error):
            yield from _unkept(fate, error)
            yield finish_of(step, explanation=error.message.text)
            return
    if fate.ends and not fate.own and fate.kind == "compact":
        yield TextDelta(block=0, text="...")
    if fate.ends and (error is None or not fate.own):
        yield finish_of(step)
    else:
        yield from told_of(step)


_BESIDE: Final = 9
"""The block of what is made up beside others."""


def _never_kept(fate: Fate) -> Iterator[StreamPart]:
    """Yield what may have come beside an answer and is never kept: a blank text, and a call that was cut."""
    message = fate.message
    if message is None or not message.parts:
        return
    block = len(message.parts)
    yield TextDelta(block=block, text=" ")
    yield TextEnd(block=block)
    if message.interrupted and message.step is not None and message.step.finish_reason == "unknown":
        yield CallDelta(block=block + 1, text='{"', name="cut", id="cut")


def _unkept(fate: Fate, error: ErrorInfo) -> Iterator[StreamPart]:
    """Yield what may have come before the engine found that an answer is none, and is not kept."""
    if error.kind == "content_filter":
        yield TextDelta(block=_BESIDE, text="...")
        yield TextEnd(block=_BESIDE)
    elif fate.kind == "generate" and isinstance(fate.ended, v.RetryScheduled):
        yield ReasoningDelta(block=_BESIDE, text="...")


def summary_in(event: v.CompactionCommitted) -> tuple[str, str | None]:
    """Return the summary that a model gave, and what hooks added to it."""
    shown = event.added[0].text
    said = _details(event).get("summary")
    text = said if isinstance(said, str) else shown.removeprefix(summarised(""))
    more = shown.removeprefix(summarised(text)).removeprefix("\n\n")
    return text, more or None


def _details(event: v.CompactionCommitted) -> Mapping[str, object]:
    outputs = (getattr(part, "output", None) for message in event.added for part in message.parts)
    for output in outputs:
        if isinstance(output, Content) and output.available and isinstance(output.value, dict):
            return output.value
    return {}


class _Collected(Context):
    """A context with the parts that the log has."""

    def __init__(self, message: Message) -> None:
        super().__init__(revision=message.context.revision if message.context is not None else "none")
        object.__setattr__(self, "_parts", message.parts)

    def parts(self) -> tuple[Part, ...]:
        """See :meth:`generation.context.Context.parts`."""
        given: tuple[Part, ...] = self._parts  # type: ignore[attr-defined]  # set above: the class is frozen
        return given


class RecordedSource:
    """A context source that gives what the log has.

    Args:
        name: The source's name.
        fate: Gives the fate of the attempt under way.
    """

    revision = None

    def __init__(self, name: str, fate: Callable[[], Fate]) -> None:
        self.name: Final = name
        self._fate: Final = fate

    async def collect(self, _: ChatId) -> Context:
        """Give the context, fail as it failed then, or never answer."""
        fate = self._fate()
        if isinstance(fate.ended, v.ContextPersisted) and fate.own:
            return _Collected(fate.ended.added[0])
        error = getattr(fate.ended, "error", None)
        if fate.own and error is not None and error.kind != "timeout":
            return _fail(classified(error, final=isinstance(fate.ended, v.TurnFailed)).message)
        await asyncio.get_running_loop().create_future()
        raise AssertionError("it never answers")


def _fail(said: str) -> Context:
    """Fail as a source did of which it was said so."""
    kind = said.removesuffix(".").rpartition(_NO_CONTEXT)
    if kind[1]:
        wrong: Context = type(kind[2], (), {})()
        return wrong
    return _raise()


def _raise() -> NoReturn:
    raise RuntimeError("it failed then")


_NO_CONTEXT: Final = "it must return a Context, not "
