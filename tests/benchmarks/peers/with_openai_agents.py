"""OpenAI Agents SDK: ``Runner.run`` with a model that answers at once, a function tool and a session; tracing is off.

A session stores items after the run: the run itself could not be taken up by another process.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import psycopg.conninfo
from agents import (
    Agent,
    ModelResponse,
    RunConfig,
    Runner,
    SQLiteSession,
    Usage,
    function_tool,
    set_tracing_disabled,
)
from agents.extensions.memory import SQLAlchemySession
from agents.models.interface import Model
from agents.testing import assistant_message, function_call
from sqlalchemy.ext.asyncio import create_async_engine

from tests.benchmarks.work import Texts

_TEXTS: Final = Texts()
_NUMBERS: Final = itertools.count()
set_tracing_disabled(True)


class _Instant(Model):
    async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> ModelResponse:
        del system_instructions
        number, last = next(_NUMBERS), input[-1] if isinstance(input, list) else {}
        if last.get("type") == "function_call_output":
            output = assistant_message(_TEXTS(), item_id=f"msg_{number}")
        else:
            output = function_call("lookup", {"query": _TEXTS()}, call_id=f"call_{number}", item_id=f"fc_{number}")
        return ModelResponse(output=[output], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("answers are not streamed here")


@function_tool
async def lookup(query: str) -> str:
    """Look something up."""
    del query
    return _TEXTS()


_AGENT: Final = Agent(name="bench", instructions="Be brief.", model=_Instant(), tools=[lookup])
_CONFIG: Final = RunConfig(tracing_disabled=True)


class _Sdk:
    async def turn(self, chat: Any) -> None:
        answered = await Runner.run(_AGENT, _TEXTS(), session=chat, run_config=_CONFIG)
        assert len(answered.new_items) == 3


class OnPostgres(_Sdk):
    """With its SQLAlchemy session over asyncpg."""

    name = "openai-agents, SQLAlchemySession"

    def __init__(self, url: str) -> None:
        given = psycopg.conninfo.conninfo_to_dict(url)
        place = f"host={quote(str(given['host']), safe='')}&port={given.get('port') or 5432}"
        self._url = f"postgresql+asyncpg://{given['user']}@/{given['dbname']}?{place}"

    async def open(self) -> None:
        self._engine = create_async_engine(self._url, pool_size=8, max_overflow=0)
        await SQLAlchemySession("setup", engine=self._engine, create_tables=True).get_items()

    async def close(self) -> None:
        await self._engine.dispose()

    async def new_chat(self) -> Any:
        return SQLAlchemySession(f"s{next(_NUMBERS)}", engine=self._engine)


class OnSqlite(_Sdk):
    """With its session on a SQLite file."""

    name = "openai-agents, SQLiteSession"

    def __init__(self, folder: Path) -> None:
        self._path = folder / "openai-agents.db"
        self._sessions: list[Any] = []

    async def open(self) -> None:
        self._sessions.clear()

    async def close(self) -> None:
        for session in self._sessions:
            session.close()

    async def new_chat(self) -> Any:
        session = SQLiteSession(f"s{next(_NUMBERS)}", self._path)
        self._sessions.append(session)
        return session


ON_POSTGRES: Final = (OnPostgres,)
ON_SQLITE: Final = (OnSqlite,)
