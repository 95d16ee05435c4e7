"""Typed identifiers.

An id of this layer is a plain string or integer with a name of its own for the type checker. Ids of messages and calls
are positions in the log, so they are derived when an event is folded and never drawn at random; ids of chats, workers
and commands come from the caller.
"""

from typing import Final, NewType

ChatId = NewType("ChatId", str)
"""A chat. Given by the caller or derived from (owner, command id)."""

MessageId = NewType("MessageId", str)
"""``version.index`` of the event that created the message; a queued message keeps its id when it is promoted."""

CallKey = NewType("CallKey", str)
"""``version.index.part``: the message that holds the call and the position of the call among that message's parts."""

WorkerId = NewType("WorkerId", str)
"""One start of one worker process."""

CommandId = NewType("CommandId", str)
"""What makes a command idempotent within its chat."""


_SHARED: Final = 2048
_FIRST: Final = [MessageId(f"{version}.0") for version in range(_SHARED)]
"""Ids of events' first messages: all chats have the same, so all share them."""


def message_id(version: int, index: int) -> MessageId:
    """Return the id of the message at ``index`` of the event at ``version``."""
    if index == 0 and 0 <= version < _SHARED:
        return _FIRST[version]
    return f"{version}.{index}"  # type: ignore[return-value]  # without the call of the type: each fold asks for many


def place_of(message: MessageId) -> tuple[int, int] | None:
    """Return the version and the index that an id is made of; None of a text that is no id."""
    version, _, index = message.partition(".")
    if not (version.isascii() and version.isdecimal() and index.isascii() and index.isdecimal()):
        return None
    place = int(version), int(index)
    return place if message_id(*place) == message else None


def call_key(message: MessageId, part: int) -> CallKey:
    """Return the identity of the tool call at position ``part`` of ``message``."""
    return CallKey(f"{message}.{part}")


def message_of(call: CallKey) -> MessageId:
    """Return the message that holds ``call``."""
    return MessageId(call.rpartition(".")[0])


def part_of(call: CallKey) -> int:
    """Return the position of ``call`` among the parts of its message."""
    return int(call.rpartition(".")[2])
