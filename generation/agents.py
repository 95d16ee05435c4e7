"""Agents as applications declare them: a name, a model, a system text, tools and limits. Pure.

What of an agent is recorded with a chat is ``generation.policy``'s.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast, get_args

from events.errors import InvalidValue
from events.parts import OnExpiry
from events.records import Budget
from events.values import check_value
from generation.context import ContextSource
from generation.digest import digest_of
from generation.errors import AgentDeclarationError, OptionRefused, UnknownModel
from generation.models import ModelConfig, check_count, parse_model
from generation.naming import Titles
from generation.providers.native import ProviderTool, WebSearch, check_native
from generation.tools.contract import Tool, duration_problem
from generation.tools.registry import ToolSet

_NAME: Final = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]{0,99}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What bounds an agent's turns.

    Attributes:
        max_steps: Answers of the model in one turn.
        max_model_attempts: Model calls on one history, the first and its retries.
        fallback_context_limit: Tokens of the context of models whose configuration does not say; None where it is not
            known then either, and such a chat is never compacted by itself.
        action_timeout: Seconds that the client has for what it owes.
        on_expiry: What follows when it does not answer: the model goes on, or the turn ends.
        budget: What a chat may spend before its user is asked; None for no limit.
    """

    max_steps: int = 1200
    max_model_attempts: int = 26
    fallback_context_limit: int | None = None
    action_timeout: float = 300.0
    on_expiry: OnExpiry = "go_on"
    budget: Budget | None = None

    def __post_init__(self) -> None:
        for name in ("max_steps", "max_model_attempts"):
            check_count("limits", name, getattr(self, name), 1)
        if self.fallback_context_limit is not None:
            check_count("limits", "fallback_context_limit", self.fallback_context_limit, 1)
        if (problem := duration_problem(self.action_timeout)) is not None:
            raise AgentDeclarationError("limits", f"action_timeout {problem}")
        if self.on_expiry not in get_args(OnExpiry):
            raise AgentDeclarationError("limits", f"on_expiry is go_on or end_turn, not {self.on_expiry!r}")
        if not isinstance(self.budget, Budget | None):
            raise AgentDeclarationError("limits", f"budget must be a Budget or None, not {type(self.budget).__name__}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """Who answers in a chat.

    Attributes:
        name: 1 to 100 letters, digits, ``_``, ``.`` or ``-``; a chat names its agent by it.
        model: ``provider/name`` or a configuration. None: each chat must choose its own.
        system: The system text, or several in order.
        tools: What the model may call.
        provider_tools: What the model's service runs for it within an answer: ``[WebSearch()]``.
        active_tools: Names of those that it may call unless a chat chooses others (``Engine.set_active_tools``); all
            where it is empty. A call of another one is answered with an error.
        limits: See ``Limits``.
        models: Configurations of further models that a chat may choose, so that their limits and prices are known.
        compaction_model: Who writes summaries; None for the chat's model.
        context: Where the files before the conversation come from; None for none. Tools that it brings are the agent's.
        titles: That its chats are named and its turns labelled by a model; None for neither.
    """

    name: str
    model: ModelConfig | str | None = None
    system: str | Sequence[str] = ()
    tools: Sequence[Tool] = ()
    provider_tools: Sequence[ProviderTool] = ()
    active_tools: Sequence[str] = ()
    limits: Limits = field(default_factory=Limits)
    models: Sequence[ModelConfig | str] = ()
    compaction_model: ModelConfig | str | None = None
    context: ContextSource | None = None
    titles: Titles | None = None

    def __post_init__(self) -> None:
        what = f"agent {self.name!r}"
        name: object = self.name
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise AgentDeclarationError(
                what, "a name is 1 to 100 letters, digits, _, . or -, the first a letter or digit"
            )
        _check_kinds(self, what)
        system = (self.system,) if isinstance(self.system, str) else tuple(self.system)
        for index, text in enumerate(system):
            try:
                check_value(text, f"system[{index}]")
            except InvalidValue as error:
                raise AgentDeclarationError(what, str(error)) from None
        try:
            models = tuple(parse_model(model) if isinstance(model, str) else model for model in self.models)
            model = parse_model(self.model) if isinstance(self.model, str) else self.model
            compaction = self.compaction_model
            compaction = parse_model(compaction) if isinstance(compaction, str) else compaction
        except UnknownModel as error:
            raise AgentDeclarationError(what, str(error)) from error
        object.__setattr__(self, "system", tuple(text for text in system if text.strip()))
        brought = [tool for tool in getattr(self.context, "tools", ()) if all(tool is not own for own in self.tools)]
        object.__setattr__(self, "tools", tuple(ToolSet((*self.tools, *brought))))
        object.__setattr__(self, "active_tools", _known_names(self, what))
        object.__setattr__(self, "models", models)
        object.__setattr__(self, "model", model)
        object.__setattr__(self, "compaction_model", compaction)
        object.__setattr__(self, "provider_tools", tuple(self.provider_tools))
        _check_provider_tools(self, what)
        for config in (model, *models):
            if config is not None:
                self.check_model(config, config.provider)

    def check_model(self, config: ModelConfig, transport: str) -> None:
        """Check that a model can be asked, over a transport, for what the agent and the model's configuration say.

        Raises:
            AgentDeclarationError: It takes an option not, or has no such tool.
        """
        config.check_options(transport)
        if config is self.compaction_model:
            return  # nothing is called for a summary: what there is not is left out of its request
        try:
            check_native(transport, self.provider_tools)
        except OptionRefused as error:
            raise AgentDeclarationError(f"agent {self.name!r}", f"model {config.reference}: {error}") from None

    @property
    def system_texts(self) -> tuple[str, ...]:
        """The system texts that are not blank, in order."""
        return tuple(self.system)

    @property
    def tool_names(self) -> frozenset[str]:
        """The names of all tools that the agent has, active or not."""
        return frozenset(tool.name for tool in self.tools)

    def offered(self, chosen: Sequence[str] | None = None) -> tuple[Tool, ...]:
        """Return the tools that the model may call.

        They come in the order of their names: the same in every process, whatever the order of declaration.

        Args:
            chosen: Names that a chat chose; those that the agent does not have any more are passed by. An empty list
                means all, None the agent's own choice.
        """
        names = self.active_tools if chosen is None else chosen
        return tuple(tool for tool in self.tools if not names or tool.name in names)

    def find_model(self, reference: str | None = None) -> ModelConfig | None:
        """Return the configuration of the model that a chat chose.

        Args:
            reference: ``provider/name``; None for the agent's own. A model that the agent does not configure is used
                without limits, prices, efforts and options.

        Returns:
            None where neither the chat nor the agent names one.

        Raises:
            UnknownModel: The reference has not the form ``provider/name``.
        """
        own = _configured(self.model)
        if reference is None or (own is not None and own.reference == reference):
            return own
        known = next((model for model in self.configured if model.reference == reference), None)
        return known or parse_model(reference)

    @property
    def configured(self) -> tuple[ModelConfig, ...]:
        """All configurations of models that the agent has: its own, those to choose from, and that for summaries."""
        given = map(_configured, (self.model, *self.models, self.compaction_model))
        return tuple(model for model in given if model is not None)

    @property
    def compaction(self) -> ModelConfig | None:
        """The configuration of the model that writes summaries; None for the chat's own."""
        return _configured(self.compaction_model)

    @property
    def revision(self) -> str:
        """Digest of all that matters for what the agent does, but for the code of its functions.

        Another release may give another one for the same declaration: see ``generation.digest``.
        """
        return digest_of(
            {
                "name": self.name,
                "model": _facts(_configured(self.model)),
                "models": [_facts(_configured(model)) for model in self.models],
                "compaction_model": _facts(self.compaction),
                "system": self.system_texts,
                "tools": [_tool_facts(tool) for tool in self.tools],
                **({"active_tools": self.active_tools} if self.active_tools else {}),
                "limits": {name: getattr(self.limits, name) for name in Limits.__dataclass_fields__},
                "context": None if self.context is None else self.context.name,
                # Named only where there are any, as below.
                **({"provider_tools": self.provider_tools} if self.provider_tools else {}),
            }
        )


def _check_provider_tools(agent: Agent, what: str) -> None:
    names = {tool.name for tool in agent.tools}
    for tool in agent.provider_tools:
        if not isinstance(cast(object, tool), WebSearch):
            why = f"provider_tools takes WebSearch(...), not {type(tool).__name__}; functions go into tools"
            raise AgentDeclarationError(what, why)
        if tool.name in names:
            raise AgentDeclarationError(what, f"two tools are called {tool.name!r}")
        names.add(tool.name)


def _known_names(agent: Agent, what: str) -> tuple[str, ...]:
    names: object = agent.active_tools
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise AgentDeclarationError(what, f"active_tools must be a list of names, not {type(names).__name__}")
    given = tuple(names)
    for name in given:
        if name not in agent.tool_names:
            raise AgentDeclarationError(what, f"active_tools names {name!r}, which is none of its tools")
    return tuple(sorted({*given}))


def _check_kinds(agent: Agent, what: str) -> None:
    """Refuse what is likely to be given by mistake: one thing in place of a list, one kind in place of another."""
    names = ("system", "tools", "provider_tools", "models", "limits")
    system, tools, native, models, limits = (getattr(agent, name) for name in names)
    if isinstance(tools, str) or not isinstance(tools, Iterable):
        raise AgentDeclarationError(what, f"tools must be a list of tools, not {type(tools).__name__}: write [tool]")
    if isinstance(models, str) or not isinstance(models, Iterable):
        raise AgentDeclarationError(what, f"models must be a list, not {type(models).__name__}: write [model]")
    for model in (agent.model, agent.compaction_model, *models):
        if not isinstance(model, ModelConfig | str | None):
            raise AgentDeclarationError(
                what, f"a model is a text provider/name or a ModelConfig, not {type(model).__name__}"
            )
    if not isinstance(system, Iterable) or not all(isinstance(text, str) for text in system):
        raise AgentDeclarationError(what, "system is a text or a list of texts")
    if isinstance(native, str) or not isinstance(native, Iterable):
        kind = type(native).__name__
        raise AgentDeclarationError(what, f"provider_tools must be a list, not {kind}: write [WebSearch()]")
    titles: object = agent.titles
    if not isinstance(titles, Titles | None):
        kind = type(titles).__name__
        raise AgentDeclarationError(what, f"titles must be Titles() or None, not {kind}")
    context = cast(object, agent.context)
    if context is not None and not all(hasattr(context, name) for name in ("name", "revision", "collect")):
        why = f"context takes a context source such as DirectoryContext(...), not {type(context).__name__}"
        raise AgentDeclarationError(what, why)
    if not isinstance(limits, Limits):
        raise AgentDeclarationError(what, f"limits must be Limits(...), not {type(limits).__name__}")


def _configured(model: ModelConfig | str | None) -> ModelConfig | None:
    """Return a model in the one form that validation leaves behind."""
    return parse_model(model) if isinstance(model, str) else model


def _facts(model: ModelConfig | None) -> Any:
    return None if model is None else {"policy": model.policy(), "options": model.options, "extra": model.extra}


def _tool_facts(tool: Tool) -> dict[str, Any]:
    names = ("runner", "crash", "exclusive", "stop_after", "needs_approval", "timeout")
    facts = {"digest": tool.digest, **{name: getattr(tool, name) for name in names}}
    # Named only where they are there: of themselves they change no revision of an agent that has none of them.
    later = {
        "reconcile": tool.reconcile is not None or None,
        "action_timeout": tool.action_timeout,
        "on_expiry": tool.on_expiry,
    }
    return facts | {name: value for name, value in later.items() if value is not None}
