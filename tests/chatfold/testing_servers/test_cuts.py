"""How a connection breaks off: closed, reset, or with the body ended as if it were whole."""

import httpx2
import pytest

from chatfold.testing.servers import Answer, Cut, Drop, Gate
from tests.chatfold.testing_servers.kits import KITS, Heard, Kit

pytestmark = pytest.mark.parametrize("kit", KITS, ids=lambda kit: kit.name)
TWELVE = "abcdefghijkl"


@pytest.mark.parametrize("cut", ["close", "reset"])
@pytest.mark.parametrize("position", [0, 1, 2, 3])
async def test_a_broken_connection_is_an_error(kit: Kit, cut: Cut, position: int) -> None:
    gate, heard = Gate(), Heard()

    async def read() -> None:
        if len(heard.pieces) == position:
            gate.release()

    heard.on_piece = read
    if position == 0:
        gate.release()
    answer = Answer(TWELVE, chunk_size=4, gate=gate, gate_after=position, cut_after=position, cut=cut)
    async with kit.server([answer]) as server:
        with pytest.raises((*kit.broken, httpx2.ReadError)):
            await kit.ask(server, heard=heard)
        assert heard.pieces == ["abcd", "efgh", "ijkl"][:position]
        assert heard.stop is None


@pytest.mark.parametrize("position", [0, 1, 2, 3])
async def test_a_body_that_ends_early_is_none_to_the_sdk(kit: Kit, position: int) -> None:
    heard = Heard()
    async with kit.server([Answer(TWELVE, chunk_size=4, cut_after=position, cut="end")]) as server:
        await kit.ask(server, heard=heard)
        assert heard.pieces == ["abcd", "efgh", "ijkl"][:position]
        assert heard.stop is None
        assert not server.requests[0].sent


async def test_frames_are_counted_too(kit: Kit) -> None:
    first, second = Heard(), Heard()
    answers = [Answer(TWELVE, chunk_size=4, cut_after_frames=count, cut="end") for count in (0, 99)]
    async with kit.server(answers) as server:
        await kit.ask(server, heard=first)
        await kit.ask(server, heard=second)
    assert (first.id, first.pieces) == ("", [])
    assert (second.stop is not None, len(second.pieces)) == (True, 3)


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_a_reset_in_place_of_an_answer(kit: Kit, stream: bool) -> None:
    async with kit.server([Drop(cut="reset"), Answer("Fine.")]) as server:
        with pytest.raises(kit.errors.APIConnectionError):
            await kit.ask(server, stream=stream)
        assert (await kit.ask(server, stream=stream)).text == "Fine."


@pytest.mark.parametrize("cut", ["close", "reset", "end"])
async def test_an_answer_in_one_piece(kit: Kit, cut: Cut) -> None:
    async with kit.server([Answer(TWELVE, cut_after=0, cut=cut)]) as server:
        with pytest.raises(kit.errors.APIConnectionError):
            await kit.ask(server, stream=False)
