"""Exceptions of SDKs and their transport, read as facts."""

from __future__ import annotations

import asyncio
import json

import httpx2
import pytest

from events.content import Json
from generation.errors import ClassifiedError, ProviderError
from generation.providers.sdk_errors import classified, facts_of, reported

pytestmark = pytest.mark.anyio


def _sent(code: int | str, *, remote: bool = True) -> str:
    """An HTTP/2 stream that was reset, as the transport says it."""
    return f"<StreamReset stream_id:1, error_code:{code}, remote_reset:{remote}>"


@pytest.mark.parametrize(
    ("exc", "transport"),
    [
        (httpx2.ReadTimeout("x"), "timeout"),
        (httpx2.ConnectTimeout("x"), "timeout"),
        (httpx2.ReadError("x"), "reset"),
        (httpx2.ConnectError("x"), "reset"),
        (httpx2.RemoteProtocolError("x"), "reset"),
        (ConnectionResetError("x"), "reset"),
        (httpx2.LocalProtocolError("Illegal header value b'Bearer a\\nb'"), "misused"),
        (httpx2.LocalProtocolError("Can't send data when our state is ERROR"), "reset"),
        *((httpx2.RemoteProtocolError(_sent(code)), "reset") for code in (0, 2, 7, 8, 11)),
        *((httpx2.RemoteProtocolError(_sent(code)), "misused") for code in (1, 3, 4, 6, 9)),
        (httpx2.RemoteProtocolError(_sent("ErrorCodes.CANCEL")), "reset"),
        (httpx2.RemoteProtocolError(_sent(2, remote=False)), "misused"),
        (httpx2.RemoteProtocolError("<ConnectionTerminated error_code:0, last_stream_id:3>"), "reset"),
        (TimeoutError("x"), "deadline"),
        (json.JSONDecodeError("x", "", 0), "closed"),
        (asyncio.CancelledError(), "cancelled"),
        (ValueError("x"), "none"),
    ],
)
def test_what_the_connection_did(exc: BaseException, transport: str) -> None:
    assert facts_of(exc, "openai").transport == transport


def test_a_long_text_is_looked_through_once() -> None:
    assert facts_of(httpx2.RemoteProtocolError("<StreamReset " * 200_000), "openai").transport == "reset"


async def test_what_is_classified_already_passes() -> None:
    error = ProviderError(ClassifiedError(kind="config", message="x"))
    with pytest.raises(ProviderError) as caught:
        async with classified("openai"):
            raise error
    assert caught.value is error


async def test_a_defect_of_our_own_is_generic_and_keeps_its_cause() -> None:
    with pytest.raises(ProviderError) as caught:
        async with classified("openai"):
            raise KeyError("who")
    assert (caught.value.error.kind, caught.value.error.retryable) == ("generic", False)
    assert isinstance(caught.value.__cause__, KeyError)


async def test_a_cancellation_by_the_other_side_is_a_fault_of_the_transport() -> None:
    with pytest.raises(ProviderError) as caught:
        async with classified("openai"):
            raise asyncio.CancelledError
    assert (caught.value.error.kind, caught.value.error.retryable) == ("timeout", True)


async def test_a_cancellation_of_the_task_passes() -> None:
    started = asyncio.Event()

    async def call() -> None:
        async with classified("openai"):
            started.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(call())
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


class Answered(Exception):
    """What an SDK raises of an answer: its body as it was parsed."""

    def __init__(self, body: object) -> None:
        super().__init__("Error code: 400")
        self.status_code = 400
        self.body = body


SAID: Json = {"message": "Too long.", "code": "c"}


@pytest.mark.parametrize(
    ("body", "read"),
    [
        ({"error": SAID, "n": [1, 1.5, True, None]}, {"error": SAID, "n": [1, 1.5, True, None]}),
        ({"echo": "x" * 10_000_000, "error": SAID}, {"error": SAID}),
        ({"echo": ["x"] * 1_000_000, "error": SAID}, {"error": SAID}),
        ({"echo": dict.fromkeys(map(str, range(1_000_000)), 1), "error": SAID}, {"error": SAID}),
        ({"error": {"message": "x" * 10_000_000}}, {}),
        ({"code": 2**70, "type": object()}, {"code": None, "type": None}),
    ],
    ids=["small", "text", "list", "object", "message", "unknown"],
)
def test_no_more_of_a_body_is_read_than_64_kib(body: Json, read: dict[str, Json]) -> None:
    found = facts_of(Answered(body), "openai").body
    assert isinstance(found, dict)
    assert found.items() >= read.items()
    assert len(json.dumps(found)) < 6 * 64 * 1024


def test_a_deep_body_is_read_to_a_depth() -> None:
    body: Json = "x"
    for _ in range(100_000):
        body = [body]
    found, depth = facts_of(Answered(body), "openai").body, 0
    while isinstance(found, list):
        found, depth = found[0], depth + 1
    assert depth == 20


def test_a_long_report_within_a_stream_is_cut_before_it_is_looked_through() -> None:
    error = reported("openai", code="c", message="x" * 10_000_000 + " overloaded", now_us=0).error
    assert (error.kind, len(error.detail or "")) == ("generic", 500)
