"""The application of docs/web.md behind a real server: browsers come back where they were, and it ends when told to."""

from __future__ import annotations

import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2

from tests.chatfold.cli.kit import PROGRAM
from tests.e2e.web import LIMIT, Sent, Served, events_of, served, started


def ask(web: Served, text: str) -> str:
    made = web.client.post("/chats", json={"text": text})
    assert made.status_code == 201, made.text
    chat: str = made.json()["chat"]
    return chat


def look(web: Served, chat: str) -> dict[str, Any]:
    found: dict[str, Any] = web.client.get(f"/chats/{chat}").json()
    return found


def until(web: Served, chat: str, status: str, last: str | None = None) -> list[Sent]:
    """Follow a chat until an event says its status, then drop the connection."""
    told = []
    headers = {"Last-Event-ID": last} if last is not None else {}
    with web.client.stream("GET", f"/chats/{chat}/stream", headers=headers) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        for event in events_of(response):
            told.append(event)
            if event.data.get("status") == status:
                break
    return told


def versions(told: list[Sent]) -> list[int]:
    return [event.data["version"] for event in told if event.name == "event"]


def test_a_browser_comes_back_where_it_was(tmp_path: Path) -> None:
    with served(tmp_path) as web:
        chat = ask(web, "Please delete_record number 17.")
        before = until(web, chat, "requires_action")
        action = look(web, chat)["action"]
        (item,) = action["items"]
        assert (item["kind"], item["asked"]["arguments"]) == ("approval", '{"name":"Please delete_record number 17"}')
        answers = {"approvals": {item["call"]: True}}
        for _ in range(2):  # the second is the first again, sent after a lost answer
            sent = web.client.post(
                f"/chats/{chat}/actions/{action['id']}", json=answers, headers={"Idempotency-Key": "yes"}
            )
            assert sent.status_code == 202, sent.text
        after = until(web, chat, "waiting", before[-1].id)
        state = look(web, chat)
        assert versions(before) + versions(after) == list(range(1, state["version"] + 1))
        assert [part["output"] for message in state["messages"] for part in message["parts"] if "output" in part] == [
            "Please delete_record number 17 is gone"
        ]
        text = "".join(part["text"] for part in state["messages"][-1]["parts"])
        # Parts are best effort: a turn that ended before the browser was back shows none, one under way shows all.
        shown = "".join(part.data["text"] for part in after if part.name == "part" and part.data["kind"] == "text")
        assert shown in {"", text}


def test_a_cursor_that_is_none_begins_the_stream_anew(tmp_path: Path) -> None:
    with served(tmp_path) as web:
        chat = ask(web, "Hello.")
        until(web, chat, "waiting")
        told = until(web, chat, "waiting", "of-another-release")
    assert (told[0].name, told[0].id) == ("restart", "")
    assert versions(told)[0] == 1


def test_errors_have_statuses(tmp_path: Path) -> None:
    with served(tmp_path) as web:
        chat = ask(web, "Hello.")
        until(web, chat, "waiting")
        post = web.client.post
        assert web.client.get("/chats/nobody").status_code == 404
        assert web.client.get(f"/chats/{chat}", headers={"X-User": "eve"}).status_code == 404
        assert web.client.get(f"/chats/{chat}/stream", headers={"X-User": "eve"}).status_code == 404
        assert post(f"/chats/{chat}/messages", content=b"{").status_code == 400
        assert post(f"/chats/{chat}/messages", json={"text": " "}).status_code == 422
        wrong = {"files": [{"media_type": "image/png", "data": "SGVsbG8="}]}
        assert "no image/png" in post(f"/chats/{chat}/messages", json=wrong).json()["reason"]
        large = {"files": [{"media_type": "text/plain", "data": "A" * (16 << 20)}]}
        assert post(f"/chats/{chat}/messages", json=large).status_code == 413
        keyed = {"Idempotency-Key": "one"}
        assert post(f"/chats/{chat}/messages", json={"text": "One."}, headers=keyed).status_code == 202
        assert post(f"/chats/{chat}/messages", json={"text": "Two."}, headers=keyed).json()["code"] == (
            "idempotency_conflict"
        )


def test_it_ends_in_time_with_an_open_stream(tmp_path: Path) -> None:
    with served(tmp_path) as web:
        chat = ask(web, "Please pick_colour.")
        with web.client.stream("GET", f"/chats/{chat}/stream") as response:
            events = events_of(response)
            next(event for event in events if event.data.get("status") == "requires_action")
            web.process.send_signal(signal.SIGTERM)
            with suppress(httpx2.RemoteProtocolError):  # where the server cut it
                assert list(events) == []
            web.process.wait(timeout=LIMIT + 10)
        assert web.process.stderr is not None
        said = web.process.stderr.read().decode()
    assert "Application shutdown complete." in said
    assert "graceful shutdown exceeded" not in said, "the stream was cut by the limit, not ended"
    assert "Traceback" not in said


def test_workers_in_a_process_of_their_own(tmp_path: Path) -> None:
    with served(tmp_path, WEB_RUNS_CHATS="0") as web:
        chat = ask(web, "Please pick_colour.")
        assert look(web, chat)["status"] == "pending"
        worker = [*PROGRAM, "worker", "--engine", "myservice:make_engine"]
        with started(tmp_path, worker) as process:
            told = until(web, chat, "requires_action")
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=20) == 0
        assert all(event.name == "event" for event in told)
