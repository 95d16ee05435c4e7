"""Titles and turn labels: written beside the turns, paid by the chat, and in nobody's way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Any

import pytest

from chatfold import (
    Agent,
    ChatQuery,
    Engine,
    EventItem,
    InvalidValue,
    ModelConfig,
    Prices,
    Settings,
    TransitionNotAllowed,
    UnknownAgent,
    client_tool,
)
from chatfold.naming import TitleNotProposed, Titles
from chatfold.testing import Fail, ModelRequest, ScriptedProvider, Turn, UseTool, Wait, turn
from events.envelope import Recorded
from events.ids import ChatId
from events.messages import Step
from events.state import ChatState
from events.vocabulary import SideCallRecorded, TitleChanged, TurnLabelChanged
from generation.errors import ClassifiedError, UnknownModel
from generation.naming import LABEL_SYSTEM, TITLE_SYSTEM
from generation.side_calls import Question, ask
from generation.side_jobs import SideJobs
from generation.titles import title_of

BUSY = ClassifiedError(kind="overloaded", message="Busy.", retryable=True, status_code=529)
REFUSED = ClassifiedError(kind="auth", message="No.", status_code=401)
MODEL = ModelConfig(provider="scripted", name="m", prices=Prices(input=3, output=15))
CHEAP = ModelConfig(provider="scripted", name="cheap")

Said = str | Turn

show = client_tool("show", "Show.", {"type": "object", "properties": {"text": {"type": "string"}}})


class Models:
    """Models that answer turns, and write titles and labels as they are told; the last word stays."""

    def __init__(
        self, titles: Sequence[Said] = ("Paris weather",), labels: Sequence[Said] = ("Told the weather",), **more: Said
    ) -> None:
        self.titles, self.labels = list(titles), list(labels)
        self.turn = more.get("turn", "It is sunny.")
        self.asked: list[tuple[str, str]] = []
        self.requests: list[ModelRequest] = []
        self.provider = ScriptedProvider(self.answer)

    def answer(self, request: ModelRequest) -> Said:
        kind = {TITLE_SYSTEM: "title", LABEL_SYSTEM: "label"}.get("".join(request.system), "turn")
        self.asked.append((kind, request.model))
        self.requests.append(request)
        if kind == "turn":
            return self.turn
        said = self.titles if kind == "title" else self.labels
        return said.pop(0) if len(said) > 1 else said[0]

    def engine(self, titles: Titles | None = None, url: str = "memory://", **agent: Any) -> Engine:
        helper = Agent(name="helper", model=MODEL, titles=titles, **agent)
        settings = Settings(model_retry_unit=0.0001)
        return Engine(url, [helper], providers={"scripted": self.provider}, settings=settings)


@pytest.mark.parametrize("titles", [Titles(model="nope/x"), Titles(cheap=["anthropic/y", "nope/x"])])
async def test_a_provider_that_there_is_not_is_refused_when_the_engine_opens(titles: Titles) -> None:
    helper = Agent(name="helper", model="scripted/any", titles=titles)
    engine = Engine("memory://", [helper], providers={"scripted": ScriptedProvider([])})
    with pytest.raises(UnknownModel, match=r"nope/x.*no such provider for titles; known here: scripted, "):
        await engine.__aenter__()


async def until(engine: Engine, chat: str, met: Callable[[Recorded], bool]) -> Recorded:
    """Wait for an event."""
    async with asyncio.timeout(20), aclosing(engine.stream(chat)) as items:
        async for item in items:
            if isinstance(item, EventItem) and met(item.recorded):
                return item.recorded
    raise AssertionError("a stream never ends")


async def labelled(engine: Engine, chat: str, count: int = 1) -> ChatState:
    """Wait until so many turns are labelled, which comes after the title."""
    left = count

    def met(recorded: Recorded) -> bool:
        nonlocal left
        left -= isinstance(recorded.event, TurnLabelChanged)
        return left == 0

    await until(engine, chat, met)
    return await engine.state(chat)


def texts(state: ChatState) -> tuple[str | None, str | None]:
    transcript = state.need_transcript("a test")
    title, label = transcript.title, transcript.turn_label
    return (None if title is None else title.text, None if label is None else label.text)


async def side_calls(engine: Engine, chat: str) -> list[SideCallRecorded]:
    return [each.event for each in await engine.events(chat) if isinstance(each.event, SideCallRecorded)]


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres"])
async def test_a_chat_is_named_after_its_first_turn_and_each_turn_is_labelled(
    kind: str, request: pytest.FixtureRequest
) -> None:
    urls = {"sqlite": "sqlite_url", "postgres": "postgres_url"}
    url = "memory://" if kind == "memory" else request.getfixturevalue(urls[kind])
    models = Models(titles=[' "Paris\n weather" '], labels=["Told the weather.", "Told it again"])
    async with models.engine(Titles(), url) as engine:
        chat = (await engine.create_chat("helper", "What is the weather in Paris?")).chat
        assert texts(await labelled(engine, chat)) == ("Paris weather", "Told the weather")
        await engine.send_message(chat, "And now?")
        state = await labelled(engine, chat, 2)
        assert texts(state) == ("Paris weather", "Told it again")
        assert [kind for kind, _ in models.asked] == ["turn", "title", "label", "turn", "label"]
        assert [call.kind for call in await side_calls(engine, chat)] == ["title", "label", "label"]
        (header,) = await engine.list_chats(ChatQuery())
        assert header.title == "Paris weather"


async def test_what_they_cost_is_the_chats() -> None:
    models = Models()
    async with models.engine(Titles()) as engine:
        chat = (await engine.create_chat("helper", "Hi")).chat
        state = await labelled(engine, chat)
        ledger = await engine.costs(chat)
        assert (ledger.calls, ledger.unpriced) == (3, 0)
        assert (state.control.usage, state.control.cost_micros) == (ledger.usage, ledger.cost_micros)
        steps = [call.report.step for call in await side_calls(engine, chat)]
        assert all(step is not None and step.cost_micros for step in steps)


async def test_they_ask_for_little_and_without_tools() -> None:
    models = Models()
    async with models.engine(Titles(), tools=[show]) as engine:
        chat = (await engine.create_chat("helper", "Hi")).chat
        await labelled(engine, chat)
    _, title, label = models.requests
    assert [(each.max_output, each.tools, len(each.messages)) for each in (title, label)] == [(256, (), 1), (64, (), 1)]


async def test_without_titles_nothing_is_asked_and_nothing_recorded() -> None:
    models = Models()
    async with models.engine() as engine:
        chat = (await engine.create_chat("helper", "Hi")).chat
        await engine.settled(chat)
        await engine.send_message(chat, "More")
        state = await engine.settled(chat)
        assert texts(state) == (None, None)
        assert not await side_calls(engine, chat)
    assert {kind for kind, _ in models.asked} == {"turn"}


@pytest.mark.parametrize(("auto", "labels"), [(True, False), (False, True)])
async def test_each_can_be_had_alone(*, auto: bool, labels: bool) -> None:
    models = Models()
    async with models.engine(Titles(auto=auto, labels=labels)) as engine:
        chat = (await engine.create_chat("helper", "Hi")).chat
        await until(engine, chat, lambda each: isinstance(each.event, TitleChanged | TurnLabelChanged))
        await engine.settled(chat)
    assert [kind for kind, _ in models.asked] == ["turn", "title" if auto else "label"]


async def test_neither_moves_the_chat_in_lists_nor_touches_the_turns_appends() -> None:
    logs = []
    for titles in (None, Titles()):
        models = Models()
        async with models.engine(titles) as engine:
            chat = (await engine.create_chat("helper", "Hi")).chat
            await engine.settled(chat)
            before = (await engine.list_chats(ChatQuery()))[0]
            if titles is not None:
                await labelled(engine, chat)
                after = (await engine.list_chats(ChatQuery()))[0]
                assert (after.listed_at, after.updated_at) == (before.listed_at, before.updated_at)
            logs.append([(each.event.type, each.envelope.index) for each in await engine.events(chat)])
    without, with_titles = logs
    assert with_titles[: len(without)] == without
    assert with_titles[len(without) :] == [
        ("side_call_recorded", 0),
        ("title_changed", 1),
        ("side_call_recorded", 0),
        ("turn_label_changed", 1),
    ]


async def test_every_failure_leads_to_the_next_model_and_then_to_the_first_words() -> None:
    models = Models(titles=[turn(Fail(REFUSED)), "x" * 81], labels=["I did it", "Done"])
    async with models.engine(Titles(cheap=[CHEAP])) as engine:
        chat = (await engine.create_chat("helper", "one two three four five six seven")).chat
        assert texts(await labelled(engine, chat)) == ("one two three four five six\u2026", "Finished latest turn")
        calls = await side_calls(engine, chat)
    assert models.asked[1:] == [("title", "cheap"), ("title", "m"), ("label", "cheap"), ("label", "m")]
    # All are booked, whatever they were good for: the refused one, too, for its service told what the prompt took.
    assert [call.kind for call in calls] == ["title", "title", "label", "label"]


async def test_a_model_that_was_named_for_it_is_the_only_one() -> None:
    models = Models(titles=[turn(Fail(REFUSED))], labels=[turn(Fail(REFUSED))])
    async with models.engine(Titles(model=CHEAP)) as engine:
        chat = (await engine.create_chat("helper", "Hi")).chat
        assert texts(await labelled(engine, chat)) == ("Hi", "Finished latest turn")
    assert models.asked[1:] == [("title", "cheap"), ("label", "cheap")]


async def test_a_busy_model_is_asked_again() -> None:
    models = Models(titles=[turn(Fail(BUSY)), turn(Fail(BUSY)), "At last"])
    async with models.engine(Titles()) as engine:
        chat = (await engine.create_chat("helper", "Hi")).chat
        assert texts(await labelled(engine, chat))[0] == "At last"
    assert [kind for kind, _ in models.asked] == ["turn", "title", "title", "title", "label"]


async def test_a_turn_that_waits_for_its_client_is_labelled_without_a_model() -> None:
    models = Models(turn=turn(UseTool("show", {"text": "a"})))
    async with models.engine(Titles(auto=False), tools=[show]) as engine:
        chat = (await engine.create_chat("helper", "Hi")).chat
        assert texts(await labelled(engine, chat))[1] == "Waiting for user input"
        assert not await side_calls(engine, chat)


async def test_a_failed_turn_says_so_where_no_model_does() -> None:
    models = Models(turn=turn(Fail(REFUSED)), labels=["no"])
    async with models.engine(Titles(auto=False)) as engine:
        chat = (await engine.create_chat("helper", "Hi")).chat
        assert texts(await labelled(engine, chat))[1] == "Hit an error"


async def test_a_title_that_its_user_gave_meanwhile_stays() -> None:
    asked, go_on = asyncio.Event(), asyncio.Event()
    models = Models(titles=[turn(Wait(go_on, reached=asked.set), "Too late")])
    async with models.engine(Titles()) as engine:
        chat = (await engine.create_chat("helper", "Hi")).chat
        await asked.wait()
        await engine.set_title(chat, "Mine")
        go_on.set()
        assert texts(await labelled(engine, chat)) == ("Mine", "Told the weather")
        assert [call.kind for call in await side_calls(engine, chat)] == ["title", "label"]


async def test_a_chat_whose_user_goes_on_at_once_is_named_too() -> None:
    asked, go_on, running, answer = asyncio.Event(), asyncio.Event(), asyncio.Event(), asyncio.Event()
    models = Models(
        titles=[turn(Wait(go_on, reached=asked.set), "In time")],
        labels=["Told the weather", "Told it again"],
        turn=turn(Wait(answer, reached=running.set), "It is sunny."),
    )
    async with models.engine(Titles()) as engine:
        chat = (await engine.create_chat("helper", "First")).chat
        await running.wait()
        await engine.send_message(chat, "Queued")
        answer.set()
        await asked.wait()
        assert len((await engine.state(chat)).messages) == 4
        await engine.send_message(chat, "Sent while the title is written")
        await engine.settled(chat)
        go_on.set()
        await until(engine, chat, lambda each: isinstance(each.event, TitleChanged))
        assert texts(await engine.state(chat))[0] == "In time"
    named = [request.messages[0].text for request in models.requests if request.system == (TITLE_SYSTEM,)]
    assert named == ["The user's first message:\nFirst"]


async def test_of_two_workers_that_name_a_chat_one_does() -> None:
    models = Models(titles=["One title"])
    async with models.engine(Titles(labels=False)) as engine:
        worker = engine.worker
        assert worker is not None
        chat = (await engine.create_chat("helper", "Hi", title="Hi")).chat
        await engine.settled(chat)
        await until(engine, chat, lambda each: isinstance(each.event, TitleChanged))
        await engine.set_title(chat, None)
        loaded = await engine.runtime.journal.load(ChatId(chat), transcript=True)
        assert loaded is not None
        workers = [SideJobs(engine.runtime) for _ in range(2)]
        for jobs in workers:
            jobs.begin(ChatId(chat), loaded)
        left = 3

        def booked(each: Recorded) -> bool:
            nonlocal left
            left -= isinstance(each.event, SideCallRecorded)
            return left == 0

        await until(engine, chat, booked)
        for jobs in workers:
            await jobs.stop()
        titles = [each.event.title for each in await engine.events(chat) if isinstance(each.event, TitleChanged)]
        assert [None if title is None else title.text for title in titles] == ["One title", None, "One title"]


async def test_a_label_of_a_turn_that_is_not_the_latest_any_more_is_not_written() -> None:
    asked, go_on = asyncio.Event(), asyncio.Event()
    models = Models(labels=[turn(Wait(go_on, reached=asked.set), "Label of first"), "Label of second"])
    async with models.engine(Titles(auto=False)) as engine:
        chat = (await engine.create_chat("helper", "Hi")).chat
        await asked.wait()
        await engine.send_message(chat, "More")
        await engine.settled(chat)
        go_on.set()
        await labelled(engine, chat)
        labels = [each.event.label for each in await engine.events(chat) if isinstance(each.event, TurnLabelChanged)]
        assert [label.text for label in labels if label is not None] == ["Label of second"]
        assert len(await side_calls(engine, chat)) == 2


@pytest.mark.parametrize("gone", ["archive", "delete"])
async def test_a_chat_that_is_gone_when_its_title_comes_takes_none(gone: str, caplog: pytest.LogCaptureFixture) -> None:
    asked, go_on = asyncio.Event(), asyncio.Event()
    models = Models(titles=[turn(Wait(go_on, reached=asked.set), "Too late")])
    async with models.engine(Titles(labels=False)) as engine:
        worker = engine.worker
        assert worker is not None
        chat = (await engine.create_chat("helper", "Hi")).chat
        await asked.wait()
        await getattr(engine, gone)(chat)
        before = await engine.store.load_header(ChatId(chat))
        (work,) = worker._aside._tasks.values()
        go_on.set()
        await work
        after = await engine.store.load_header(ChatId(chat))
        assert (before and before.header.version) == (after and after.header.version)
    assert [record.getMessage() for record in caplog.records if record.levelname in ("WARNING", "ERROR")] == []


async def test_work_that_is_under_way_when_the_engine_stops_is_dropped() -> None:
    asked = asyncio.Event()
    models = Models(titles=[turn(Wait(asyncio.Event(), reached=asked.set), "Never")])
    engine = models.engine(Titles())
    async with asyncio.timeout(20), engine:
        chat = (await engine.create_chat("helper", "Hi")).chat
        await asked.wait()
        assert (await engine.settled(chat)).control.status == "waiting"
    assert [kind for kind, _ in models.asked] == ["turn", "title"]


async def test_a_title_is_proposed_of_the_whole_conversation_and_not_set() -> None:
    models = Models(titles=["`Weather of cities`"])
    async with models.engine() as engine:
        chat = (await engine.create_chat("helper", "Paris?", title="Mine")).chat
        for city in ("Rome?", "Oslo?", "Bonn?", "Bern?"):
            await engine.settled(chat)
            await engine.send_message(chat, city)
        before = await engine.settled(chat)
        assert await engine.propose_title(chat) == "Weather of cities"
        after = await engine.state(chat)
        assert texts(after)[0] == "Mine"
        assert after.control.updated_at == before.control.updated_at
        assert (await engine.costs(chat)).calls == 6
    shown = models.requests[-1].messages[0].text
    assert "User: Paris?\nAssistant: It is sunny.\n\n[turns left out: 1]\n\nUser: Oslo?" in shown
    assert "Rome?" not in shown
    assert shown.endswith("The user's latest message:\nBern?")


@pytest.mark.parametrize(
    ("first", "asked", "kind"),
    [
        (turn(Fail(REFUSED)), ["cheap"], "auth"),
        (turn("x" * 81), ["cheap"], "generic"),
        (turn(Fail(ClassifiedError(kind="timeout", message="Late."))), ["cheap", "m"], None),
        (turn(Fail(BUSY)), ["cheap"] * 25 + ["m"], None),
    ],
)
async def test_on_request_the_next_model_is_asked_only_after_what_may_pass(
    first: Turn, asked: list[str], kind: str | None
) -> None:
    models = Models(titles=[*[first] * asked.count("cheap"), "A title"])
    async with models.engine(Titles(auto=False, labels=False, cheap=[CHEAP])) as engine:
        chat = (await engine.create_chat("helper", "Hi")).chat
        await engine.settled(chat)
        if kind is None:
            assert await engine.propose_title(chat) == "A title"
        else:
            with pytest.raises(TitleNotProposed) as raised:
                await engine.propose_title(chat)
            assert raised.value.error.kind == kind
        assert [model for name, model in models.asked if name == "title"] == asked
        # Usage is booked where there is no title, too.
        assert len(await side_calls(engine, chat)) == len(asked)


async def test_models_that_all_take_too_long_are_a_timeout_and_each_has_its_own_time() -> None:
    models = Models(titles=[turn(Wait(asyncio.Event()), "Never")])
    question = Question(system=TITLE_SYSTEM, text="Hi", tokens=256, accept=title_of, any_error=False, deadline=0.01)
    spent: list[Step] = []
    async with models.engine() as engine:
        answer = await ask(engine.runtime, (CHEAP, MODEL), question, spent)
    assert answer.text == ""
    assert answer.error is not None
    assert (answer.error.kind, answer.error.message) == ("timeout", "The model did not answer within 0.01 seconds.")
    assert models.asked == [("title", "cheap"), ("title", "m")]
    assert [step.model for step in spent] == ["cheap", "m"]


async def test_a_caller_that_is_cancelled_ends_the_walk() -> None:
    asked = asyncio.Event()
    models = Models(titles=[turn(Wait(asyncio.Event(), reached=asked.set), "Never")])
    async with models.engine() as engine:
        chat = (await engine.create_chat("helper", "Hi")).chat
        await engine.settled(chat)
        task = asyncio.create_task(engine.propose_title(chat))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert models.asked.count(("title", "m")) == 1


async def test_a_caller_that_is_cancelled_already_asks_nobody() -> None:
    models = Models()
    question = Question(system=TITLE_SYSTEM, text="Hi", tokens=256, accept=title_of)

    async def work(engine: Engine) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.sleep(0)
        await ask(engine.runtime, (MODEL,), question, [])

    async with models.engine() as engine:
        with pytest.raises(asyncio.CancelledError):
            await asyncio.create_task(work(engine))
    assert models.asked == []


async def test_who_cannot_be_asked_for_a_title() -> None:
    models = Models()
    async with models.engine() as engine:
        chat = (await engine.create_chat("helper", "Hi")).chat
        await engine.settled(chat)
        await engine.archive(chat)
        with pytest.raises(TransitionNotAllowed, match="archived"):
            await engine.propose_title(chat)
        await engine.unarchive(chat)
        engine.runtime.agents = {}
        with pytest.raises(UnknownAgent):
            await engine.propose_title(chat)


@pytest.mark.parametrize(
    ("labels", "why"),
    [
        ({"a" * 64: "v" * 256, "0._/-Z": ""} | {str(i): "" for i in range(48)}, None),
        ({str(i): "" for i in range(51)}, "at most 50 labels"),
        ({"a" * 65: ""}, "1 to 64 letters"),
        ({"": ""}, "1 to 64 letters"),
        ({".a": ""}, "the first a letter or digit"),
        ({"a b": ""}, "1 to 64 letters"),
        ({"\u00e4": ""}, "1 to 64 letters"),
        ({"a": "v" * 257}, "257 characters, the limit is 256"),
    ],
)
async def test_labels_are_few_and_short(labels: dict[str, str], why: str | None) -> None:
    async with Models().engine() as engine:
        chat = (await engine.create_chat("helper")).chat
        if why is None:
            await engine.set_labels(chat, labels)
            assert (await engine.state(chat)).control.labels == labels
        else:
            with pytest.raises(InvalidValue, match=why):
                await engine.set_labels(chat, labels)


@pytest.mark.parametrize(("title", "why"), [(" ", "blank"), ("", "blank"), ("t" * 201, "the limit is 200")])
async def test_a_title_has_1_to_200_characters(title: str, why: str) -> None:
    async with Models().engine() as engine:
        chat = (await engine.create_chat("helper", title="t" * 200)).chat
        with pytest.raises(InvalidValue, match=why):
            await engine.set_title(chat, title)
        with pytest.raises(InvalidValue, match=why):
            await engine.create_chat("helper", title=title)
