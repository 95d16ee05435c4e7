"""The closed list of reasons why a tool call was answered without its tool, and the text that models and people read.

An event stores the reason alone; the text is looked up when a prompt is built or a message is shown.
"""

from enum import StrEnum
from types import MappingProxyType
from typing import Final


class Reason(StrEnum):
    """Why a synthetic result stands in for a tool's own. ``chatstate.cancellations`` says which trigger gives which."""

    NEW_MESSAGE = "new_message"
    PROMOTION = "promotion"
    EDIT = "edit"
    INTERRUPT = "interrupt"
    INTERRUPTED_UNKNOWN = "interrupted_unknown"
    NOT_STARTED = "not_started"
    ACTION_TIMED_OUT = "action_timed_out"
    FORK = "fork"
    CLEAR = "clear"
    COMPACT = "compact"
    REPAIRED = "repaired"
    WORKER_LOST = "worker_lost"


REASON_TEXTS: Final = MappingProxyType(
    {
        Reason.NEW_MESSAGE: "Not run: the user sent a new message instead.",
        Reason.PROMOTION: "Not run: the next queued message of the user was taken up instead.",
        Reason.EDIT: "Not run: the user edited the conversation.",
        Reason.INTERRUPT: "Not run: the user interrupted the turn.",
        Reason.INTERRUPTED_UNKNOWN: "Interrupted while running: it is not known whether it took effect. "
        "Check before running it again.",
        Reason.NOT_STARTED: "Interrupted before it was started: it had no effect.",
        Reason.ACTION_TIMED_OUT: "No answer came within the time allowed.",
        Reason.FORK: "Not run here: the conversation was forked before the result was known.",
        Reason.CLEAR: "Not run: the user cleared the conversation's context.",
        Reason.COMPACT: "Not run: the user asked for the conversation to be compacted.",
        Reason.REPAIRED: "No result is known: the chat was repaired.",
        Reason.WORKER_LOST: "The worker was lost while this was running: it is not known whether it took effect. "
        "Check before running it again.",
    }
)
