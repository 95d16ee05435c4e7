"""Debug records: for whom they are made, what they hold of real exchanges, what deletes them; they fail nothing."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from chatfold import Agent, Engine, Settings
from chatfold.observing import DebugRecord, DebugRecordNotFound, DebugRecords, DebugSink, DebugSwitch, FolderSink
from chatfold.observing.debug import MOST_WAITING
from chatfold.testing.servers import Answer, AnthropicServer, LoopbackServer, OpenAIChatServer, OpenAIResponsesServer
from chatfold.testing.servers import Fail as ServerFail
from generation.prompt_types import ModelRequest
from generation.providers.registry import ProviderSettings, make_provider
from generation.providers.script import Wait, turn
from generation.redaction import MARKER
from tests.chatfold.observing.kit import OVERLOADED, engine_of, said

KEY = "sk-of-the-test-1234"
SERVERS: dict[str, type[LoopbackServer]] = {
    "anthropic": AnthropicServer,
    "openai": OpenAIResponsesServer,
    "openai-chat": OpenAIChatServer,
}
PATHS = {"anthropic": "/v1/messages", "openai": "/v1/responses", "openai-chat": "/v1/chat/completions"}


@pytest.fixture
def sink(tmp_path: Path) -> FolderSink:
    return FolderSink(tmp_path / "records")


def all_of(sink: FolderSink, chat: str) -> list[DebugRecord]:
    return [sink.record(chat, name) for name in sink.names(chat)]


@asynccontextmanager
async def at_service(name: str, script: list[Answer | ServerFail], sink: DebugSink) -> AsyncIterator[Engine]:
    async with SERVERS[name](script) as server:
        provider = make_provider(name, ProviderSettings(base_url=server.base_url, api_key=KEY))
        agent = Agent(name="helper", model=f"{name}/model-one")
        settings = Settings(poll=0.05, model_retry_unit=0.01)
        async with Engine(
            "memory://", [agent], providers={name: provider}, settings=settings, observers=[DebugRecords(sink)]
        ) as engine:
            yield engine
        await provider.close()


@pytest.mark.parametrize("name", sorted(SERVERS))
async def test_an_exchange(name: str, sink: FolderSink) -> None:
    async with at_service(name, [Answer("Hello, ann.")], sink) as engine:
        chat = await said(engine, "Hi there.")
    (record,) = all_of(sink, chat)
    assert (record.state, record.owner, record.agent, record.turn) == ("completed", "ann", "helper", "1.0")
    assert (record.provider, record.model, record.kind, record.attempt) == (name, "model-one", "generate", 1)
    assert (record.label, record.endpoint) == (f"{name}/model-one", f"POST {PATHS[name]}")
    assert record.input_tokens > 0
    assert record.output_tokens > 0
    assert record.request is None
    (exchange,) = record.exchanges
    assert exchange.status == 200
    assert "Hi there." in json.dumps(exchange.body)
    assert exchange.response_body is not None
    assert "Hello, a" in str(exchange.response_body)
    hidden = [given for given, value in exchange.headers if value == MARKER]
    assert {given.lower() for given in hidden} == {"authorization"}
    kept = "".join(file.read_text() for file in sink._folder.rglob("*.json"))
    assert KEY not in kept


async def test_a_failure_and_a_retry(sink: FolderSink) -> None:
    script: list[Answer | ServerFail] = [ServerFail(529, f"Overloaded, {KEY}."), Answer("Hello.")]
    async with at_service("anthropic", script, sink) as engine:
        chat = await said(engine)
    failed, whole = all_of(sink, chat)
    assert (failed.state, failed.error, failed.status_code, failed.attempt) == ("error", "overloaded", 529, 1)
    assert (whole.state, whole.error, whole.attempt) == ("completed", None, 2)
    body = failed.exchanges[0].response_body
    assert isinstance(body, dict)
    assert KEY not in json.dumps(body)
    (run,) = sink.runs(chat)
    assert (run.turn, run.kind, run.steps, run.state) == ("1.0", "turn", 2, "completed")
    assert (run.label, run.endpoint) == ("anthropic/model-one", "POST /v1/messages")
    assert run.input_tokens == failed.input_tokens + whole.input_tokens


async def test_a_compressed_response_is_unpacked(sink: FolderSink) -> None:
    import gzip

    from tests.generation.providers.raw import raw_server

    body = gzip.compress(json.dumps({"error": {"message": "No.", "type": "invalid_request_error"}}).encode())
    headers = {"content-type": "application/json", "content-encoding": "gzip", "content-length": str(len(body))}
    async with raw_server(body, 400, headers) as url:
        provider = make_provider("anthropic", ProviderSettings(base_url=url, api_key=KEY))
        agent = Agent(name="helper", model="anthropic/model-one")
        async with Engine(
            "memory://", [agent], providers={"anthropic": provider}, observers=[DebugRecords(sink)]
        ) as engine:
            chat = await said(engine)
        await provider.close()
    (record,) = all_of(sink, chat)
    assert record.exchanges[0].response_body == {"error": {"message": "No.", "type": "invalid_request_error"}}


async def test_a_provider_without_a_wire(sink: FolderSink) -> None:
    async with engine_of(["Hello, ann."], [DebugRecords(sink)]) as engine:
        chat = await said(engine, "Hi there.")
    (record,) = all_of(sink, chat)
    assert record.exchanges == []
    assert (record.label, record.endpoint) == ("scripted/any", "")
    assert "Hi there." in json.dumps(record.request)
    assert record.request.keys() == set(ModelRequest.__struct_fields__)
    assert "Hello, ann." in json.dumps(record.answer)


async def test_an_interrupted_call(sink: FolderSink) -> None:
    never, reached = asyncio.Event(), asyncio.Event()
    async with engine_of([turn("One ", Wait(never, reached.set))], [DebugRecords(sink)]) as engine:
        chat = (await engine.create_chat("helper", owner="ann", message="Hello.")).chat
        await reached.wait()
        await engine.interrupt(chat)
        await engine.settled(chat)
    assert [record.state for record in all_of(sink, chat)] == ["interrupted"]


@pytest.mark.parametrize(
    ("of_chat", "of_owner", "default", "wanted"),
    [
        (None, None, None, False),
        (None, None, True, True),
        (None, None, False, False),
        (None, True, False, True),
        (None, False, True, False),
        (None, True, None, True),
        (True, False, False, True),
        (False, True, True, False),
    ],
)
def test_who_wants_records(of_chat: bool | None, of_owner: bool | None, default: bool | None, wanted: bool) -> None:
    switch = DebugSwitch(default=default)
    switch.chats |= {"c": of_chat} if of_chat is not None else {}
    switch.owners |= {"o": of_owner} if of_owner is not None else {}
    assert switch.wanted("c", "o") is wanted
    assert switch.wanted("other", "other") is bool(default)


async def test_what_nobody_wants_is_not_recorded(sink: FolderSink) -> None:
    records = DebugRecords(sink, enabled=None)
    async with engine_of(["One.", "Two.", "Three."], [records]) as engine:
        chat = await said(engine)
        records.switch.owners["ann"] = True
        await said(engine, "More.", chat)
        records.switch.chats[chat] = False
        await said(engine, "Again.", chat)
    assert [record.turn for record in all_of(sink, chat)] == ["7.0"]


async def test_the_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from generation.providers.scripted import ScriptedProvider

    monkeypatch.setenv("CHATFOLD_DEBUG_FOLDER", str(tmp_path / "here"))
    agent = Agent(name="helper", model="scripted/any")
    async with Engine("memory://", [agent], providers={"scripted": ScriptedProvider(["Hello."])}) as engine:
        chat = await said(engine)
    assert len(FolderSink(tmp_path / "here").names(chat)) == 1
    assert (tmp_path / "here" / f"chat-{chat}").stat().st_mode & 0o777 == 0o700
    assert next((tmp_path / "here").rglob("*.json")).stat().st_mode & 0o777 == 0o600


async def test_an_edit_deletes_what_came_after(sink: FolderSink) -> None:
    async with engine_of(["One.", "Two.", "Two again."], [DebugRecords(sink)]) as engine:
        chat = await said(engine)
        await said(engine, "More.", chat)
        state = await engine.state(chat)
        second = state.messages[2].id
        await engine.edit_message(chat, second, "Else.")
        await engine.settled(chat)
    kept = all_of(sink, chat)
    assert [("Two." in json.dumps(each.answer), "again" in json.dumps(each.answer)) for each in kept] == [
        (False, False),
        (False, True),
    ]


async def test_erasing_and_deleting_a_chat_deletes_its_records(sink: FolderSink) -> None:
    async with engine_of(["One.", "Two."], [DebugRecords(sink)]) as engine:
        erased, deleted = await said(engine), await said(engine)
        await engine.erase(erased, ["1.0"])
        await engine.delete(deleted)
    assert sink.names(erased) == sink.names(deleted) == ()


def record_of(chat: str = "c", history: int = 1, attempt: int = 1, began_at: int = 0, **given: object) -> DebugRecord:
    return DebugRecord(
        chat=chat,
        owner="o",
        agent="a",
        turn=f"{history}.0",
        history_version=history,
        attempt=attempt,
        kind="generate",
        provider="p",
        model="m",
        began_at=began_at,
        **given,  # type: ignore[arg-type]
    )


def test_a_step_whose_number_is_taken_has_the_next(sink: FolderSink) -> None:
    names = [sink.begin(record_of()) for _ in range(3)]
    assert len(set(names)) == 3
    assert list(sink.names("c")) == names


def test_a_call_without_an_end_is_abandoned_after_five_minutes(tmp_path: Path) -> None:
    now = 1_000_000_000
    sink = FolderSink(tmp_path, lambda: now)
    name = sink.begin(record_of(began_at=now))
    now += 300_000_000
    assert sink.record("c", name).state == "running"
    now += 1
    assert sink.record("c", name).state == "abandoned"
    assert sink.runs("c")[0].state == "abandoned"


def test_runs_are_summed_up_and_at_most_a_hundred_are_listed(sink: FolderSink) -> None:
    for history in range(1, 104):
        for attempt in (1, 2):
            began_at = history * 10 + attempt
            sink.begin(record_of(history=history, attempt=attempt, began_at=began_at, input_tokens=3, output_tokens=2))
    runs = sink.runs("c")
    assert len(runs) == 100
    assert (runs[0].turn, runs[-1].turn) == ("103.0", "4.0")
    assert (runs[0].steps, runs[0].input_tokens, runs[0].output_tokens) == (2, 6, 4)


@pytest.mark.parametrize("name", ["none", "../c/x", "", "000000000001-000001-2"])
def test_what_is_not_there_is_not_found(sink: FolderSink, name: str) -> None:
    sink.begin(record_of())
    with pytest.raises(DebugRecordNotFound, match="no debug record"):
        sink.record("c", name)


def test_a_chat_of_which_nothing_was_recorded_has_no_runs(sink: FolderSink) -> None:
    assert sink.runs("other") == []
    sink.begin(record_of())
    sink.forget("c", None, None)
    assert sink.runs("c") == []


@pytest.mark.parametrize("chat", ["..", ".", "a/b", "../../etc", "ä b", "*"])
def test_no_chat_leads_out_of_the_folder(tmp_path: Path, chat: str) -> None:
    sink = FolderSink(tmp_path / "records")
    name = sink.begin(record_of(chat))
    assert sink.record(chat, name).chat == chat
    assert [file.parent.parent for file in tmp_path.rglob("*.json")] == [tmp_path / "records"]
    sink.forget("other", None, None)
    assert sink.names(chat) == (name,)
    sink.forget(chat, None, None)
    assert sink.names(chat) == ()


def test_what_was_forgotten_does_not_come_back_with_its_end(sink: FolderSink) -> None:
    name = sink.begin(record_of(history=5))
    sink.forget("c", 6, None)
    assert sink.names("c") == (name,)
    sink.forget("c", 5, None)
    sink.end(name, record_of(history=5, state="completed"))
    assert sink.names("c") == ()


async def test_a_fault_within_a_call_is_recorded(sink: FolderSink, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr("generation.actions.streaming.require_consent", broken)
    async with engine_of(["One."], [DebugRecords(sink)]) as engine:
        chat = await said(engine)
        control = (await engine.state(chat)).control
    assert control.status == "error"
    assert control.last_error is not None
    assert control.last_error.detail is not None
    assert control.last_error.detail.value == "RuntimeError"
    assert [(record.state, record.error) for record in all_of(sink, chat)] == [("error", "generic")]


class Broken:
    """Fails at each call."""

    def begin(self, record: DebugRecord) -> str:
        raise OSError("no space left")

    def end(self, name: str, record: DebugRecord) -> None:
        raise OSError("no space left")

    def forget(self, chat: str, since: int | None, before: int | None) -> None:
        raise OSError("no space left")

    def chats(self) -> Mapping[str, int]:
        raise OSError("no space left")


async def test_a_sink_that_fails_fails_no_chat(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        async with engine_of([turn(OVERLOADED), "One.", "Two."], [DebugRecords(Broken())]) as engine:
            chat = await said(engine)
            await engine.edit_message(chat, "1.0", "Else.")
            await engine.settled(chat)
            control = (await engine.state(chat)).control
    assert control.status == "waiting"
    assert control.last_error is None
    said_so = [record for record in caplog.records if record.getMessage() == "debug_record_failed"]
    assert len(said_so) == 1
    assert "no space left" in str(vars(said_so[0])["error"])


class Hanging(Broken):
    """Waits at the first call until it is let go."""

    def __init__(self) -> None:
        self.go = threading.Event()

    def begin(self, record: DebugRecord) -> str:
        self.go.wait()
        return "name"

    def end(self, name: str, record: DebugRecord) -> None:
        return


async def test_a_sink_that_hangs_holds_up_no_chat(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chatfold.observing.debug.ENDING", 0.05)
    sink = Hanging()
    turns = MOST_WAITING // 2 + 5
    with caplog.at_level(logging.WARNING):
        async with engine_of([f"Answer {number}." for number in range(turns)], [DebugRecords(sink)]) as engine:
            chat = await said(engine)
            for _ in range(turns - 1):
                await said(engine, "More.", chat)
            assert (await engine.state(chat)).control.turns == turns
    sink.go.set()
    told = [record.getMessage() for record in caplog.records]
    assert "debug_record_dropped" in told
    assert "debug_records_left" in told


async def test_reading_and_verifying_records_nothing(sink: FolderSink) -> None:
    from chatfold.verification import verify_chat

    async with engine_of(["One."], [DebugRecords(sink)]) as engine:
        chat = await said(engine)
        await verify_chat(engine.store, chat)
        await engine.state(chat, at=2)
    assert len(sink.names(chat)) == 1
