"""The context effect: collect the files of the agent's context source."""

from __future__ import annotations

import asyncio

from events.messages import ContextMark, Message
from generation.actions.attempt import Attempt
from generation.context import recorded_revision
from generation.errors import ClassifiedError, ErrorKind
from generation.outcomes import ContextCollected, Failed
from generation.plans import Outcome
from store.log import get_logger

_log = get_logger(__name__)


async def collect_context(attempt: Attempt) -> Outcome:
    """Ask the source once, and wait for it as long as the settings say.

    An application's source may raise anything, or never answer: the attempt is tried again, then the turn fails.

    Raises:
        asyncio.CancelledError: It was cancelled; nothing is to be written.
    """
    source, scope, settings = attempt.agent.context, attempt.scope, attempt.runtime.settings
    if source is None:
        return _failed(attempt, "The agent's context source is not here.", retryable=False)

    def too_late() -> Outcome | None:
        """Return the failure of a source that nobody but its guard cancelled."""
        if scope.cause is not None:
            return None
        _log.warning("context_collection_timed_out", chat=attempt.chat, source=source.name)
        why = f"The context source {source.name} gave nothing in {settings.context_timeout:g} seconds."
        return _failed(attempt, why, kind="timeout", retryable=True)

    scope.left_with = too_late
    guard = attempt.runtime.silences.guard(settings.context_timeout, settings.grace, scope.leave)
    try:
        context = await source.collect(attempt.chat)
    except asyncio.CancelledError:
        if guard.expired and (failed := too_late()) is not None:
            return failed
        raise
    except Exception as error:  # noqa: BLE001 - an application's part may raise anything
        if guard.expired and (failed := too_late()) is not None:
            return failed
        _log.warning("context_collection_failed", chat=attempt.chat, source=source.name, exc_info=error)
        return _failed(attempt, f"The context source {source.name} failed.", retryable=True)
    finally:
        guard.end()
    revision = recorded_revision(source, context, attempt.policy.context_revision)
    return ContextCollected(
        message=Message(
            role="system",
            visibility="model",
            parts=tuple(file.part() for file in context.files),
            context=ContextMark(source=source.name, revision=revision),
        )
    )


def _failed(attempt: Attempt, message: str, *, kind: ErrorKind = "generic", retryable: bool) -> Failed:
    error = ClassifiedError(kind=kind, message=message, retryable=retryable)
    return attempt.failed(error)
