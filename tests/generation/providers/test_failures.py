"""The three SDK providers when calls fail: each failure arrives classified, and nothing is retried behind our back."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path

import pytest

from chatfold.testing.servers import Answer, Drop, Fail, Reply
from generation.errors import ClassifiedError, ProviderError
from generation.providers.contract import Provider, TextDelta
from generation.providers.registry import ProviderSettings, make_provider
from tests.generation.providers.kit import NAMES, collect, request, serving

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("name", NAMES)]


async def failure(name: str, reply: Reply) -> ClassifiedError:
    async with serving(name, [reply]) as (server, provider):
        with pytest.raises(ProviderError) as caught:
            await collect(provider, request("hi"))
        assert len(server.requests) == 1
        return caught.value.error


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (400, "generic", False),
        (401, "auth", False),
        (403, "auth", False),
        (404, "generic", False),
        (408, "timeout", True),
        (429, "rate_limit", True),
        (500, "generic", True),
        (502, "timeout", True),
        (503, "timeout", True),
        (529, "overloaded", True),
    ],
)
async def test_statuses(name: str, status: int, kind: str, retryable: bool) -> None:
    error = await failure(name, Fail(status, type="some_error", code="some_code"))
    assert (error.kind, error.retryable, error.status_code) == (kind, retryable, status)
    assert error.provider == name
    assert error.detail == "A scripted failure."


async def test_retry_after_is_read(name: str) -> None:
    error = await failure(name, Fail(429, headers={"retry-after": "7"}))
    assert error.retry_after_us == 7_000_000


async def test_a_gateway_page_is_no_detail(name: str) -> None:
    error = await failure(name, Fail(502, body="<html><body>Bad Gateway</body></html>"))
    assert (error.kind, error.detail) == ("timeout", None)


async def test_a_dropped_connection_is_worth_a_retry(name: str) -> None:
    error = await failure(name, Drop())
    assert (error.kind, error.retryable, error.status_code) == ("timeout", True, None)


@pytest.mark.parametrize("cut_after", [0, 1, 3, 99])
async def test_a_cut_stream_is_worth_a_retry(name: str, cut_after: int) -> None:
    error = await failure(name, Answer("Hello, whoever you are.", cut_after=cut_after))
    assert (error.kind, error.retryable) == ("timeout", True)


@pytest.mark.parametrize(("status", "kind"), [(429, "rate_limit"), (500, "generic")])
async def test_an_error_within_the_stream(name: str, status: int, kind: str) -> None:
    error = await failure(name, Answer("Hello, whoever you are.", fail=Fail(status), fail_after=2))
    assert (error.kind, error.retryable) == (kind, True)


async def test_nobody_listens(name: str) -> None:
    provider = make_provider(name, ProviderSettings(base_url="http://127.0.0.1:1", api_key="k"))
    with pytest.raises(ProviderError) as caught:
        await collect(provider, request("hi"))
    await provider.close()
    assert (caught.value.error.kind, caught.value.error.retryable) == ("timeout", True)


async def test_a_key_that_cannot_be_sent_is_not_tried_again_and_not_shown(name: str) -> None:
    came, gone = bytearray(), asyncio.Event()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.extend(await reader.read())
        writer.close()
        await writer.wait_closed()
        gone.set()

    async with await asyncio.start_server(listen, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        provider = make_provider(name, ProviderSettings(base_url=url, api_key="mine\n123"))
        with pytest.raises(ProviderError) as caught:
            await collect(provider, request("hi"))
        await provider.close()
        await gone.wait()
    assert not came
    error = caught.value.error
    assert (error.kind, error.retryable) == ("generic", False)
    assert error.detail is not None
    assert error.detail.startswith("a header of the request cannot be sent")
    assert "mine" not in error.detail


async def test_a_silent_server_times_out(name: str) -> None:
    answer = Answer("Hello.", stall_after=1, chunk_size=2)
    async with serving(name, [answer]) as (server, _):
        provider = make_provider(name, ProviderSettings(base_url=server.base_url, api_key="k", timeout=0.2))
        with pytest.raises(ProviderError) as caught:
            await collect(provider, request("hi"))
        await provider.close()
        answer.stall.release()
    assert (caught.value.error.kind, caught.value.error.retryable) == ("timeout", True)


async def test_cancelling_closes_the_connection(name: str) -> None:
    answer = Answer("Hello, whoever you are.", stall_after=1)
    async with serving(name, [answer]) as (server, provider):

        async def read() -> None:
            async with aclosing(provider.stream(request("hi"))) as parts:
                async for part in parts:
                    assert not isinstance(part, Exception)

        task = asyncio.create_task(read())
        await answer.stall.reached()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.requests[0].hung_up.wait()
        answer.stall.release()


async def test_parts_before_a_cut_arrive(name: str) -> None:
    said: list[str] = []

    async def read(provider: Provider) -> None:
        async for part in provider.stream(request("hi")):
            said.extend([part.text] if isinstance(part, TextDelta) else [])

    async with serving(name, [Answer("Hello, whoever you are.", cut_after=2, chunk_size=6)]) as (_, provider):
        with pytest.raises(ProviderError):
            await read(provider)
    assert "".join(said) == "Hello, whoev"


@pytest.mark.parametrize("broken_profile", [False, True])
async def test_a_missing_key_is_named(
    name: str, broken_profile: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for variable in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    if broken_profile:
        monkeypatch.setenv("ANTHROPIC_PROFILE", "nowhere")
    provider = make_provider(name, ProviderSettings())
    with pytest.raises(ProviderError) as caught:
        await collect(provider, request("hi"))
    await provider.close()
    assert (caught.value.error.kind, caught.value.error.retryable) == ("missing_key", False)
