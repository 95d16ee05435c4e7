"""What a broken service of hooks sends: each failure is told as one, in its time, and nothing is let through."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from generation.errors import AgentDeclarationError, HookFailed
from generation.hooks.contract import MOST
from generation.hooks.dispatch import Hooks
from generation.hooks.http import HttpHook

OK = b"HTTP/1.1 200 OK\r\n"


@asynccontextmanager
async def serving(sent: bytes, *, then: str = "close") -> AsyncGenerator[str]:
    """Answer each request with these bytes, then close the connection, reset it, go on for ever or say nothing more."""
    over = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(sent)
            match then:
                case "reset":
                    writer.transport.abort()
                case "endless":
                    while not writer.is_closing():
                        writer.write(b" " * 65536)
                        await writer.drain()
                case "silence":
                    await over.wait()
                case _:
                    await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"
        over.set()


def whole(body: bytes, *headers: bytes) -> bytes:
    lines = (OK, *(header + b"\r\n" for header in headers), b"content-length: %d\r\n\r\n" % len(body))
    return b"".join((*lines, body))


async def asked(url: str, timeout: float = 10.0) -> tuple[str, ...]:
    hooks = Hooks([HttpHook(url, ["stop"], timeout=timeout)])
    return (await hooks.ask("stop", "c1", "1", {"text": "Done. \U0001f600"})).contexts


BROKEN = {
    "closed at once": (b"", "close", "RemoteProtocolError"),
    "reset": (b"", "reset", "Error"),
    "half of the headers": (b"HTTP/1.1 200 OK\r\ncont", "close", "RemoteProtocolError"),
    "no HTTP": (b"\x00\x01 nonsense\r\n\r\n", "close", "RemoteProtocolError"),
    "half of the body": (OK + b"content-length: 100\r\n\r\n{}", "close", "RemoteProtocolError"),
    "broken chunks": (OK + b"transfer-encoding: chunked\r\n\r\nzz\r\n", "close", "RemoteProtocolError"),
    "headers without end": (OK + b"x: " + b"a" * MOST, "close", "Receive buffer too long"),
    "a body without end": (OK + b"\r\n", "endless", f"more than {MOST} bytes"),
    "a body that unpacks to too much": (
        whole(gzip.compress(b" " * (32 * MOST)), b"content-encoding: gzip"),
        "close",
        f"more than {MOST} bytes",
    ),
    "not packed as it says": (whole(b"abc", b"content-encoding: gzip"), "close", "DecodingError"),
    "moved": (b"HTTP/1.1 301 Moved\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n", "close", "301"),
    "no text": (whole(b'{"context":"\xe9"}'), "close", "no JSON"),
    "half a character": (whole(b'{"context":"\\ud83d"}'), "close", "lone surrogate"),
    "no number": (whole(b'{"context":NaN}'), "close", "nan is no JSON number"),
    "said twice": (whole(b'{"context":"a","context":"b"}'), "close", "twice"),
    "nested without end": (whole(b"[" * 500_000), "close", "nested too deep"),
    "nothing": (whole(b""), "close", "no JSON"),
    "null": (whole(b"null"), "close", "no object"),
}


@pytest.mark.parametrize("name", BROKEN)
async def test_what_is_broken_fails(name: str) -> None:
    sent, then, why = BROKEN[name]
    async with serving(sent, then=then) as url:
        with pytest.raises(HookFailed, match=why):
            await asked(url)


@pytest.mark.parametrize("sent", [b"", OK, OK + b"content-length: 9\r\n\r\n{"])
async def test_what_never_comes_fails_in_its_time(sent: bytes) -> None:
    async with serving(sent, then="silence") as url:
        with pytest.raises(HookFailed, match=r"0\.05 seconds|Timeout"):
            await asked(url, timeout=0.05)


GOOD = {
    "whole": whole('{"context": "Ja, \U0001f600."}'.encode()),
    "escaped": whole(b'{"context": "Ja, \\ud83d\\ude00."}'),
    "in chunks": OK + b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "announced": b"HTTP/1.1 103 Early Hints\r\n\r\n" + whole(b"{}"),
    "without a body": b"HTTP/1.1 204 No Content\r\n\r\n",
}


@pytest.mark.parametrize("name", GOOD)
async def test_what_is_well_formed_is_read(name: str) -> None:
    async with serving(GOOD[name]) as url:
        assert await asked(url) == (("Ja, \U0001f600.",) if name in ("whole", "escaped") else ())


@pytest.mark.parametrize(("name", "called"), [(None, "127.0.0.1:9"), ("policy", "policy")])
async def test_an_error_says_which_hook_it_was_and_not_its_address(name: str | None, called: str) -> None:
    hooks = Hooks([HttpHook("http://127.0.0.1:9/hook?token=secret", ["stop"], name=name)])
    with pytest.raises(HookFailed, match=f"^hook {called} at stop: ") as failed:
        await hooks.ask("stop", "c1", "1", {"text": "Done."})
    assert "secret" not in str(failed.value)


@pytest.mark.parametrize("name", ["", " ", "two\nlines", 3])
def test_a_name_is_a_text_on_one_line(name: Any) -> None:
    with pytest.raises(AgentDeclarationError, match="its name must be a text on one line"):
        HttpHook("http://127.0.0.1:9/hook", ["stop"], name=name)
