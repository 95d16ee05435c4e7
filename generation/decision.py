"""The closed set of generation decisions. Pure."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from events.ids import CallKey
from events.records import Decision, FinishCause


class _Decided(Struct, frozen=True, kw_only=True):
    """Base: ``record`` is what the event that carries the decision out holds of it."""

    record: Decision


class RunTools(_Decided, frozen=True, kw_only=True):
    """Run ``calls`` here (none where all are recorded and only their commit is missing)."""

    calls: tuple[CallKey, ...]


class AskClient(_Decided, frozen=True, kw_only=True):
    """Require action: open client calls and approvals, or with ``budget`` a budget question."""

    budget: bool = False


class Compact(_Decided, frozen=True, kw_only=True):
    """Summarise history; ``manual`` where the user asked for it."""

    manual: bool


class CollectContext(_Decided, frozen=True, kw_only=True):
    """Collect the context of the agent's source and write it into history."""


class Generate(_Decided, frozen=True, kw_only=True):
    """Ask the model."""


class Finish(_Decided, frozen=True, kw_only=True):
    """End the turn."""

    cause: FinishCause


class Fail(_Decided, frozen=True, kw_only=True):
    """End the turn with an error of ``kind``; ``message`` says what to do."""

    kind: str
    message: str


GenerationDecision: TypeAlias = RunTools | AskClient | Compact | CollectContext | Generate | Finish | Fail
