"""The context effect: collect the files of the agent's context source."""

from __future__ import annotations

from events.messages import ContextMark, Message
from generation.actions.attempt import Attempt
from generation.context import recorded_revision
from generation.errors import ClassifiedError
from generation.outcomes import ContextCollected, Failed
from generation.plans import Outcome
from store.log import get_logger

_log = get_logger(__name__)


async def collect_context(attempt: Attempt) -> Outcome:
    """Ask the source once.

    An application's source may raise anything: the attempt is tried again, then the turn fails.
    """
    source = attempt.agent.context
    if source is None:
        return _failed(attempt, "The agent's context source is not here.", retryable=False)
    try:
        context = await source.collect(attempt.chat)
    except Exception as error:  # noqa: BLE001 - an application's part may raise anything
        _log.warning("context_collection_failed", chat=attempt.chat, source=source.name, exc_info=error)
        return _failed(attempt, f"The context source {source.name} failed.", retryable=True)
    revision = recorded_revision(source, context, attempt.policy.context_revision)
    return ContextCollected(
        message=Message(
            role="system",
            visibility="model",
            parts=tuple(file.part() for file in context.files),
            context=ContextMark(source=source.name, revision=revision),
        )
    )


def _failed(attempt: Attempt, message: str, *, retryable: bool) -> Failed:
    error = ClassifiedError(kind="generic", message=message, retryable=retryable)
    return attempt.failed(error)
