"""The context effect: collect the files of the agent's context source."""

from __future__ import annotations

import asyncio

from events.messages import ContextMark, Message
from generation.actions.attempt import Attempt
from generation.context import Context, recorded_revision
from generation.errors import ClassifiedError, ErrorKind
from generation.foreign import contained
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
    source, scope, limit = attempt.agent.context, attempt.scope, attempt.runtime.settings.context_timeout
    if source is None:
        return _failed(attempt, "The agent's context source is not here.", retryable=False)

    def too_late() -> Failed:
        _log.warning("context_collection_timed_out", chat=attempt.chat, source=source.name)
        why = f"The context source {source.name} gave nothing in {limit:g} seconds."
        return _failed(attempt, why, kind="timeout", retryable=True)

    scope.left_with = lambda: too_late() if scope.cause is None else None
    guard = attempt.guard(limit)
    try:
        with contained():
            context: object = await source.collect(attempt.chat)
    except (Exception, asyncio.CancelledError) as error:  # an application's part may raise anything
        if attempt.timed_out(guard):
            return too_late()
        if isinstance(error, asyncio.CancelledError):
            raise
        _log.warning("context_collection_failed", chat=attempt.chat, source=source.name, exc_info=error)
        return _failed(attempt, f"The context source {source.name} failed.", retryable=True)
    finally:
        guard.end()
    if not isinstance(context, Context):
        _log.warning("context_collection_failed", chat=attempt.chat, source=source.name, error=type(context).__name__)
        why = f"The context source {source.name} failed: it must return a Context, not {type(context).__name__}."
        return _failed(attempt, why, retryable=True)
    revision = recorded_revision(source, context, attempt.policy.context_revision)
    return ContextCollected(
        message=Message(
            role="system",
            visibility="model",
            parts=context.parts(),
            context=ContextMark(source=source.name, revision=revision),
        )
    )


def _failed(attempt: Attempt, message: str, *, kind: ErrorKind = "generic", retryable: bool) -> Failed:
    error = ClassifiedError(kind=kind, message=message, retryable=retryable)
    return attempt.failed(error)
