"""Records that events carry beside messages: decisions, policies, attempts, errors, actions, answers.

All are facts but for the fields of type ``Content``.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from events.content import Content
from events.ids import CallKey
from events.messages import Step
from events.parts import CrashPolicy, OnExpiry, Runner
from events.reasons import Reason
from events.sharing import Shared
from events.values import checked_whole

Fact: TypeAlias = str | int | bool | None
AttemptKind: TypeAlias = Literal["generate", "tools", "compact", "context"]
MODEL_KINDS: Final[frozenset[AttemptKind]] = frozenset({"generate", "compact"})
"""The kinds of attempt that call the chat's model."""
ActionKind: TypeAlias = Literal["client_call", "approval", "budget"]
FinishCause: TypeAlias = Literal["complete", "stop_after_tool", "max_steps", "compacted", "budget"]
ReleaseReason: TypeAlias = Literal["shutdown", "drain", "capacity", "agent_not_here", "fault"]
ContextMarking: TypeAlias = Literal["stale", "fresh", "refresh"]
LimitName: TypeAlias = Literal["tokens", "cost_micros", "turns"]
SideCallKind: TypeAlias = Literal["title", "label"]
ActorKind: TypeAlias = Literal["user", "worker", "system"]


class _Record(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True, gc=False):
    """Base of the records of this module."""


class Actor(_Record, frozen=True, kw_only=True):
    """Who caused an event."""

    kind: ActorKind
    id: str | None = None


class Decision(_Record, frozen=True, kw_only=True):
    """Why a worker did what the event says: rule, action, the facts read, the rules passed by, the policy's digest.

    ``facts`` are those by which the rule held; ``read`` is what it and the rules passed by read beside them, where it
    is not neutral. A decision was taken at the version just before its own event.
    """

    rule: str
    action: str
    facts: dict[str, Fact] = {}
    passed: tuple[str, ...] = ()
    policy: str = ""
    read: dict[str, Fact] = {}

    @property
    def evidence(self) -> dict[str, Fact]:
        """All that was read and recorded."""
        return {**self.read, **self.facts}


class ErrorInfo(_Record, frozen=True, kw_only=True):
    """A classified error. ``retry_after_us`` is what the provider asked to wait; texts are content."""

    kind: str
    message: Content
    detail: Content | None = None
    provider: str | None = None
    retryable: bool = False
    status_code: int | None = None
    retry_after_us: int | None = None
    chain_broken: bool = False


class RequestDigests(_Record, frozen=True, kw_only=True):
    """Digests of a model request by section, so that a changed prompt is seen later (``generation.digests``)."""

    system: str
    tools: str
    messages: str
    options: str


class AttemptReport(_Record, frozen=True, kw_only=True):
    """How an attempt ended. ``step`` is absent where the committed message carries it."""

    step: Step | None = None
    request: RequestDigests | None = None


class RetryState(_Record, frozen=True, kw_only=True):
    """A scheduled retry: the attempt that failed, the wait in microseconds, the time of the next try, and why.

    ``attempt`` counts all starts on the history, as in ``attempt_started``; how many of them the retry budget counts is
    the chat's ``model_attempts``.
    """

    attempt: int
    delay_us: int
    at: int
    error: ErrorInfo


class ModelPolicy(_Record, frozen=True, kw_only=True):
    """A model configuration as recorded.

    Prices are micro-units of currency per million tokens; the threshold is in per cent. ``effort`` is what the model is
    asked with, ``effort_max`` the most that the chat may choose; ``options`` is a digest of the options, empty where
    there are none.
    """

    provider: str
    name: str
    context_limit: int | None = None
    max_output: int | None = None
    effort: str | None = None
    compaction_threshold: int = 70
    price_input: int | None = None
    price_output: int | None = None
    price_cache_read: int | None = None
    price_cache_write: int | None = None
    effort_max: str | None = None
    options: str = ""

    @property
    def reference(self) -> str:
        """The model as ``provider/name``."""
        return f"{self.provider}/{self.name}"

    @property
    def has_price(self) -> bool:
        """Whether a category of its tokens has a price."""
        prices = (self.price_input, self.price_output, self.price_cache_read, self.price_cache_write)
        return any(price is not None for price in prices)


class ToolPolicy(_Record, frozen=True, kw_only=True):
    """A tool's declaration as recorded. ``schema`` is the digest of its name, description and argument schema.

    ``reconcile``: it can be asked whether a call happened. ``action_timeout_us`` and ``action_on_expiry`` are those of
    what a call asks of the client, where they are not the policy's.
    """

    name: str
    runner: Runner = "local"
    crash: CrashPolicy = "report"
    exclusive: bool = False
    stop_after: bool = False
    needs_approval: bool = False
    reconcile: bool = False
    timeout_us: int | None = None
    schema: str = ""
    action_timeout_us: int | None = None
    action_on_expiry: OnExpiry | None = None


NO_LIMIT: Final = 2**53 - 1
"""A limit that is none: what a raised budget says to lift one."""


class Budget(_Record, frozen=True, kw_only=True):
    """What a chat may spend before its user is asked.

    A limit that is absent is none; in the answer to a budget question it stays as it is, and ``NO_LIMIT`` lifts it.
    One that is no whole number, or negative, is refused as an ``InvalidValue`` where it is said.
    """

    tokens: int | None = None
    cost_micros: int | None = None
    turns: int | None = None

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if (value := getattr(self, name)) is not None:
                checked_whole(value, f"$.{name}")

    def over(self, other: Budget | None) -> Budget:
        """Return these limits, and those of ``other`` where there are none."""
        if other is None:
            return self
        return Budget(
            tokens=other.tokens if self.tokens is None else self.tokens,
            cost_micros=other.cost_micros if self.cost_micros is None else self.cost_micros,
            turns=other.turns if self.turns is None else self.turns,
        )


class Spent(_Record, frozen=True, kw_only=True):
    """What a chat has spent: tokens and cost (micro-units of currency) of its life, and turns that are over."""

    tokens: int = 0
    cost_micros: int = 0
    turns: int = 0


class Spending(_Record, frozen=True, kw_only=True):
    """What a chat has spent, and what it may spend before its user is asked.

    ``allowed`` are the limits in force: the agent's, and over them those that were raised; one that is absent is none.
    ``reached`` names those that stand in the way. ``unpriced``: cost is limited, and the model has no price, so that
    nobody can say when it is spent; then ``cost_micros`` is reached whatever it says.
    """

    spent: Spent
    allowed: Budget
    reached: tuple[LimitName, ...] = ()
    unpriced: bool = False


class Policy(_Record, frozen=True, kw_only=True):
    """All that a decision depends on beside history. Recorded before the first decision under a new digest.

    ``tools`` are those that are active: the model may call them. ``retry_unit_us`` stands for one second in the table
    of waits before a failed model call is tried again; None where it was not recorded.
    """

    agent: str
    revision: str
    model: ModelPolicy | None
    compaction_model: ModelPolicy | None = None
    max_steps: int = 1200
    max_model_attempts: int = 26
    tools: tuple[ToolPolicy, ...] = ()
    system: str = ""
    context_source: str | None = None
    context_revision: str | None = None
    action_timeout_us: int = 300_000_000
    action_on_expiry: OnExpiry = "go_on"
    budget: Budget | None = None
    retry_unit_us: int | None = None


_POLICIES: Final = Shared[str, Policy](most=256)


def share_policy(digest: str, policy: Policy) -> Policy:
    """Return a policy that equals ``policy``: the one that other chats have where they recorded the same."""
    return _POLICIES.of(digest, policy)


_SOLE: Final = Shared[str, Mapping[str, Policy]](most=256)


def sole_policy(digest: str, policy: Policy) -> Mapping[str, Policy]:
    """Return the policies of a chat that recorded this one alone: those that other such chats have."""
    return _SOLE.of(digest, MappingProxyType({digest: share_policy(digest, policy)}))


class Answer(_Record, frozen=True, kw_only=True):
    """A call is answered: by its recorded result where ``reason`` is absent, else by a synthetic error result."""

    call: CallKey
    reason: Reason | None = None


class ActionItem(_Record, frozen=True, kw_only=True):
    """One thing that the client owes.

    The result of a call, an approval of a call, or the answer to a budget question (no call). ``spending`` is what a
    budget question is about: what was spent when it was asked, what is allowed, and which limits are reached.
    """

    kind: ActionKind
    call: CallKey | None = None
    spending: Spending | None = None


class OpenAction(_Record, frozen=True, kw_only=True):
    """What the client owes now. The id is the version of the event that opened it; the deadline is microseconds UTC.

    ``result_budget``: bytes that the output of one result may take; a longer one is cut. None for as many as come.
    """

    id: int
    deadline: int
    on_expiry: OnExpiry
    items: tuple[ActionItem, ...]
    result_budget: int | None = None

    @property
    def client_calls(self) -> tuple[CallKey, ...]:
        """The calls whose results the client owes."""
        return tuple(item.call for item in self.items if item.kind == "client_call" and item.call is not None)

    @property
    def to_approve(self) -> tuple[CallKey, ...]:
        """The calls that wait for an approval."""
        return tuple(item.call for item in self.items if item.kind == "approval" and item.call is not None)

    @property
    def asks_budget(self) -> bool:
        """Whether a budget question is among what the client owes."""
        return any(item.kind == "budget" for item in self.items)

    @property
    def spending(self) -> Spending | None:
        """What a budget question among them is about; None without one, and in chats of an older level."""
        return next((item.spending for item in self.items if item.kind == "budget"), None)


class ApprovalAnswer(_Record, frozen=True, kw_only=True):
    """A client's answer to an approval. ``arguments`` replaces the call's arguments (JSON text)."""

    call: CallKey
    approved: bool
    arguments: Content | None = None


class BudgetAnswer(_Record, frozen=True, kw_only=True):
    """A client's answer to a budget question: end the turn, or go on with the raised limits; the others stay."""

    end_turn: bool
    raised: Budget | None = None


class Origin(_Record, frozen=True, kw_only=True):
    """Where a fork comes from: chat, version, and the digest (hex) at that version."""

    chat: str
    version: int
    digest: str
