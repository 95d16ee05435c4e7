"""Exceptions of SDKs and their transport, read as facts."""

from __future__ import annotations

import asyncio
import json

import httpx2
import pytest

from generation.errors import ClassifiedError, ProviderError
from generation.providers.sdk_errors import classified, facts_of

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
