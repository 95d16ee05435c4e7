"""The providers of one engine: the application's own, and the built-in ones made when first asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from events.errors import InvalidValue
from events.given import checked_kind
from generation.agents import Agent
from generation.errors import InvalidBaseUrl, MissingExtra, UnknownModel
from generation.models import SCRIPTED
from generation.providers.contract import Provider
from generation.providers.registry import ProviderSettings, make_provider, provider_names
from generation.tools.contract import duration_problem
from store.log import get_logger

_log: Final = get_logger(__name__)


def builtin_provider(
    name: str, *, base_url: str | None = None, api_key: str | None = None, timeout: float = 600.0
) -> Provider:
    """Return a built-in provider with an address and a key of its own, for ``Engine(providers={...})``.

    Under the name that it is given there, models say ``that name/NAME``. Close it when its engine is closed.

    Args:
        name: The protocol: ``anthropic``, ``openai``, ``openai-chat`` or ``scripted``.
        base_url: Where the service is; None: the SDK's default, or what its environment variable says.
        api_key: The key; None: the SDK's environment variable. A missing key is reported by the first call.
        timeout: Seconds that the transport waits for data.

    Raises:
        UnknownModel: There is no such provider.
        MissingExtra: Its SDK is not installed.
        InvalidBaseUrl: The base URL is none.
        InvalidValue: The timeout is no positive number.
    """
    checked_kind(name, str, "$.name", "a text")
    if api_key is not None:
        checked_kind(api_key, str, "$.api_key", "a text")
    if (problem := duration_problem(timeout)) is not None:
        raise InvalidValue("$.timeout", problem)
    return make_provider(name, ProviderSettings(base_url=base_url, api_key=api_key, timeout=timeout))


class ProviderPool:
    """Providers by name.

    Args:
        given: The application's providers; they come before built-in ones of the same name and are not closed here.
        base_url: Where the built-in ones reach their service; None: their own default.
    """

    def __init__(self, given: Mapping[str, Provider], *, base_url: str | None = None) -> None:
        self._given = dict(given)
        self._settings = ProviderSettings(base_url=base_url)
        self._made: dict[str, Provider] = {}

    def names(self) -> tuple[str, ...]:
        """Return the names of all providers, the application's own first."""
        return (*self._given, *(name for name in provider_names() if name not in self._given))

    def knows(self, name: str) -> bool:
        """Whether there is a provider of this name."""
        return name in self.names()

    def get(self, reference: str) -> Provider:
        """Return the provider of a model, or of a name.

        Args:
            reference: ``provider/name``, by which errors call it, or the provider's name alone.

        Raises:
            UnknownModel: There is none.
            MissingExtra: Its SDK is not installed.
        """
        name = reference.partition("/")[0]
        provider = self._given.get(name) or self._made.get(name)
        if provider is None:
            try:
                provider = self._made[name] = make_provider(name, self._settings)
            except UnknownModel as error:
                raise UnknownModel(reference, error.why) from None
        return provider

    def load(self, agents: Iterable[Agent]) -> None:
        """Make the providers that agents name, so that SDKs are imported now and not at the first call.

        The provider of a compaction model may be missing: no chat may ever need it, and one that does goes on with the
        chat's own model.

        Raises:
            UnknownModel: An agent, or its titles, names a provider that does not exist.
            MissingExtra: The SDK of one is not installed.
            AgentDeclarationError: The protocol of a model's provider does not take an option, or has no such tool.
        """
        for agent in agents:
            for config in agent.configured:
                given = self._given.get(config.provider)
                # A scripted one stands in for the provider that it is given as.
                if given is not None and given.name != SCRIPTED:
                    agent.check_model(config, given.name)  # of one of another name: what it speaks is known only now
            if (own := agent.find_model()) is not None:
                self.get(own.reference)
            for model in agent.titles.configured if agent.titles is not None else ():
                if not self.knows(model.provider):
                    why = f"there is no such provider for titles; known here: {', '.join(self.names())}"
                    raise UnknownModel(model.reference, why)
            if agent.compaction is not None:
                try:
                    self.get(agent.compaction.reference)
                except (UnknownModel, MissingExtra, InvalidBaseUrl) as error:
                    _log.warning("compaction_model_unusable", agent=agent.name, error=str(error))

    async def close(self) -> None:
        """Close the providers made here."""
        while self._made:
            _, provider = self._made.popitem()
            await provider.close()
