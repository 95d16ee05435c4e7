"""Model references: which provider a name such as ``anthropic/NAME`` means, made with its settings.

A provider's module, and with it its SDK, is imported when a reference asks for it and not before.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct

from generation.errors import MissingExtra, UnknownModel
from generation.models import split_reference
from generation.providers.contract import Provider


class ProviderSettings(Struct, frozen=True, kw_only=True):
    """How providers are reached.

    Attributes:
        base_url: Where the service is; None: the SDK's default, or what its environment variable says.
        api_key: The key; None: the SDK's environment variable.
        timeout: Seconds that the transport waits for data.
    """

    base_url: str | None = None
    api_key: str | None = None
    timeout: float = 600.0


class _Entry(Struct, frozen=True):
    module: str
    cls: str
    sdk: str | None
    example: str


_PROVIDERS: Final = MappingProxyType(
    {
        "anthropic": _Entry("generation.providers.anthropic", "AnthropicProvider", "anthropic", "anthropic/NAME"),
        "openai": _Entry("generation.providers.openai_responses", "OpenAIResponsesProvider", "openai", "openai/NAME"),
        "openai-chat": _Entry("generation.providers.openai_chat", "OpenAIChatProvider", "openai", "openai-chat/NAME"),
        "scripted": _Entry("generation.providers.scripted", "ScriptedProvider", None, "scripted"),
    }
)


def forms() -> str:
    """Return the valid forms of a model reference, for people."""
    return ", ".join(entry.example for entry in _PROVIDERS.values())


def provider_names() -> tuple[str, ...]:
    """Return the names of the built-in providers."""
    return tuple(_PROVIDERS)


def provider_for(
    reference: str, *, base_url: str | None = None, api_key: str | None = None, timeout: float = 600.0
) -> tuple[Provider, str]:
    """Return a provider for a model reference, and the model's name with it.

    Args:
        reference: ``anthropic/NAME``, ``openai/NAME``, ``openai-chat/NAME``, or ``scripted``.
        base_url: Where the service is; None: the SDK's default, or what its environment variable says.
        api_key: The key; None: the SDK's environment variable. A missing key is reported by the first call.
        timeout: Seconds that the transport waits for data.

    Raises:
        UnknownModel: The reference has no valid form, or names a provider that is not known.
        MissingExtra: The provider's SDK is not installed.
    """
    try:
        name, model = split_reference(reference)
    except UnknownModel as error:
        raise UnknownModel(reference, f"{error.why}; valid forms are {forms()}") from None
    if name not in _PROVIDERS or not model:
        why = f"there is no provider {name!r}" if name not in _PROVIDERS else "the model's name is missing"
        raise UnknownModel(reference, f"{why}; valid forms are {forms()}")
    return make_provider(name, ProviderSettings(base_url=base_url, api_key=api_key, timeout=timeout)), model


def make_provider(name: str, settings: ProviderSettings) -> Provider:
    """Make the provider ``name``.

    Raises:
        UnknownModel: There is no such provider.
        MissingExtra: The provider's SDK is not installed.
        InvalidBaseUrl: The base URL, the given one or the one of the SDK's environment variable, is none.
    """
    entry = _PROVIDERS.get(name)
    if entry is None:
        raise UnknownModel(name, f"there is no provider of that name; valid forms are {forms()}")
    try:
        module = importlib.import_module(entry.module)
    except ModuleNotFoundError as exc:
        if entry.sdk is None or (exc.name or "").partition(".")[0] != entry.sdk:
            raise
        raise MissingExtra(name, entry.sdk) from exc
    make: Callable[..., Any] = getattr(module, entry.cls)
    provider: Provider = (
        make()
        if entry.sdk is None
        else make(base_url=settings.base_url, api_key=settings.api_key, timeout=settings.timeout)
    )
    return provider
