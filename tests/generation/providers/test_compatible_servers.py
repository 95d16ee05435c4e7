"""Chat Completions as compatible servers speak it: ids left out or repeated, calls misnumbered, the end missing."""

from __future__ import annotations

import pytest

from events.content import Json
from events.messages import Usage
from generation.errors import ProviderError
from generation.providers.contract import CallEnd, Finish, ReasoningDelta, ReasoningEnd, TextDelta, TextEnd
from generation.providers.openai_chat import OpenAIChatProvider
from tests.generation.providers.kit import AnyPart, collect, request
from tests.generation.providers.raw import raw_server, sse

pytestmark = pytest.mark.anyio


def chunk(delta: dict[str, Json], finish: str | None = None) -> Json:
    return {"id": "r1", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def call(arguments: str, *, index: int | None = 0, id: str | None = None, name: str | None = None) -> Json:
    made: dict[str, Json] = {"function": {"arguments": arguments, "name": name}, "id": id, "index": index}
    return chunk({"tool_calls": [made]})


async def parts_of(*events: Json | str) -> list[AnyPart]:
    async with raw_server(sse(events)) as url:
        provider = OpenAIChatProvider(base_url=url, api_key="k")
        try:
            return await collect(provider, request("hi"))
        finally:
            await provider.close()


def calls_of(parts: list[AnyPart]) -> list[tuple[str, str, str]]:
    return [(part.id, part.name, part.arguments) for part in parts if isinstance(part, CallEnd)]


END: Json = chunk({}, "tool_calls")


async def test_a_call_without_an_id() -> None:
    parts = await parts_of(call("{}", name="a"), END, "[DONE]")
    assert calls_of(parts) == [("", "a", "{}")]


async def test_an_id_repeated_in_each_delta() -> None:
    parts = await parts_of(call('{"x"', id="c", name="a"), call(":1}", id="c"), END, "[DONE]")
    assert calls_of(parts) == [("c", "a", '{"x":1}')]


async def test_two_calls_with_the_same_id_under_two_indexes() -> None:
    parts = await parts_of(call("{}", id="c", name="a"), call("{}", index=1, id="c", name="b"), END, "[DONE]")
    assert calls_of(parts) == [("c", "a", "{}"), ("c", "b", "{}")]


async def test_all_calls_numbered_zero() -> None:
    parts = await parts_of(call('{"x":1}', id="c", name="a"), call("{}", id="d", name="b"), END, "[DONE]")
    assert calls_of(parts) == [("c", "a", '{"x":1}'), ("d", "b", "{}")]


async def test_all_calls_numbered_zero_and_without_ids() -> None:
    parts = await parts_of(call('{"x":1}', name="a"), call("{}", name="b"), END, "[DONE]")
    assert calls_of(parts) == [("", "a", '{"x":1}'), ("", "b", "{}")]


async def test_calls_without_an_index() -> None:
    parts = await parts_of(
        call('{"x"', index=None, id="c", name="a"),
        call(":1}", index=None),
        call("{}", index=None, name="b"),
        END,
        "[DONE]",
    )
    assert calls_of(parts) == [("c", "a", '{"x":1}'), ("", "b", "{}")]


async def test_interleaved_deltas_of_two_calls() -> None:
    parts = await parts_of(
        call("", id="c", name="a"),
        call("", index=1, id="d", name="b"),
        call('{"x"', index=0),
        call('{"y"', index=1),
        call(":1}", index=0),
        call(":2}", index=1),
        END,
        "[DONE]",
    )
    assert calls_of(parts) == [("c", "a", '{"x":1}'), ("d", "b", '{"y":2}')]


async def test_stop_after_calls_means_calls() -> None:
    parts = await parts_of(call("{}", name="a"), chunk({}, "stop"), "[DONE]")
    assert isinstance(parts[-1], Finish)
    assert parts[-1].reason == "tool_calls"


async def test_a_finish_reason_nobody_knows() -> None:
    parts = await parts_of(chunk({"content": "x"}), chunk({}, "eos"), "[DONE]")
    assert isinstance(parts[-1], Finish)
    assert parts[-1].reason == "unknown"


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
async def test_reasoning_in_a_field_of_its_own(field: str) -> None:
    parts = await parts_of(
        chunk({field: "Hm"}), chunk({field: "."}), chunk({"content": "Yes."}), chunk({}, "stop"), "[DONE]"
    )
    assert parts[:-1] == [
        ReasoningDelta(block=0, text="Hm"),
        ReasoningDelta(block=0, text="."),
        ReasoningEnd(block=0),
        TextDelta(block=1, text="Yes."),
        TextEnd(block=1),
    ]


async def test_usage_in_a_chunk_of_its_own_without_details() -> None:
    usage: Json = {"id": "r1", "model": "m", "choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}
    parts = await parts_of(chunk({"content": "x"}), chunk({}, "stop"), usage, "[DONE]")
    assert isinstance(parts[-1], Finish)
    assert parts[-1].usage == Usage(input=7, output=3)


async def test_without_its_last_event_the_stream_was_cut() -> None:
    with pytest.raises(ProviderError) as caught:
        await parts_of(chunk({"content": "x"}), chunk({}, "stop"))
    assert (caught.value.error.kind, caught.value.error.retryable) == ("timeout", True)
    assert "closed" in caught.value.error.message


async def test_an_event_that_is_cut_in_the_middle() -> None:
    with pytest.raises(ProviderError) as caught:
        await parts_of(chunk({"content": "x"}), '{"id": "r1", "cho')
    assert (caught.value.error.kind, caught.value.error.retryable) == ("timeout", True)


async def test_an_error_object_in_the_stream() -> None:
    with pytest.raises(ProviderError) as caught:
        await parts_of({"error": {"message": "The engine is overloaded.", "code": 503}})
    assert (caught.value.error.kind, caught.value.error.retryable) == ("overloaded", True)


async def test_no_key_is_needed_with_a_base_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    async with raw_server(sse([chunk({"content": "x"}), chunk({}, "stop"), "[DONE]"])) as url:
        provider = OpenAIChatProvider(base_url=url)
        parts = await collect(provider, request("hi"))
        await provider.close()
    assert parts[0] == TextDelta(block=0, text="x")


async def test_a_server_is_the_same_however_its_address_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    async with raw_server(sse([chunk({"content": "x"}), chunk({}, "stop"), "[DONE]"])) as url:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        provider = OpenAIChatProvider()
        parts = await collect(provider, request("hi"))
        await provider.close()
    assert parts[0] == TextDelta(block=0, text="x")
    assert provider._limit_name == OpenAIChatProvider(base_url=url)._limit_name == "max_tokens"


@pytest.mark.parametrize("given", ["https://api.openai.com/v1", None])
async def test_the_own_service_wants_a_key(given: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("OPENAI_BASE_URL", "https://api.openai.com/v1")
    with pytest.raises(ProviderError, match="OPENAI_API_KEY"):
        await collect(OpenAIChatProvider(base_url=given), request("hi"))


@pytest.mark.parametrize(
    ("events", "calls"),
    [
        (
            [call('{"x"', index=None, id="c", name="a"), call(":1}", index=None, id="c", name="a")],
            [("c", "a", '{"x":1}')],
        ),
        ([call('{"x":"}', id="c", name="a"), call('"}', name="a")], [("c", "a", '{"x":"}"}')]),
        ([call("{}", index=None, name="a"), call("{}", index=None, name="a")], [("", "a", "{}"), ("", "a", "{}")]),
    ],
    ids=["all repeated", "name repeated after a brace", "two of a name"],
)
async def test_a_name_that_is_repeated(events: list[Json], calls: list[tuple[str, str, str]]) -> None:
    assert calls_of(await parts_of(*events, END, "[DONE]")) == calls


@pytest.mark.parametrize(
    ("content", "text"), [(5, "5"), ([{"type": "text", "text": "Hi"}], "Hi"), (["a", {"x": 1}], "a")], ids=str
)
async def test_content_that_is_no_text(content: Json, text: str) -> None:
    parts = await parts_of({**_plain(chunk({"content": content})), "id": 7}, chunk({}, "stop"), "[DONE]")
    assert parts[0] == TextDelta(block=0, text=text)


async def test_arguments_that_are_an_object_under_an_id_that_is_a_number() -> None:
    made: Json = {"index": 0, "id": 7, "function": {"name": "a", "arguments": {"x": 1}}}
    assert calls_of(await parts_of(chunk({"tool_calls": [made]}), END, "[DONE]")) == [("7", "a", '{"x": 1}')]


def _plain(made: Json) -> dict[str, Json]:
    assert isinstance(made, dict)
    return made
