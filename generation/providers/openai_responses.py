"""The ``openai`` provider: Responses through the official SDK, streaming.

Nothing is stored with the service unless the model's options say so: each request holds the whole conversation, with
the encrypted reasoning that the same model gave before, or goes on from a response that the service keeps. Owns reading
the stream; what is sent is made in ``openai_wire``. Importing this module imports the SDK.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from typing import Any, Final

from events.content import Json
from events.messages import FinishReason, Usage
from generation.prompt_types import ModelRequest
from generation.providers.contract import (
    CallDelta,
    CallEnd,
    Finish,
    ProviderResult,
    ReasoningDelta,
    ReasoningEnd,
    SourceFound,
    StreamPart,
    TextDelta,
    TextEnd,
    UsageSoFar,
)
from generation.providers.metadata import tag
from generation.providers.native import WEB_SEARCH
from generation.providers.openai_client import make_client
from generation.providers.openai_wire import RESPONSES as NAME
from generation.providers.openai_wire import responses_body
from generation.providers.sdk_errors import classified, missing_key, reported, stream_closed
from generation.providers.usage import openai_usage
from store.clock import wall_clock

_INCOMPLETE: Final[dict[str, FinishReason]] = {"max_output_tokens": "length", "content_filter": "content_filter"}


class OpenAIResponsesProvider:
    """Calls models of OpenAI, or of a server that speaks Responses.

    Args:
        base_url: Where the service is; None: the SDK's default, or OPENAI_BASE_URL.
        api_key: The key; None: OPENAI_API_KEY.
        timeout: Seconds that the transport waits for data.
        clock: Gives the time in microseconds UTC.
    """

    def __init__(
        self,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = 600.0,
        clock: Callable[[], int] = wall_clock,
    ) -> None:
        self._client: Final = make_client(base_url=base_url, api_key=api_key, timeout=timeout)
        self._clock: Final = clock

    goes_on: Final = True
    """It goes on from a response that the service keeps (``ModelRequest.continues``)."""

    @property
    def name(self) -> str:
        """The provider's name in model references."""
        return NAME

    async def close(self) -> None:
        """Close connections."""
        if self._client is not None:
            await self._client.close()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart | UsageSoFar, None]:
        """Call the model once; see the contract.

        Raises:
            ProviderError: The call failed.
        """
        if self._client is None:
            raise missing_key(NAME)
        reader = _Reader(request.model, self._clock)
        async with classified(NAME, self._clock):
            payload = responses_body(request)
            # The SDK checks its own arguments part by part, for seconds where they are long, not what is extra.
            known: dict[str, Any] = {"model": payload.pop("model"), "input": []}
            async with await self._client.responses.create(**known, stream=True, extra_body=payload) as events:
                yield UsageSoFar(usage=Usage())
                async for event in events:
                    for part in reader.read(event):
                        yield part
        if not reader.whole:
            raise stream_closed(NAME)


class _Reader:
    """Reads the events of one stream. Kinds of events and items that are not known yet are passed over."""

    def __init__(self, model: str, clock: Callable[[], int]) -> None:
        self._model = model
        self._clock = clock
        self._numbers: dict[tuple[int, int], int] = {}
        self._seen: set[int] = set()
        self._whole_items: set[int] = set()
        self._refusal: dict[tuple[int, int], str] = {}
        self._called = False
        self._cited: set[str] = set()
        self._found: dict[str, None] = {}
        self._before: str | None = None
        self.whole = False

    def read(self, event: Any) -> list[StreamPart | UsageSoFar]:
        """Return the parts that an event stands for.

        Raises:
            ProviderError: The event reports a failure.
        """
        match event.type:
            case "response.output_item.added":
                return list(self._added(event))
            case "response.output_text.delta":
                return [TextDelta(block=self._delta(event.output_index, event.content_index), text=event.delta)]
            case "response.output_text.annotation.added":
                return list(self._source(event.annotation))
            case "response.refusal.delta":
                place = event.output_index, getattr(event, "content_index", 0)
                self._refusal[place] = self._refusal.get(place, "") + event.delta
                return []
            case "response.reasoning_summary_part.added" if event.summary_index > 0:
                return [ReasoningDelta(block=self._delta(event.output_index), text="\n\n")]
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                return [ReasoningDelta(block=self._delta(event.output_index), text=event.delta)]
            case "response.function_call_arguments.delta":
                return [CallDelta(block=self._delta(event.output_index), text=event.delta)]
            case "response.output_item.done":
                return list(self._ended(event.output_index, event.item))
            case "response.completed" | "response.incomplete":
                self.whole = True
                missed = self._missed(event.response) if event.type == "response.completed" else []
                return [*missed, *self._uncited(), self._finish(event.response)]
            case "response.failed":
                error = event.response.error
                code, message = getattr(error, "code", None), getattr(error, "message", None)
                raise reported(NAME, code=code, message=message, now_us=self._clock())
            case "error":
                raise reported(NAME, code=event.code, message=event.message, now_us=self._clock())
            case _:
                return []

    def _number(self, output: int, content: int = 0) -> int:
        """Return the number of the block for a piece of an item, in the order in which blocks began."""
        return self._numbers.setdefault((output, content), len(self._numbers))

    def _delta(self, output: int, content: int = 0) -> int:
        number = self._number(output, content)
        self._seen.add(number)
        return number

    def _added(self, event: Any) -> list[StreamPart]:
        item = event.item
        if item.type != "function_call":
            return []
        self._called = True
        return [CallDelta(block=self._number(event.output_index), text="", name=item.name, id=item.call_id)]

    def _source(self, annotation: Any) -> list[StreamPart]:
        url = getattr(annotation, "url", None)
        if not url or url in self._cited:
            return []
        self._cited.add(url)
        return [self._new_source(url, getattr(annotation, "title", None))]

    def _new_source(self, url: str, title: str | None) -> SourceFound:
        number = self._number(-1, len(self._numbers))
        return SourceFound(block=number, source_id=f"source_{number}", url=url, title=title)

    def _uncited(self) -> list[StreamPart]:
        """Return the sources that a search found and the answer did not cite: cited, they have titles."""
        return [self._new_source(url, None) for url in self._found if url not in self._cited]

    def _ended(self, output: int, item: Any) -> list[StreamPart]:
        self._whole_items.add(output)
        parts = self._done(output, item)
        self._before = item.id if item.type == "reasoning" else None
        return parts

    def _missed(self, response: Any) -> list[StreamPart]:
        """Return what a whole answer holds of items that the stream did not end: the answer itself has them whole."""
        return [
            part
            for output, item in enumerate(getattr(response, "output", None) or [])
            if output not in self._whole_items
            for part in self._ended(output, item)
        ]

    def _done(self, output: int, item: Any) -> list[StreamPart]:
        match item.type:
            case "message":
                return self._message(output, item)
            case "reasoning":
                return self._reasoning(output, item)
            case "function_call":
                self._called = True
                number = self._number(output)
                return [CallEnd(block=number, id=item.call_id, name=item.name, arguments=item.arguments or "{}")]
            case "web_search_call":
                return self._search(output, item)
            case _:
                return []

    def _search(self, output: int, item: Any) -> list[StreamPart]:
        """Return call and result of a search: the service tells both as one item, which it wants back as it was."""
        plain: dict[str, Any] = item.model_dump(mode="json", exclude_unset=True)
        action = dict(plain.get("action") or {})
        found = [source["url"] for source in action.pop("sources", None) or [] if source.get("url")]
        self._found |= dict.fromkeys(found)
        ended = item.status in {"completed", "failed"}
        call = CallEnd(
            block=self._number(output),
            id=item.id,
            name=WEB_SEARCH,
            arguments=json.dumps(action, ensure_ascii=False),
            metadata=self._tag(plain, after=self._before) if ended else None,
            provider_executed=True,
        )
        result = ProviderResult(
            block=self._number(output, 1),
            call_id=item.id,
            name=WEB_SEARCH,
            output={"status": item.status, "sources": found},
            is_error=item.status != "completed",
        )
        return [call, result]

    def _message(self, output: int, item: Any) -> list[StreamPart]:
        phase = getattr(item, "phase", None)
        metadata = self._tag({"phase": phase}) if phase is not None else None
        parts: list[StreamPart] = []
        for index, content in enumerate(item.content or []):
            if content.type == "refusal":
                self._refusal[output, index] = content.refusal or self._refusal.get((output, index), "")
            if content.type != "output_text":
                continue
            number = self._number(output, index)
            if number not in self._seen and content.text:
                parts.append(TextDelta(block=number, text=content.text))
            parts.append(TextEnd(block=number, metadata=metadata))
        return parts

    def _reasoning(self, output: int, item: Any) -> list[StreamPart]:
        number = self._number(output)
        parts: list[StreamPart] = []
        if number not in self._seen:
            text = "\n\n".join(piece.text for piece in item.summary or [])
            parts = [ReasoningDelta(block=number, text=text)] if text else []
        plain: dict[str, Json] = item.model_dump(mode="json", exclude_none=True)
        ended = plain.pop("status", None) in {None, "completed"}  # a field of answers; what is handed back has none
        metadata = self._tag(plain, after=self._before) if ended and plain.get("encrypted_content") else None
        return [*parts, ReasoningEnd(block=number, metadata=metadata)]

    def _tag(self, data: Json, **more: Json) -> Json:
        return tag(NAME, self._model, data, **more)

    def _finish(self, response: Any) -> Finish:
        details = getattr(response, "incomplete_details", None)
        incomplete = getattr(details, "reason", None)
        reason: FinishReason = "tool_calls" if self._called else "stop"
        if response.status == "incomplete" or incomplete is not None:
            reason = _INCOMPLETE.get(incomplete or "", "unknown")
        elif self._refusal:
            reason = "refusal"
        return Finish(
            reason=reason,
            usage=openai_usage(response.usage, "input", "output"),
            response_id=response.id,
            model=response.model,
            metadata={"status": response.status, "incomplete": incomplete} if incomplete else None,
            explanation="".join(self._refusal.values()) or None,
        )
