"""Stand-ins for the agents of a log: what matters of their declarations, and is not in the recorded policy."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final

from pydantic import AfterValidator, TypeAdapter

from chatfold.rerunning.models import RecordedSource
from chatfold.rerunning.script import Script
from events.content import Json
from generation.agents import Agent
from generation.models import ModelConfig
from generation.tools.contract import Tool


class Agents(Mapping[str, Agent]):
    """The agents of a worker: those that are given, and one that says nothing for any other name.

    Args:
        given: Today's agents by name.
        source: Gives the stand-in for the context source of the agent of a name; None where it has none.
        script: The log.
    """

    def __init__(
        self, given: Mapping[str, Agent], source: Callable[[str], RecordedSource | None], script: Script
    ) -> None:
        self._given: Final = given
        self._source: Final = source
        self._models: Final = tuple(_keeping(provider, name) for provider, name in sorted(script.keeping))
        self._tools: Final = tuple(_asking(name, unfit) for name, unfit in sorted(script.asking.items()))
        self._silent: Final[dict[str, Agent]] = {}

    def __getitem__(self, name: str) -> Agent:
        """Return the agent of a name, with the log's context source."""
        agent = self._given.get(name) or self._silent.get(name)
        if agent is None:
            agent = self._silent[name] = Agent(name=name, models=self._models, tools=self._tools)
        there = copy.copy(agent)
        object.__setattr__(there, "context", self._source(name))
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

    def taken(value: dict[str, Any]) -> dict[str, Any]:
        if value in unfit:
            raise ValueError("they were not taken then")
        return value

    arguments: TypeAdapter[Any] = TypeAdapter(Annotated[dict[str, Any], AfterValidator(taken)])
    return Tool(name=name, description="", schema={"type": "object"}, runner="client", arguments=arguments)
