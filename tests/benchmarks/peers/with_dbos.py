"""DBOS: one workflow for each turn; each model call and each tool call is a durable step of it.

The user's message is the workflow's input, the three other messages are step outputs. It keeps no conversation: a
program would rebuild it from its workflows, or keep a table of its own, which is not counted here.
"""

from __future__ import annotations

import itertools
import logging
import uuid
from typing import Any, Final

from dbos import DBOS, SetWorkflowID

from tests.benchmarks.work import Texts

_TEXTS: Final = Texts()


@DBOS.step()
async def _model(kind: str) -> dict[str, Any]:
    if kind == "call":
        return {"role": "assistant", "tool_calls": [{"name": "lookup", "args": {"query": _TEXTS()}}]}
    return {"role": "assistant", "content": _TEXTS()}


@DBOS.step()
async def _lookup(arguments: dict[str, Any]) -> dict[str, Any]:
    del arguments
    return {"role": "tool", "content": _TEXTS()}


@DBOS.workflow()
async def _one_turn(message: dict[str, Any]) -> bool:
    del message
    asked = await _model("call")
    found = await _lookup(asked["tool_calls"][0]["args"])
    answer = await _model("answer")
    return bool(found and answer)


class OnPostgres:
    """On PostgreSQL."""

    name = "dbos, a workflow per turn"

    def __init__(self, url: str) -> None:
        self._url = url
        self._numbers = itertools.count()

    async def open(self) -> None:
        logging.getLogger("dbos").setLevel(logging.ERROR)
        DBOS(config={"name": "bench", "system_database_url": self._url, "log_level": "ERROR"})
        DBOS.launch()

    async def close(self) -> None:
        DBOS.destroy()

    async def new_chat(self) -> str:
        return f"chat_{next(self._numbers)}"

    async def turn(self, chat: str) -> None:
        with SetWorkflowID(f"{chat}-{uuid.uuid4().hex}"):
            assert await _one_turn({"role": "user", "content": _TEXTS()})


ON_POSTGRES: Final = (OnPostgres,)
ON_SQLITE: Final = ()
