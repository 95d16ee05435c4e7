"""Which agents a command has: an application's, named as ``module:attribute``, or the built-in one.

Owns loading them and the built-in agent. Its model is each chat's own, so that any process can go on with the chat.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

from pydantic import ValidationError

from chatfold.cli.guard import UsageProblem, plain_words
from chatfold.engine import Engine
from chatfold.references import ReferenceProblem, find_object
from events.content import Json
from generation.agents import Agent
from generation.tools.contract import Tool, client_tool

BUILT_IN: Final = "assistant"
"""Name of the built-in agent."""


def current_time() -> str:
    """Return the current date and time, UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def built_in(*, interactive: bool = False) -> Agent:
    """Return the built-in agent; with a user at a prompt, it may ask."""
    tools = [Tool.from_function(current_time, crash="rerun")]
    if interactive:
        question: dict[str, Json] = {
            "type": "object",
            "properties": {"question": {"type": "string"}},
            "required": ["question"],
        }
        tools.append(client_tool("ask_user", "Ask the user a question that only a person can answer.", question))
    return Agent(name=BUILT_IN, tools=tools)


def load_agents(references: Sequence[str], *, interactive: bool = False) -> list[Agent]:
    """Return the agents that references name; the built-in one where there are none.

    Args:
        references: ``module:attribute`` each.
        interactive: Whether a user can be asked.

    Raises:
        UsageProblem: A reference names nothing that can be used; says what.
    """
    if not references:
        return [built_in(interactive=interactive)]
    return [agent for reference in references for agent in _load(reference)]


def load_engine(reference: str) -> Engine:
    """Return the engine that a reference names.

    Args:
        reference: ``module:attribute`` of an engine that is not entered, or of a function that returns one.

    Raises:
        UsageProblem: It names nothing of the kind; says what.
    """
    value = _named("--engine", reference, "myservice.engine:make_engine", Engine)
    if not isinstance(value, Engine):
        raise UsageProblem(f"--engine {reference} is no Engine, and no function that returns one")
    return value


def _named(option: str, reference: str, example: str, *kinds: type) -> object:
    """Return what a reference names, or what the function that it names returns.

    Raises:
        UsageProblem: It cannot be loaded.
    """
    try:
        value = find_object(reference)
        return value() if callable(value) and not isinstance(value, kinds) else value
    except ReferenceProblem as error:
        raise UsageProblem(f"{option} {error}, such as {example}") from error
    except (Exception, SystemExit) as error:
        raise UsageProblem(f"{option} {reference} cannot be loaded: {type(error).__name__}: {_said(error)}") from error


def _load(reference: str) -> list[Agent]:
    value = _named("--agents", reference, "myservice.agents:AGENTS", Agent, Tool)
    if isinstance(value, Tool):
        raise UsageProblem(f"--agents {reference} is a tool: name the agent that has it")
    if isinstance(value, Engine):
        raise UsageProblem(f"--agents {reference} is an engine: name its agents, or run `worker --engine {reference}`")
    found = [value] if isinstance(value, Agent) else list(value) if isinstance(value, Iterable) else []
    agents = [each for each in found if isinstance(each, Agent)]
    if not agents or len(agents) != len(found):
        raise UsageProblem(f"--agents {reference} is no Agent, no list of agents, and no function that returns them")
    return agents


def _said(error: BaseException) -> str:
    """Return an error's text; of pydantic's, which has a paragraph and a link for each, what is wrong and where."""
    if isinstance(error, ValidationError):
        return "; ".join(f"{'.'.join(map(str, each['loc']))}: {plain_words(each['msg'])}" for each in error.errors())
    return str(error)
