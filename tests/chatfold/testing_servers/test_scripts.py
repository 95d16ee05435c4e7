"""Scripts: lists, functions, conversations by the user's text; and requests that no script answers."""

import asyncio
from typing import Any

import pytest

from chatfold.testing.servers import (
    Answer,
    Fail,
    Gate,
    RecordedRequest,
    Reply,
    ScriptByUserText,
    Text,
)
from tests.chatfold.testing_servers.kits import KITS, Kit

pytestmark = pytest.mark.parametrize("kit", KITS, ids=lambda kit: kit.name)


async def test_a_function(kit: Kit) -> None:
    def script(request: RecordedRequest) -> Reply:
        return Answer(f"{request.model} hears {request.user_texts[-1]}, stream {request.stream}")

    async with kit.server(script) as server:
        heard = await kit.ask(server, text="A word.", stream=False)
        assert heard.text == f"{kit.body['model']} hears A word., stream False"


async def test_an_async_function(kit: Kit) -> None:
    async def script(request: RecordedRequest) -> Reply:
        await asyncio.sleep(0)
        return Answer(f"Number {request.index}")

    async with kit.server(script) as server:
        assert [(await kit.ask(server)).text for _ in range(2)] == ["Number 0", "Number 1"]


async def test_conversations_by_text(kit: Kit) -> None:
    script = ScriptByUserText(
        {"first": [Answer("1"), Answer("2")], "the first": [Answer("longest wins")], "again": Answer("and again")},
        default=Fail(500),
    )
    async with kit.server(script) as server:
        asked = ["first", "again", "my first", "again", "at the first"]
        assert [(await kit.ask(server, text=text)).text for text in asked] == [
            "1",
            "and again",
            "2",
            "and again",
            "longest wins",
        ]
        with pytest.raises(kit.errors.InternalServerError):
            await kit.ask(server, text="else")
        assert server.refused == []


async def test_the_first_text_can_decide(kit: Kit) -> None:
    script = ScriptByUserText({"one": [Answer("A"), Answer("B")], "two": [Answer("C")]}, which="first")
    messages = [{"role": "user", "content": text} for text in ("one", "two")]
    async with kit.server(script) as server:
        await kit.post(server, {**kit.body, "input" if kit.name == "responses" else "messages": messages})
        assert server.requests[0].user_texts == ("one", "two")
        assert (await kit.ask(server, text="one")).text == "B"


async def test_a_script_at_its_end_refuses(kit: Kit) -> None:
    async with kit.server([Answer("One.")]) as server:
        await kit.ask(server)
        with pytest.raises(kit.errors.BadRequestError, match="none is left for request 1"):
            await kit.ask(server)
        assert [refusal.request.index for refusal in server.refused] == [1]


async def test_no_conversation_matches(kit: Kit) -> None:
    async with kit.server(ScriptByUserText({"a": Answer("A")})) as server:
        with pytest.raises(kit.errors.BadRequestError, match="no conversation of the script matches"):
            await kit.ask(server, text="x")


async def test_a_script_that_raises_is_told(kit: Kit) -> None:
    def script(request: RecordedRequest) -> Reply:
        raise KeyError(request.model)

    async with kit.server(script) as server:
        with pytest.raises(kit.errors.BadRequestError, match="the script's function raised KeyError"):
            await kit.ask(server)
        assert len(server.refused) == 1


async def test_waiting_for_requests(kit: Kit) -> None:
    async with kit.server([Answer("One."), Answer("Two.")]) as server:
        waiting = asyncio.create_task(server.wait_for_requests(2))
        await kit.ask(server)
        assert not waiting.done()
        await kit.ask(server)
        await waiting
        with pytest.raises(TimeoutError, match="request number 3"):
            await server.wait_for_requests(3, within=0.01)
        assert [request.path for request in server.requests] == [server.path] * 2
        assert server.requests[0].headers["authorization"] == "Bearer test"


async def test_wrong_urls_and_bodies(kit: Kit) -> None:
    async with kit.server([]) as server, kit.client(server.url) as client:
        with pytest.raises(kit.errors.NotFoundError, match="Invalid URL"):
            await client.post("/v9/elsewhere", cast_to=object, body={})
        with pytest.raises(kit.errors.APIStatusError) as caught:
            await client.get(server.path, cast_to=object)
        assert caught.value.status_code == 405
        for content in (b"{", b"[]", b'{"a": NaN}', b'{"a": "\\ud83d"}'):
            with pytest.raises(kit.errors.BadRequestError, match="JSON"):
                await client.post(server.path, cast_to=object, content=content)
        assert len(server.refused) == 6


@pytest.mark.parametrize(
    "wrong",
    [{"chunk_size": 0}, {"cut_after": -1}, {"gate_after": 1}, {"fail_after": -1}],
    ids=["size", "cut", "gate", "fail"],
)
def test_an_impossible_answer(kit: Kit, wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Answer([Text(kit.name)], **wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ([3], r"script\[0\] must be an Answer, a Fail or a Drop, not 3"),
        ([Answer("Hi."), "Hi."], r"script\[1\] must be an Answer"),
        ("Hi.", "a script is a list of replies"),
        (Answer("Hi."), "a script is a list of replies"),
        (Answer, "a script is a list of replies"),
        (None, "a script is a list of replies"),
    ],
    ids=["number", "text", "words", "answer", "class", "none"],
)
def test_what_is_no_script_is_refused_at_once(kit: Kit, wrong: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        kit.server(wrong)


async def test_a_function_that_gives_no_reply_is_told(kit: Kit) -> None:
    def script(_: RecordedRequest) -> Any:
        return "Hi."

    async with kit.server(script) as server:
        with pytest.raises(kit.errors.BadRequestError, match="what the script's function returns must be an Answer"):
            await kit.ask(server)


def test_what_is_no_part_is_refused(kit: Kit) -> None:
    wrong: Any = [Text(kit.name), "Hi."]
    with pytest.raises(TypeError, match=r"Answer.parts\[1\] must be one of Text, .*, not 'Hi.'"):
        Answer(wrong)
    wrong = Text(kit.name)
    with pytest.raises(TypeError, match=r"Answer\.parts must be a text or a list of parts"):
        Answer(wrong)


def test_a_gate_times_out_by_name(kit: Kit) -> None:
    with pytest.raises(TimeoutError, match=f"{kit.name}: the server's arrival: did not happen within"):
        Gate(kit.name).block_until_reached(within=0.01)
