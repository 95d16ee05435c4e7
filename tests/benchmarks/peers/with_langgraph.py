"""LangGraph: the smallest agent loop (agent, tools, conditional edge) with its checkpointers, durability ``sync``.

``AsyncPostgresSaver`` holds a lock around each statement, so its fastest form for many chats is one saver for each chat
over a shared pool.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Annotated, Any, Final, TypedDict

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

from tests.benchmarks.work import Texts

_TEXTS: Final = Texts()
_NUMBERS: Final = itertools.count()


class _State(TypedDict):
    messages: Annotated[list[Any], add_messages]


async def _agent(state: _State) -> dict[str, Any]:
    number = next(_NUMBERS)
    if state["messages"][-1].type == "human":
        call = {"name": "lookup", "args": {"query": _TEXTS()}, "id": f"call_{number}", "type": "tool_call"}
        return {"messages": [AIMessage(content="", id=f"ai_{number}", tool_calls=[call])]}
    return {"messages": [AIMessage(content=_TEXTS(), id=f"ai_{number}")]}


async def _tools(state: _State) -> dict[str, Any]:
    call = state["messages"][-1].tool_calls[0]
    message = ToolMessage(content=_TEXTS(), id=f"tool_{next(_NUMBERS)}", tool_call_id=call["id"], name="lookup")
    return {"messages": [message]}


def _route(state: _State) -> str:
    return "tools" if getattr(state["messages"][-1], "tool_calls", None) else END


def _graph(saver: Any) -> Any:
    graph = StateGraph(_State)
    graph.add_node("agent", _agent)
    graph.add_node("tools", _tools)
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", _route, ["tools", END])
    graph.add_edge("tools", "agent")
    return graph.compile(checkpointer=saver)


class _LangGraph(ABC):
    @abstractmethod
    def _saver(self) -> Any:
        """Return the saver of a chat."""

    async def new_chat(self) -> Any:
        return _graph(self._saver()), {"configurable": {"thread_id": f"t{next(_NUMBERS)}"}}

    async def turn(self, chat: Any) -> None:
        graph, config = chat
        asked = {"messages": [HumanMessage(content=_TEXTS(), id=f"user_{next(_NUMBERS)}")]}
        answered = await graph.ainvoke(asked, config, durability="sync")
        assert answered["messages"][-1].type == "ai"


class OnPostgres(_LangGraph):
    """With its PostgreSQL checkpointer, a saver for each chat."""

    name = "langgraph, sync, a saver per chat"

    def __init__(self, url: str) -> None:
        self._url = url

    async def open(self) -> None:
        settings: dict[str, Any] = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
        self._pool = AsyncConnectionPool(self._url, kwargs=settings, min_size=8, max_size=8, open=False)
        await self._pool.open(wait=True)
        await AsyncPostgresSaver(self._pool).setup()

    async def close(self) -> None:
        await self._pool.close()

    def _saver(self) -> Any:
        return AsyncPostgresSaver(self._pool)


class OnSqlite(_LangGraph):
    """With its SQLite checkpointer."""

    name = "langgraph, sync"

    def __init__(self, folder: Path) -> None:
        self._opening = AsyncSqliteSaver.from_conn_string(str(folder / "langgraph.db"))

    async def open(self) -> None:
        self._opened = await self._opening.__aenter__()
        await self._opened.setup()

    async def close(self) -> None:
        await self._opening.__aexit__(None, None, None)

    def _saver(self) -> Any:
        return self._opened


ON_POSTGRES: Final = (OnPostgres,)
ON_SQLITE: Final = (OnSqlite,)
