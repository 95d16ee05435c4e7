"""Models as applications configure them: reference, limits, efforts, prices, options. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation, Overflow
from typing import Final, Literal, TypeAlias, cast

from events.content import Json
from events.errors import InvalidValue
from events.records import ModelPolicy
from events.values import check_value
from generation.digest import digest_of
from generation.efforts import EFFORTS, Effort, effective_effort, rank
from generation.errors import AgentDeclarationError, OptionRefused, UnknownModel
from generation.providers.options import check_options

Price: TypeAlias = Decimal | str | int
"""Units of currency per million tokens, exact: a text, an integer or a Decimal, never a float."""

_PROVIDER: Final = re.compile(r"[a-z0-9][a-z0-9_.-]*", re.ASCII)
_MICRO: Final = 1_000_000

MAX_NAME: Final = 1_000
"""Characters of a model's name."""

LARGE_CONTEXT: Final = 500_000
"""Tokens from which a context counts as large."""

DEFAULT_THRESHOLDS: Final = (70, 30)
"""Per cent of the context at which a chat is compacted where a configuration does not say: usually, in a large one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Prices per million tokens, by category; None where a category has no price."""

    input: Price | None = None
    output: Price | None = None
    cache_read: Price | None = None
    cache_write: Price | None = None

    def __post_init__(self) -> None:
        for category in ("input", "output", "cache_read", "cache_write"):
            _micros(category, getattr(self, category))

    def micros(self, category: Literal["input", "output", "cache_read", "cache_write"]) -> int | None:
        """Return a category's price in micro-units per million tokens; None where it has none."""
        return _micros(category, getattr(self, category))


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """A model and how it is used.

    Attributes:
        provider: Name of the provider: ``anthropic``, ``openai``, ``openai-chat``, ``scripted`` or one of the
            application's.
        name: The model's name as the provider knows it.
        context_limit: Tokens of the context; None where not known (never compacted by itself then).
        max_output: Most tokens of one answer; None for the provider's own.
        effort: Reasoning effort where the chat chooses none; None: the model's own, and chats cannot choose one.
        max_effort: The most that a chat may choose, and not less than ``effort``; the two come together.
        compaction_threshold: Per cent of the context at which the chat is compacted, 0 to 100; 100 is never. None: 70,
            or 30 for contexts of 500,000 tokens and more.
        prices: None where the model has none.
        options: Options by name, such as ``{"parallel_tool_calls": False}``; which there are, and which transport takes
            each, is said by ``generation.providers.options``. An application's own provider gets them as they are.
        extra: What is put into the request as it is, for what has no option; a mapping goes into the one that stands
            there. It must not hold what the engine sets, such as ``messages``.
    """

    provider: str
    name: str
    context_limit: int | None = None
    max_output: int | None = None
    effort: Effort | None = None
    max_effort: Effort | None = None
    compaction_threshold: int | None = None
    prices: Prices | None = None
    options: Mapping[str, Json] = field(default_factory=dict, hash=False)
    extra: Mapping[str, Json] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        provider, name = cast(object, self.provider), cast(object, self.name)
        if not isinstance(provider, str) or not _PROVIDER.fullmatch(provider):
            raise AgentDeclarationError("a model", f"{self.provider!r} is no name of a provider")
        _check_name(provider, name)
        what = f"model {self.reference}"
        for limit in ("context_limit", "max_output"):
            if (value := getattr(self, limit)) is not None:
                check_count(what, limit, value, 1)
        self._check_efforts(what)
        if self.compaction_threshold is not None:
            check_count(what, "compaction_threshold", self.compaction_threshold, 0)
        if self.compaction_threshold is not None and self.compaction_threshold > 100:
            raise AgentDeclarationError(what, f"compaction_threshold must be 0 to 100, not {self.compaction_threshold}")
        prices: object = self.prices
        if not isinstance(prices, Prices | None):
            why = f"prices must be Prices(...) or None, not {type(prices).__name__}: write Prices(input=...)"
            raise AgentDeclarationError(what, why)
        for name in ("options", "extra"):
            given: object = getattr(self, name)
            if not isinstance(given, Mapping):
                raise AgentDeclarationError(what, f"{name} must be a mapping, not {type(given).__name__}")
            try:
                check_value(dict(given), name)
            except InvalidValue as error:
                raise AgentDeclarationError(what, str(error)) from None
        self.check_options(self.provider)

    def _check_efforts(self, what: str) -> None:
        for name in ("effort", "max_effort"):
            if (given := getattr(self, name)) is not None and given not in EFFORTS:
                raise AgentDeclarationError(what, f"{name} must be one of {', '.join(EFFORTS)}, not {given!r}")
        if self.effort is None and self.max_effort is None:
            return
        if self.effort is None or self.max_effort is None:
            lacking = "max_effort, the most that a chat may choose" if self.effort else "effort, the default"
            raise AgentDeclarationError(what, f"effort and max_effort come together: give {lacking}, too")
        if rank(self.effort) > rank(self.max_effort):
            raise AgentDeclarationError(what, f"effort {self.effort} is more than max_effort {self.max_effort}")

    def check_options(self, transport: str) -> None:
        """Check the options against a transport: the one that the provider of this name speaks.

        Raises:
            AgentDeclarationError: The transport does not take one of them, or not with its value.
        """
        what = f"model {self.reference}"
        try:
            check_options(transport, self.options, self.extra)
        except OptionRefused as error:
            raise AgentDeclarationError(what, str(error)) from None
        if "max_completion_tokens" in self.options and self.max_output is not None:
            raise AgentDeclarationError(what, "options.max_completion_tokens and max_output are one limit: give one")

    @property
    def reference(self) -> str:
        """The model as ``provider/name``."""
        return f"{self.provider}/{self.name}"

    def threshold(self, context_limit: int | None) -> int:
        """Return the compaction threshold in per cent for a context, with its default."""
        if self.compaction_threshold is not None:
            return self.compaction_threshold
        usual, large = DEFAULT_THRESHOLDS
        return large if context_limit is not None and context_limit >= LARGE_CONTEXT else usual

    def policy(self, effort: str | None = None, *, fallback_limit: int | None = None) -> ModelPolicy:
        """Return the configuration as it is recorded.

        Args:
            effort: What the chat chose.
            fallback_limit: Tokens of the context where the configuration does not say.
        """
        prices = self.prices or Prices()
        limit = fallback_limit if self.context_limit is None else self.context_limit
        sent = {name: dict(given) for name in ("options", "extra") if (given := getattr(self, name))}
        return ModelPolicy(
            provider=self.provider,
            name=self.name,
            context_limit=limit,
            max_output=self.max_output,
            effort=effective_effort(effort, self.effort, self.max_effort),
            effort_max=self.max_effort,
            options=digest_of(sent) if sent else "",
            compaction_threshold=self.threshold(limit),
            price_input=prices.micros("input"),
            price_output=prices.micros("output"),
            price_cache_read=prices.micros("cache_read"),
            price_cache_write=prices.micros("cache_write"),
        )


SCRIPTED: Final = "scripted"
DEFAULT_SCRIPT: Final = "friendly"
"""The model that the reference ``scripted`` names: it needs no service and no key."""


def split_reference(reference: str) -> tuple[str, str]:
    """Split a model reference at its first slash; ``scripted`` alone names its friendly model.

    Raises:
        UnknownModel: It has not the form ``provider/name``.
    """
    reference = reference.strip()
    if reference == SCRIPTED:
        return SCRIPTED, DEFAULT_SCRIPT
    provider, slash, name = reference.partition("/")
    if not slash:
        raise UnknownModel(reference, "must be provider/name, such as anthropic/NAME, or scripted")
    return provider, name


def parse_model(reference: str) -> ModelConfig:
    """Return the bare configuration of ``provider/name``.

    Raises:
        UnknownModel: It has not that form.
    """
    provider, name = split_reference(reference)
    try:
        return ModelConfig(provider=provider, name=name)
    except AgentDeclarationError as error:
        raise UnknownModel(reference, error.why) from None


def _check_name(provider: str, name: object) -> None:
    if not isinstance(name, str) or not name or name.strip() != name or len(name) > MAX_NAME:
        shown = f"a text of {len(name)} characters" if isinstance(name, str) and len(name) > MAX_NAME else repr(name)
        why = f"{shown} is no name of a model: 1 to {MAX_NAME} characters without blanks at its ends"
        raise AgentDeclarationError(f"a model of {provider}", why)
    try:
        check_value(name, "name")
    except InvalidValue as error:
        raise AgentDeclarationError(f"a model of {provider}", f"{name!r} is no name of a model: {error}") from None


def check_count(what: str, name: str, value: object, least: int) -> None:
    """Check that a setting of an agent or a model is a whole number of at least ``least``, of 64 bits at most.

    Raises:
        AgentDeclarationError: It is none; says whose it is and its name.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise AgentDeclarationError(what, f"{name} must be a whole number, not {type(value).__name__}")
    if value < least:
        raise AgentDeclarationError(what, f"{name} must be at least {least}, not {value}")
    if value >= 2**63:
        raise AgentDeclarationError(what, f"{name} must be less than 2**63")


def _micros(category: str, price: object) -> int | None:
    if price is None:
        return None
    what = f"price of {category}"
    if isinstance(price, bool) or not isinstance(price, Decimal | str | int):
        raise AgentDeclarationError(what, f"must be a Decimal, a text or an integer, not {type(price).__name__}")
    try:
        exact = Decimal(price) * _MICRO
    except InvalidOperation:
        raise AgentDeclarationError(what, f"{price!r} is no number") from None
    except Overflow:
        raise AgentDeclarationError(what, f"{price} is out of range") from None
    if not exact.is_finite() or exact < 0 or exact >= 2**63:
        raise AgentDeclarationError(what, f"{price} is out of range")
    if exact != exact.to_integral_value():
        raise AgentDeclarationError(what, f"{price} is finer than a millionth of the unit")
    return int(exact)
