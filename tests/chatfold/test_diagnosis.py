"""Why a chat does not move: each reason by itself, from headers of real chats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from chatfold.diagnosis import PROMPT, Diagnosis, diagnose
from chatfold.engine import Engine
from chatstate.errors import ChatNotFound, QueueFull
from events.control import RunningAttempt, decode_control
from events.ids import WorkerId
from events.records import ActionItem, OpenAction
from generation.agents import Agent
from generation.providers.script import UseTool, turn
from generation.providers.scripted import ScriptedProvider
from generation.tools.contract import client_tool
from store.contract import LoadedHeader
from store.notes import LivingWorker, WorkerNote
from store.schema import READER_LEVEL

NOW = 10**15
HELPER = Agent(name="helper", model="scripted")
PICK = client_tool("pick_file", "Let the user pick.", {"type": "object", "properties": {}})


def worker(name: str = "w", *, lives: bool = True, **note: Any) -> LivingWorker:
    known = WorkerNote(**{"agents": ("helper",), "capacity": 3, "reader_level": READER_LEVEL, **note})
    return LivingWorker(worker=WorkerId(name), expires_at=NOW + 1 if lives else NOW - 7_000_000, note=known)


async def pending() -> LoadedHeader:
    async with Engine("memory://", worker=False) as engine:
        chat = (await engine.create_chat("helper", "Hello")).chat
        loaded = await engine.store.load_header(chat)
    assert loaded is not None
    return LoadedHeader(header=loaded.header, now=NOW, holder_alive=False)


async def said(
    workers: Sequence[LivingWorker] = (), *, alive: bool = False, header: dict[str, Any] | None = None, **control: Any
) -> Diagnosis:
    loaded = await pending()
    known = replace(decode_control(loaded.header.control), updated_at=NOW, recorded_at=NOW)
    changed = LoadedHeader(header=replace(loaded.header, **(header or {})), now=NOW, holder_alive=alive)
    return diagnose(changed, replace(known, **control), workers, None)


async def test_a_pending_chat_without_workers_is_the_operators_matter() -> None:
    found = await said()
    assert (found.acts, found.moving) == ("operator", False)
    assert "No worker is alive" in found.next
    assert "chatfold worker" in found.advice


async def test_a_dead_worker_is_no_worker() -> None:
    assert "No worker is alive" in (await said([worker(lives=False)])).next


async def test_workers_without_the_agent_are_named_with_what_they_have() -> None:
    found = await said([worker(agents=("other", "third"))])
    assert found.acts == "operator"
    assert "'helper'" in found.next
    assert "other, third" in found.next


async def test_a_chat_of_a_newer_release_wants_newer_workers() -> None:
    found = await said([worker()], header={"reader_level": READER_LEVEL + 1})
    assert found.acts == "operator"
    assert f"reader level {READER_LEVEL + 1}" in found.next
    assert found.advice == "Upgrade the workers."


async def test_a_chat_that_was_just_sent_to_goes_on_at_once() -> None:
    found = await said([worker()])
    assert (found.acts, found.moving, found.at, found.advice) == ("worker", True, NOW, "")


async def test_a_chat_that_waits_for_long_waits_for_capacity() -> None:
    found = await said([worker()], updated_at=NOW - PROMPT - 1)
    assert found.moving
    assert "room for 3 chats" in found.advice


async def test_a_retry_says_when() -> None:
    found = await said([worker()], not_before=NOW + 9, model_attempts=2)
    assert (found.at, found.next) == (NOW + 9, "Model attempt 3 is made.")


def running(**changes: Any) -> dict[str, Any]:
    attempt = RunningAttempt(attempt=1, kind="generate", started_at=NOW)
    return {"status": "running", "holder": WorkerId("w"), "epoch": 1, "running": attempt, **changes}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "waits for the model"),
        ({"interrupting": True}, "ends the turn"),
        ({"running": None}, "decides what comes next"),
        ({"running": RunningAttempt(attempt=1, kind="tools", started_at=NOW)}, "waits for a result"),
        ({"running": RunningAttempt(attempt=1, kind="compact", started_at=NOW)}, "summary"),
        ({"running": RunningAttempt(attempt=1, kind="context", started_at=NOW)}, "context"),
    ],
)
async def test_a_held_chat_is_its_holders_matter(changes: dict[str, Any], words: str) -> None:
    found = await said([worker()], alive=True, header={"holder": "w"}, **running(**changes))
    assert (found.acts, found.moving, found.lease_until) == ("worker", True, NOW + 1)
    assert words in found.next


@pytest.mark.parametrize(
    ("changes", "words"),
    [({}, "goes on"), ({"interrupting": True}, "finishes the interruption"), ({"takeovers": 2}, "fails the turn")],
)
async def test_a_dead_holder_is_followed_by_another(changes: dict[str, Any], words: str) -> None:
    found = await said([worker("v")], **running(**changes))
    assert found.moving
    assert words in found.next
    alone = await said([worker(lives=False)], header={"holder": "w"}, **running(**changes))
    assert (alone.acts, alone.lease_until) == ("operator", NOW - 7_000_000)


def asking(deadline: int, **changes: Any) -> dict[str, Any]:
    items = (ActionItem(kind="budget"),)
    action = OpenAction(id=7, deadline=deadline, on_expiry="end_turn", items=items)
    return {"status": "requires_action", "action": action, **changes}


async def test_an_open_action_is_the_clients_matter_until_its_deadline() -> None:
    found = await said(**asking(NOW + 5))
    assert (found.acts, found.at) == ("client", NOW + 5)
    assert "whether to spend more" in found.next
    assert "action 7" in found.advice


async def test_an_action_past_its_deadline_wants_a_worker() -> None:
    late = await said([worker()], **asking(NOW - 5))
    assert (late.acts, late.moving, late.at) == ("worker", True, NOW)
    stuck = await said(**asking(NOW - 5))
    assert stuck.acts == "operator"
    assert "the turn ends" in stuck.next


@pytest.mark.parametrize(("owed", "words"), [(True, "Resume"), (False, "Send a message")])
async def test_a_waiting_chat_is_its_users_matter(owed: bool, words: str) -> None:
    found = await said(status="waiting", owed=owed)
    assert (found.acts, found.moving, found.at) == ("user", False, None)
    assert found.advice.startswith(words)


async def test_an_archived_chat_says_so() -> None:
    assert "put away" in (await said(status="waiting", owed=False, archived=True)).next


async def test_a_foreign_chat_can_be_adopted() -> None:
    assert "chatfold adopt" in (await said(header={"foreign": True})).advice


async def test_an_impossible_header_is_to_be_repaired() -> None:
    found = await said(status="pending", holder=WorkerId("w"))
    assert (found.state, found.acts) == ("Invalid", "operator")
    assert "chatfold repair" in found.advice


async def test_the_engine_diagnoses_its_chats() -> None:
    pick = [turn(UseTool("pick_file"))]
    agent = Agent(name="helper", model="scripted", tools=[PICK])
    async with Engine("memory://", agents=[agent], providers={"scripted": ScriptedProvider(pick)}) as engine:
        chat = (await engine.create_chat("helper", "Hello")).chat
        await engine.settled(chat)
        found = await engine.diagnose(chat)
        assert found.acts == "client"
        assert "result of call" in found.next
        with pytest.raises(ChatNotFound):
            await engine.diagnose("none")


async def test_the_error_of_a_failed_turn_is_told() -> None:
    provider = ScriptedProvider([])
    async with Engine("memory://", agents=[HELPER], providers={"scripted": provider}) as engine:
        chat = (await engine.create_chat("helper", "Hello")).chat
        await engine.settled(chat)
        found = await engine.diagnose(chat)
    assert (found.acts, found.status) == ("user", "error")
    assert "config" in found.next


async def test_the_last_refusal_is_kept() -> None:
    async with Engine("memory://", worker=False) as engine:
        engine.queue_limit = 0
        chat = (await engine.create_chat("helper", "Hello")).chat
        with pytest.raises(QueueFull):
            await engine.send_message(chat, "More")
        await engine.refusals.close()
        found = await engine.diagnose(chat)
    assert found.refusal is not None
    assert (found.refusal.code, found.refusal.trigger, found.refusal.state) == ("queue_full", "send", "P0")
    assert "More" not in repr(found.refusal)
