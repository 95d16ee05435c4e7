"""What tests of hooks share: hooks that give answers in turn, and a tool that a person approves."""

from __future__ import annotations

import json
from typing import Any

from chatfold import tool
from chatfold.hooks import Hook, HookAnswer, HookCall, HookEvent, PythonHook
from chatfold.testing.servers import Answer, ToolCall
from events.parts import HookContextPart
from events.state import ChatState
from store.loading import read_recorded
from tests.e2e.kit import Scene


@tool(name="add", needs_approval=True)
def careful(a: int, b: int) -> int:
    """Add two numbers, once a person allows it."""
    return a + b


CALL = Answer([ToolCall("add", {"a": 1, "b": 2})])


class Recording:
    """A hook that gives answers in turn, then observes, and keeps what it was told."""

    def __init__(self, *answers: HookAnswer | Exception) -> None:
        self.calls: list[HookCall] = []
        self._answers = list(answers)

    def at(self, *events: HookEvent) -> Hook:
        return PythonHook(self._ask, events)

    async def _ask(self, call: HookCall) -> HookAnswer | None:
        self.calls.append(call)
        answer = self._answers.pop(0) if self._answers else None
        if isinstance(answer, Exception):
            raise answer
        return answer


def unreachable() -> Recording:
    return Recording(*[ConnectionError("down")] * 9)


def said(request: Any) -> str:
    return json.dumps(request.body, ensure_ascii=False)


def hooked(state: ChatState) -> list[tuple[str, str]]:
    messages = state.need_transcript("test").messages
    parts = [part for item in messages for part in item.message.parts]
    return [(part.event, part.text.text) for part in parts if isinstance(part, HookContextPart)]


async def versions(scene: Scene, chat: Any) -> int:
    return len(await read_recorded(scene.store, chat))


# The start of a chat, and messages.
