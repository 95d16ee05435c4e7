"""What people do wrong at first gets an error that says what is wrong and what to do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from chatfold import Agent, Engine, GenerationError, InvalidValue, TransitionNotAllowed
from chatfold.testing import ScriptedProvider
from generation.errors import UnknownModel

AGENT = Agent(name="a", model="scripted")


@pytest.fixture
async def engine() -> AsyncIterator[Engine]:
    async with Engine("memory://", [AGENT]) as engine:
        await engine.create_chat("a", "Hi.", chat_id="c")
        await engine.settled("c")
        yield engine


@pytest.mark.parametrize(
    ("method", "given", "said"),
    [
        ("send_message", {"message": "Hi.", "busy": "wait"}, r"\$\.busy: must be queue or interrupt, not 'wait'"),
        ("send_message", {"message": " "}, r"\$\.message: the text is blank"),
        ("set_labels", {"labels": {"n": 1}}, r"\$\.labels\['n'\]: must be a text, not int"),
        ("set_retention", {"seconds": -5.0}, r"\$\.seconds: must be between 0 and 9e\+12, not -5\.0"),
        ("set_retention", {"seconds": float("nan")}, r"\$\.seconds: must be between"),
    ],
)
async def test_a_wrong_value_is_refused_with_its_path(
    engine: Engine, method: str, given: dict[str, Any], said: str
) -> None:
    before = await engine.events("c")
    with pytest.raises(InvalidValue, match=said):
        await getattr(engine, method)("c", **given)
    assert await engine.events("c") == before


async def test_a_chat_has_an_id_and_each_id_one_chat(engine: Engine) -> None:
    with pytest.raises(InvalidValue, match=r"\$\.chat_id: is empty"):
        await engine.create_chat("a", "Hi.", chat_id="")
    with pytest.raises(TransitionNotAllowed, match=r"^create refused: a chat of this id exists"):
        await engine.create_chat("a", "Hi.", chat_id="c")


def test_a_bare_function_is_no_tool() -> None:
    def add(a: int, b: int) -> int:
        return a + b

    with pytest.raises(GenerationError, match="tool 'add': is no Tool: decorate it with @tool"):
        Agent(name="a", tools=[add])  # type: ignore[list-item]


async def test_a_model_of_no_provider_is_refused_where_providers_are_known(engine: Engine) -> None:
    said = "model 'nowhere/any': there is no such provider; known here: anthropic, openai, openai-chat, scripted"
    for attempt in (
        engine.create_chat("a", "Hi.", chat_id="d", model="nowhere/any"),
        engine.send_message("c", "Hi.", model="nowhere/any"),
        engine.set_model("c", "nowhere/any"),
    ):
        with pytest.raises(UnknownModel, match=said):
            await attempt
    async with Engine("memory://", [AGENT], providers={"nowhere": ScriptedProvider(["Hi."])}) as own:
        await own.create_chat("a", "Hi.", chat_id="d", model="nowhere/any")
        assert (await own.settled("d")).control.status == "waiting"


async def test_a_model_of_no_provider_of_the_worker_fails_the_turn_and_says_so(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'chats.db'}"
    async with Engine(url, worker=False) as web, Engine(url, [AGENT]):
        await web.create_chat("a", "Hi.", chat_id="d", model="nowhere/any")
        error = (await web.settled("d")).control.last_error
    assert error is not None
    assert error.kind == "config"
    said = "model 'nowhere/any': there is no provider of that name; valid forms are anthropic/NAME"
    assert said in error.message.text


async def test_what_nobody_will_run_is_not_waited_for(engine: Engine) -> None:
    async with Engine("memory://", worker=False) as elsewhere:
        await elsewhere.create_chat("a", "Hi.", chat_id="p")
        log = await elsewhere.export_log("p")
    await engine.import_log(log)
    async with asyncio.timeout(10):
        assert (await engine.settled("p")).control.status == "pending"
