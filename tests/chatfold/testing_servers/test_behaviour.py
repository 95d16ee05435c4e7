"""When answers come and how they break off: gates, stalls, delays, cuts, failures, clients that hang up."""

import asyncio
import time
from collections.abc import Callable

import pytest

from chatfold.testing.servers import Answer, Drop, Fail, Gate, Part, Text, ToolCall
from tests.chatfold.testing_servers.kits import KITS, Heard, Kit

pytestmark = pytest.mark.parametrize("kit", KITS, ids=lambda kit: kit.name)
STREAM = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
TWELVE = "abcdefghijkl"


@STREAM
async def test_a_gate_before_the_answer(kit: Kit, stream: bool) -> None:
    gate = Gate()
    async with kit.server([Answer("Hello.", gate=gate)]) as server:
        asking = asyncio.create_task(kit.ask(server, stream=stream))
        await gate.reached()
        assert not asking.done()
        assert len(server.requests) == 1
        assert not server.requests[0].sent
        gate.release()
        assert (await asking).text == "Hello."
    # Noted by the server's thread after the last byte: the client may have read it before.
    assert server.requests[0].sent


@pytest.mark.parametrize("position", [0, 1, 2, 3, 99])
async def test_a_gate_after_some_chunks(kit: Kit, position: int) -> None:
    gate, heard = Gate(), Heard()
    async with kit.server([Answer(TWELVE, chunk_size=4, gate=gate, gate_after=position)]) as server:
        asking = asyncio.create_task(kit.ask(server, heard=heard))
        await gate.reached()
        expected = min(position, 3)
        await _until(lambda: len(heard.pieces) == expected, heard)
        assert heard.stop is None
        gate.release()
        assert (await asking).text == TWELVE
        assert len(heard.pieces) == 3


async def test_chunks_are_counted_across_parts(kit: Kit) -> None:
    gate, heard = Gate(), Heard()
    parts: list[Part] = [Text("abcd"), ToolCall("add", '{"a":1}')]
    async with kit.server([Answer(parts, chunk_size=4, gate=gate, gate_after=2)]) as server:
        asking = asyncio.create_task(kit.ask(server, heard=heard))
        await gate.reached()
        await _until(lambda: heard.pieces == ["abcd", '{"a"'], heard)
        gate.release()
        assert [name for name, _ in (await asking).calls.values()] == ["add"]


async def test_a_stall_keeps_the_connection_until_released(kit: Kit) -> None:
    answer, heard = Answer(TWELVE, chunk_size=4, stall_after=1), Heard()
    async with kit.server([answer]) as server:
        asking = asyncio.create_task(kit.ask(server, heard=heard))
        await answer.stall.reached()
        await _until(lambda: heard.pieces == ["abcd"], heard)
        assert not asking.done()
        answer.stall.release()
        assert (await asking).text == TWELVE


async def test_a_client_that_gives_up_is_seen(kit: Kit) -> None:
    answer, heard = Answer(TWELVE, chunk_size=4, stall_after=1), Heard()
    async with kit.server([answer, Answer("Again.")]) as server:
        asking = asyncio.create_task(kit.ask(server, heard=heard))
        await answer.stall.reached()
        asking.cancel()
        await asyncio.wait({asking})
        request = server.requests[0]
        await request.hung_up.wait()
        await request.ended.wait()
        assert request.closed_early
        assert not request.sent
        assert (await kit.ask(server)).text == "Again."
        assert not server.requests[1].closed_early


@pytest.mark.parametrize("position", [0, 1, 3, 99])
async def test_a_cut_stream(kit: Kit, position: int) -> None:
    heard = Heard()
    async with kit.server([Answer(TWELVE, chunk_size=4, cut_after=position)]) as server:
        with pytest.raises(kit.broken):
            await kit.ask(server, heard=heard)
        assert heard.pieces == ["abcd", "efgh", "ijkl"][:position]
        assert heard.stop is None
        await server.requests[0].ended.wait()
        assert not server.requests[0].sent
        assert not server.requests[0].closed_early


async def test_a_cut_answer_in_one_piece(kit: Kit) -> None:
    async with kit.server([Answer(TWELVE, cut_after=0)]) as server:
        with pytest.raises(kit.errors.APIConnectionError):
            await kit.ask(server, stream=False)


@STREAM
async def test_a_drop_before_any_answer(kit: Kit, stream: bool) -> None:
    gate = Gate()
    async with kit.server([Drop(gate=gate), Answer("Fine.")]) as server:
        asking = asyncio.create_task(kit.ask(server, stream=stream))
        await gate.reached()
        gate.release()
        with pytest.raises(kit.errors.APIConnectionError):
            await asking
        assert (await kit.ask(server, stream=stream)).text == "Fine."


async def test_a_failure_in_the_middle(kit: Kit) -> None:
    heard = Heard()
    failing = Answer(TWELVE, chunk_size=4, fail=Fail(529, "Too much to do."), fail_after=2)
    async with kit.server([failing]) as server:
        with pytest.raises(kit.errors.APIError, match="Too much to do"):
            await kit.ask(server, heard=heard)
        assert heard.pieces == ["abcd", "efgh"]


async def test_a_delay_comes_before_the_headers(kit: Kit) -> None:
    async with kit.server([Answer("Hello.", delay=0.05)]) as server:
        started = time.monotonic()
        await kit.ask(server)
        assert time.monotonic() - started >= 0.05


async def test_the_server_ends_while_an_answer_waits(kit: Kit) -> None:
    gate = Gate()
    async with kit.server([Answer("Hello.", gate=gate)]) as server:
        asking = asyncio.create_task(kit.ask(server))
        await gate.reached()
    with pytest.raises(kit.errors.APIConnectionError):
        await asking


async def test_one_client_asks_twice_over_one_connection(kit: Kit) -> None:
    async with kit.server([Answer("One."), Answer("Two.")]) as server, kit.client(server.base_url) as client:
        for expected in ("One.", "Two."):
            heard = Heard()
            await kit.read_stream(await kit.create(client)(**kit.body, stream=True), heard)
            assert heard.text == expected or "".join(heard.pieces) == expected


async def _until(condition: Callable[[], bool], heard: Heard) -> None:
    """Wait until the client has read what is on its way; the test's own timeout is the limit."""
    read = asyncio.Event()

    async def on_piece() -> None:
        read.set()

    heard.on_piece = on_piece
    while not condition():
        read.clear()
        await read.wait()
