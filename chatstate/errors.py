"""Refusals of the machine: typed, with a stable code, the trigger and the execution state. A refusal changes nothing.

State is checked before ids, so a refusal names the first thing that stands in the way.
"""

from __future__ import annotations

from typing import ClassVar, Final


class Refusal(Exception):
    """Base of all refusals.

    Attributes:
        code: Stable name for clients.
        trigger: The trigger that was refused.
        state: The execution state it was refused in.
        reason: Why, and what to do.
    """

    code: ClassVar[str] = "refusal"

    def __init__(self, trigger: str, state: str, reason: str) -> None:
        # A chat that is not there has no state to speak of, and one that is to be made has none yet.
        where = "" if state == "N" or trigger in {"create", "fork"} else f" in {state}"
        super().__init__(f"{trigger} refused{where}: {reason}")
        self.trigger = trigger
        self.state = state
        self.reason = reason


class TransitionNotAllowed(Refusal):
    """The machine has no such transition from this state."""

    code = "transition_not_allowed"


class InvalidState(Refusal):
    """The chat is in a combination that must not be; only reconcile leads out of it."""

    code = "invalid_state"


class ChatNotFound(Refusal):
    """There is no such chat."""

    code = "chat_not_found"


class ChatForeign(Refusal):
    """The chat was imported and is not this store's to run: read, replay, fork, export or adopt it."""

    code = "chat_foreign"


class QueueFull(Refusal):
    """The queue holds as many messages as it may; ``limit`` says how many."""

    code = "queue_full"

    def __init__(self, trigger: str, state: str, limit: int) -> None:
        super().__init__(trigger, state, f"the queue holds {limit} messages already; wait, or delete one")
        self.limit = limit


class MessageNotFound(Refusal):
    """No message of this id is in history (it never was, or it was removed); or to be erased, it never was."""

    code = "message_not_found"


class NotAUserMessage(Refusal):
    """Only a user's message that clients see can be edited."""

    code = "not_a_user_message"


class QueuedNotFound(Refusal):
    """No message of this id is in the queue."""

    code = "queued_not_found"


class NothingToCompact(Refusal):
    """No uncompressed assistant message follows the newest boundary."""

    code = "nothing_to_compact"


class NothingToClear(Refusal):
    """Nothing that the model reads follows the newest boundary, of which a compaction's summary is a part."""

    code = "nothing_to_clear"


class NothingOwed(Refusal):
    """History owes no turn: there is nothing to resume."""

    code = "nothing_owed"


class ActionStale(Refusal):
    """The action is not open any more: answered, expired, or another one is open."""

    code = "action_stale"


_PROBLEMS: Final = {
    "none_given": "no results were given",
    "duplicate": "a call is answered twice",
    "invalid_json": "what was given cannot be taken",
    "missing": "answers are missing",
    "unexpected": "nobody asked for these answers",
    "invalid_arguments": "a call is approved with arguments that its tool does not take",
    "limits_reached": "it would be asked again at once; raise these limits, lift them (NO_LIMIT), or end the turn",
}


class ToolResultsInvalid(Refusal):
    """Submitted results do not match the open actions.

    Attributes:
        kind: ``none_given``, ``duplicate``, ``invalid_json``, ``missing``, ``unexpected``, ``invalid_arguments`` or
            ``limits_reached``, in the order of checking.
        ids: The calls concerned; of ``limits_reached`` the names of the limits, as ``Budget`` has them.
        why: What is wrong with each of them, in the same order, where there is more to say than the kind.
    """

    code = "tool_results_invalid"

    def __init__(
        self, trigger: str, state: str, kind: str, ids: tuple[str, ...] = (), why: tuple[str, ...] = ()
    ) -> None:
        said = "; ".join(f"{name}: {each}" for name, each in zip(ids, why, strict=True)) if why else ", ".join(ids)
        super().__init__(trigger, state, f"{_PROBLEMS.get(kind, kind)}{': ' + said if said else ''}")
        self.kind = kind
        self.ids = ids
        self.why = why


class StaleFence(Refusal):
    """A worker's command was overtaken: its epoch, history version or attempt is not the chat's any more."""

    code = "stale_fence"


class IdempotencyConflict(Refusal):
    """The command id was used before with other content."""

    code = "idempotency_conflict"


class ContentTooLarge(Refusal):
    """An event or a message would be over its size limit."""

    code = "too_large"
