"""Stand-ins for the agents of a log: what matters of their declarations, and is not in the recorded policy."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final

from pydantic import AfterValidator, TypeAdapter

from chatfold.rerunning.models import RecordedSource
from chatfold.rerunning.script import Script
from events.content import Json, same_json
from generation.agents import Agent
from generation.models import ModelConfig
from generation.tools.contract import Tool


class Agents(Mapping[str, Agent]):
    """The agents of a worker: those that are given, and one that says nothing for any other name.

    Args:
        given: Today's agents by name.
        source: Gives the stand-in for the context source of the agent of a name; None where it has none.
        script: The log.
        redacted: Whether its contents are made up: then no tool can say whether it takes the arguments of its calls.
    """

    def __init__(
        self,
        given: Mapping[str, Agent],
        source: Callable[[str], RecordedSource | None],
        script: Script,
        *,
        redacted: bool = False,
    ) -> None:
        self._given: Final = given
        self._source: Final = source
        self._models: Final = tuple(_keeping(provider, name) for provider, name in sorted(script.keeping))
        self._tools: Final = tuple(_asking(name, unfit) for name, unfit in sorted(script.asking.items()))
        self._unfit: Final = script.asking
        self._redacted: Final = redacted
        self._silent: Final[dict[str, Agent]] = {}

    def __getitem__(self, name: str) -> Agent:
        """Return the agent of a name, with the log's context source."""
        agent = self._given.get(name) or self._silent.get(name)
        if agent is None:
            agent = self._silent[name] = Agent(name=name, models=self._models, tools=self._tools)
        there = copy.copy(agent)
        object.__setattr__(there, "context", self._source(name))
        if self._redacted:
            object.__setattr__(there, "tools", tuple(map(self._taking, there.tools)))
        return there

    def _taking(self, declared: Tool) -> Tool:
        """Return a tool that takes the arguments which it took then, whatever it takes by its declaration.

        So does one that nobody was asked about then, and that asks today: what it took is no matter of the log.
        """
        there = copy.copy(declared)
        object.__setattr__(there, "arguments", _but(self._unfit.get(declared.name, ())))
        object.__setattr__(there, "function", _never)  # what a client gets is held to the letter of the declaration
        return there

    def __iter__(self) -> Iterator[str]:
        """Go through the names of the given ones."""
        return iter(self._given)

    def __len__(self) -> int:
        """Count the given ones."""
        return len(self._given)


def _keeping(provider: str, name: str) -> ModelConfig:
    return ModelConfig(provider=provider, name=name, options={"store": True})


def _asking(name: str, unfit: Sequence[Json]) -> Tool:
    """Return a tool that asks a client or a person, and takes all arguments but those that it did not take then."""
    return Tool(name=name, description="", schema={"type": "object"}, runner="client", arguments=_but(unfit))


def _but(unfit: Sequence[Json]) -> TypeAdapter[Any]:
    """Return what takes all arguments but some."""

    def taken(value: dict[str, Any]) -> dict[str, Any]:
        if any(same_json(value, each) for each in unfit):
            raise ValueError("they were not taken then")
        return value

    return TypeAdapter(Annotated[dict[str, Any], AfterValidator(taken)])


def _never() -> None:
    raise AssertionError("no tool is run")
