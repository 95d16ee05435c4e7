"""Tools that a model's service runs itself, within an answer: how they are declared, and how each transport asks. Pure.

What they gave comes with the answer and stays in its message; how it is read is each provider's matter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias, cast

from generation.errors import AgentDeclarationError, OptionRefused

WEB_SEARCH: Final = "web_search"
"""The name under which all services call their search."""

SOURCES: Final = "web_search_call.action.sources"
"""What Responses must be asked to include so that it tells what a search found."""

MOST_DOMAINS: Final = 100

_DOMAIN: Final = re.compile(r"(?:[\w-]+\.)+[\w-]{2,}(?:/[^\s?#]*)?")
_PLACE: Final = ("city", "region", "country", "timezone")
_SIZES: Final = ("low", "medium", "high")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSearch:
    """A search of the web that the model's service runs.

    Attributes:
        allowed_domains: Where it looks, subdomains included, such as ``example.com``; none for everywhere.
        blocked_domains: Where it does not look; not together with ``allowed_domains``.
        max_uses: Searches of one answer at most; ``anthropic`` alone.
        user_location: Where the user is about: ``city``, ``region``, ``country`` (two letters), ``timezone``.
        context_size: How much of what it found the model reads; ``openai`` alone.
    """

    allowed_domains: Sequence[str] = ()
    blocked_domains: Sequence[str] = ()
    max_uses: int | None = None
    user_location: Mapping[str, str] | None = field(default=None, hash=False)
    context_size: Literal["low", "medium", "high"] | None = None

    def __post_init__(self) -> None:
        for name in ("allowed_domains", "blocked_domains"):
            object.__setattr__(self, name, _domains(name, getattr(self, name)))
        if self.allowed_domains and self.blocked_domains:
            raise AgentDeclarationError(WEB_SEARCH, "allowed_domains and blocked_domains exclude each other: give one")
        uses: object = self.max_uses
        if uses is not None and (isinstance(uses, bool) or not isinstance(uses, int) or uses < 1):
            raise AgentDeclarationError(WEB_SEARCH, f"max_uses must be a whole number of at least 1, not {uses!r}")
        if self.context_size is not None and self.context_size not in _SIZES:
            why = f"context_size must be one of {', '.join(_SIZES)}, not {self.context_size!r}"
            raise AgentDeclarationError(WEB_SEARCH, why)
        if self.user_location is not None:
            object.__setattr__(self, "user_location", _place(self.user_location))

    @property
    def name(self) -> str:
        """The name of its calls."""
        return WEB_SEARCH


ProviderTool: TypeAlias = WebSearch
"""A tool that a service runs."""


def _domains(name: str, given: object) -> tuple[str, ...]:
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise AgentDeclarationError(WEB_SEARCH, f"{name} must be a list of domains, not {type(given).__name__}")
    for domain in given:
        if not isinstance(domain, str) or not _DOMAIN.fullmatch(domain):
            why = f"{name}: {domain!r} is no domain: write it as example.com, without https://"
            raise AgentDeclarationError(WEB_SEARCH, why)
    if len(given) > MOST_DOMAINS:
        raise AgentDeclarationError(WEB_SEARCH, f"{name} may have {MOST_DOMAINS} entries, not {len(given)}")
    return tuple(given)


def _place(given: object) -> dict[str, str]:
    if not isinstance(given, Mapping) or not given:
        raise AgentDeclarationError(WEB_SEARCH, f"user_location must have one or more of {', '.join(_PLACE)}")
    for name, value in given.items():
        if name not in _PLACE:
            why = f"user_location has {', '.join(_PLACE)}, and not {name!r}"
            raise AgentDeclarationError(WEB_SEARCH, why)
        if not isinstance(value, str) or not value.strip():
            raise AgentDeclarationError(WEB_SEARCH, f"user_location.{name} must be a text that is not blank")
    return dict(cast("Mapping[str, str]", given))


_TAKEN: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "anthropic": frozenset({"allowed_domains", "blocked_domains", "max_uses", "user_location"}),
        "openai": frozenset({"allowed_domains", "blocked_domains", "user_location", "context_size"}),
        "openai-chat": frozenset(),
        "scripted": frozenset(),
    }
)
"""By transport, what of a search it can be told; one that can be told nothing has none."""


def check_native(transport: str, tools: Sequence[ProviderTool]) -> None:
    """Check that a transport can ask for these tools as they are declared.

    Args:
        transport: The protocol; of one that is not known here, such as an application's own provider's, all is well.
        tools: What the agent has declared.

    Raises:
        OptionRefused: The transport has no such tool, or cannot tell it something that is declared.
    """
    if transport not in _TAKEN:
        return
    for tool in tools:
        if not _TAKEN[transport]:
            having = " and ".join(other for other, taken in _TAKEN.items() if taken)
            raise OptionRefused(tool.name, f"{transport} has no search of its own; {having} have")
        for name in WebSearch.__dataclass_fields__:
            if getattr(tool, name) and name not in _TAKEN[transport]:
                takers = [other for other, taken in _TAKEN.items() if name in taken]
                raise OptionRefused(f"{tool.name}.{name}", f"{transport} takes none; {' and '.join(takers)} does")


def native_tools(transport: str, tools: Sequence[ProviderTool], *, unused: bool) -> list[dict[str, Any]]:
    """Return the declarations of a request's tools that the service runs, to stand behind all others.

    Args:
        transport: The protocol.
        tools: What the request declares.
        unused: No tool may be called: then those that the transport does not have are left out.

    Raises:
        OptionRefused: As in ``check_native``.
    """
    if not tools or (unused and not _TAKEN[transport]):
        return []
    check_native(transport, tools)
    return [_FORMS[transport](tool) for tool in tools]


def _anthropic(tool: WebSearch) -> dict[str, Any]:
    limits = {"max_uses": tool.max_uses} if tool.max_uses is not None else {}
    return {"type": "web_search_20250305", "name": WEB_SEARCH, **_filters(tool), **limits, **_located(tool)}


def _responses(tool: WebSearch) -> dict[str, Any]:
    filters = _filters(tool)
    size = {"search_context_size": tool.context_size} if tool.context_size is not None else {}
    return {"type": WEB_SEARCH, **({"filters": filters} if filters else {}), **size, **_located(tool)}


def _filters(tool: WebSearch) -> dict[str, Any]:
    given = {"allowed_domains": tool.allowed_domains, "blocked_domains": tool.blocked_domains}
    return {name: list(domains) for name, domains in given.items() if domains}


def _located(tool: WebSearch) -> dict[str, Any]:
    return {"user_location": {"type": "approximate", **tool.user_location}} if tool.user_location else {}


_FORMS: Final = MappingProxyType({"anthropic": _anthropic, "openai": _responses})
