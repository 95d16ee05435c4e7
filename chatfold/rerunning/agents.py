"""Stand-ins for the agents of a log: what matters of their declarations, and is not in the recorded policy."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final

from pydantic import AfterValidator, TypeAdapter

from chatfold.rerunning.declarations import Declaration, Declarations
from chatfold.rerunning.declared_tool import DeclaredTool
from chatfold.rerunning.models import RecordedSource
from chatfold.rerunning.script import Script
from events.content import Json, same_json
from generation.agents import Agent
from generation.models import ModelConfig
from generation.tools.contract import Tool


class Agents(Mapping[str, Agent]):
    """The agents of a worker: those that are given, and for any other name one that says what was kept of it.

    Args:
        given: Today's agents by name.
        source: Gives the stand-in for the context source of the agent of a name; None where it has none.
        script: The log.
        kept: What agents said then, as far as it was kept.
        redacted: Whether its contents are made up: then no tool can say whether it takes the arguments of its calls.
    """

    def __init__(
        self,
        given: Mapping[str, Agent],
        source: Callable[[str], RecordedSource | None],
        script: Script,
        kept: Declarations,
        *,
        redacted: bool = False,
    ) -> None:
        self._given: Final = given
        self._source: Final = source
        self._models: Final = tuple(_keeping(provider, name) for provider, name in sorted(script.keeping))
        self._asking: Final = script.asking
        self._said: Final = {
            policy.agent: kept.of(policy.agent, script.policies.values()) for policy in script.policies.values()
        }
        self._redacted: Final = redacted
        self._silent: Final[dict[str, Agent]] = {}

    def __getitem__(self, name: str) -> Agent:
        """Return the agent of a name, with the log's context source."""
        agent = self._given.get(name) or self._silent.get(name)
        if agent is None:
            agent = self._silent[name] = self._stand_in(name)
        there = copy.copy(agent)
        object.__setattr__(there, "context", self._source(name))
        if self._redacted:
            object.__setattr__(there, "tools", tuple(map(self._taking, there.tools)))
        return there

    def _stand_in(self, name: str) -> Agent:
        """Return an agent that says what was said then, where it was kept, and has the tools that matter here."""
        said = self._said.get(name) or Declaration()
        specs = {tool.name: tool for tool in said.tools}
        asking = {tool: _asking(tool, unfit, specs.get(tool)) for tool, unfit in self._asking.items()}
        tools = [asking.get(spec.name) or _running(spec) for spec in said.tools]
        tools += [tool for called, tool in sorted(asking.items()) if called not in specs]
        return Agent(name=name, models=self._models, tools=tools, system=said.system, provider_tools=said.native)

    def _taking(self, declared: Tool) -> Tool:
        """Return a tool that takes the arguments which it took then, whatever it takes by its declaration.

        So does one that nobody was asked about then, and that asks today: what it took is no matter of the log.
        """
        there = copy.copy(declared)
        object.__setattr__(there, "arguments", _but(self._asking.get(declared.name, ())))
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


def _asking(name: str, unfit: Sequence[Json], spec: DeclaredTool | None) -> Tool:
    """Return a tool that asks a client or a person, and takes all arguments but those that it did not take then."""
    said = spec or DeclaredTool(name=name, description="", schema={"type": "object"})
    return Tool(name=name, description=said.description, schema=said.schema, function=_never, arguments=_but(unfit))


def _running(spec: DeclaredTool) -> Tool:
    """Return a tool that runs here, and is never run."""
    return Tool(name=spec.name, description=spec.description, schema=spec.schema, function=_never)


def _but(unfit: Sequence[Json]) -> TypeAdapter[Any]:
    """Return what takes all arguments but some."""

    def taken(value: dict[str, Any]) -> dict[str, Any]:
        if any(same_json(value, each) for each in unfit):
            raise ValueError("they were not taken then")
        return value

    return TypeAdapter(Annotated[dict[str, Any], AfterValidator(taken)])


def _never() -> None:
    raise AssertionError("no tool is run")
