"""Who sees to which chat in this process: runners, and commands that are about to make one. No I/O."""

from __future__ import annotations

from dataclasses import dataclass, field

from events.ids import ChatId
from events.records import ReleaseReason
from generation.runner import ChatRunner


@dataclass(slots=True)
class Roster:
    """What a worker has in hand.

    Attributes:
        capacity: Chats that it runs at once.
        runners: The runner of each chat.
        taken: Chats that a command is acquiring.
        stopping: Why the worker stops, if it does.
    """

    capacity: int
    runners: dict[ChatId, ChatRunner] = field(default_factory=dict)
    taken: set[ChatId] = field(default_factory=set)
    stopping: ReleaseReason | None = None

    def free(self) -> int:
        """Return how many more chats may be taken; below 0 where interruptions were picked up beyond the capacity."""
        return self.capacity - len(self.taken.union(self.runners))

    def is_stray(self, chat: ChatId) -> bool:
        """Whether nobody here sees to ``chat``: neither a runner nor a command that is about to make one."""
        return chat not in self.runners and chat not in self.taken and self.stopping is None

    def acquiring(self) -> list[ChatId]:
        """Return the chats whose runners are about to acquire them."""
        return [chat for chat, runner in self.runners.items() if runner.state is None]
