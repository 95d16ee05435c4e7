"""What the debugger shows and where it stands, without a terminal: a log, a version, a mark, a breakpoint. Pure.

Every move is a method and leaves the model at a version that exists. A move that finds nothing says so in ``said`` and
stays where it was.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from chatfold.replaying.conditions import Condition, Moment, parse_condition
from chatfold.stepper.jumps import Direction, find
from chatfold.stepper.longlog import LongLog
from chatfold.stepper.prompt_view import PromptHead
from events.checkpoints import EVERY, Checkpoints
from events.envelope import Recorded
from events.errors import InvalidValue
from events.records import ErrorInfo
from events.state import ChatState
from generation.prompt import BuiltPrompt, Prompt

if TYPE_CHECKING:
    from generation.agents import Agent


class Stepper:
    """A walk through a log.

    Args:
        log: The log.
        at: Where to begin; None for its end.
        stop_at: A breakpoint.
        agents: Today's agents: what they declare stands before the prompts of their chats.

    Attributes:
        log: The log.
        version: Where it stands; 0 is before the first event.
        mark: The version against which the state is compared; None for the one before.
        breakpoint: Where ``go_on`` stops.
        said: What the last move has to say; empty where it went well.

    Raises:
        InvalidValue: The log has no such version.
    """

    def __init__(
        self, log: LongLog, at: int | None = None, stop_at: Condition | None = None, *, agents: Iterable[Agent] = ()
    ) -> None:
        self.log: Final = log
        self._agents: Final = {agent.name: agent for agent in agents}
        self.points: Final = Checkpoints(log.events, log.blobs)
        self._whole: Checkpoints | None = None
        self.version = len(log.events) if at is None else at
        self.mark: int | None = None
        self.breakpoint = stop_at
        self.said = ""
        if not 0 <= self.version <= self.last:
            raise InvalidValue("$.at", f"there is no version {self.version}; {log.name} has 0 to {self.last}")

    @property
    def last(self) -> int:
        """The log's last version."""
        return len(self.points)

    @property
    def ready(self) -> bool:
        """Whether the state at the version is known, or near one that is: until then it takes its time."""
        return self.version <= min(self.points.caught_up + EVERY, self.log.read_to)

    @property
    def state(self) -> ChatState:
        """The state at the version, without contents."""
        return self.points.state(self.version)

    def error(self) -> ErrorInfo | None:
        """Return the error in the state at the version, with its text where the event that has it is near."""
        control = self.state.control
        known = control.last_error if control.retry is None else control.retry.error
        if known is None:
            return None
        for version in range(self.version, max(0, self.version - EVERY), -1):
            if getattr(self.points.recorded(version, content=False).event, "error", None) is not None:
                told: ErrorInfo | None = getattr(self.points.recorded(version).event, "error", None)
                return told
        return known

    @property
    def compared(self) -> int:
        """The version against which the state is compared: the mark, or the version before."""
        return max(self.version - 1, 0) if self.mark is None else min(self.mark, self.last)

    @property
    def base(self) -> ChatState:
        """The state against which the state is compared."""
        return self.points.state(self.compared)

    @property
    def event(self) -> Recorded | None:
        """The event of the version, with its contents; None before the first."""
        return self.points.recorded(self.version) if self.version else None

    def moment(self) -> Moment | None:
        """Return what a condition is asked of here; None before the first event."""
        event = self.event
        return None if event is None else Moment(self.points.state(self.version - 1), event, self.state)

    def go(self, version: int) -> None:
        """Go to a version, or the nearest that there is."""
        self.said = ""
        self.version = max(0, min(version, self.last))
        if self.version != version:
            self.said = f"there is no version {version}; the log has 0 to {self.last}"

    def step(self, by: int) -> None:
        """Go forward or back; at an end it stays there."""
        self.said = ""
        self.version = max(0, min(self.version + by, self.last))

    def jump(self, condition: Condition, direction: Direction = 1) -> None:
        """Go to the nearest event at which a condition holds.

        Raises:
            EventsError: An event on the way cannot be read.
        """
        self.arrive(find(self.points, condition, self.version, direction), condition, direction)

    def arrive(self, found: int | None, condition: Condition, direction: Direction = 1) -> None:
        """Take what a search found that was begun from the version."""
        way = "after" if direction == 1 else "before"
        self.said = "" if found is not None else f"nothing {way} version {self.version} where {condition.text}"
        self.version = self.version if found is None else found

    def break_at(self, text: str) -> None:
        """Set the breakpoint, or lift it where the text is empty.

        Raises:
            ConditionError: The condition cannot be read; the breakpoint is as it was.
        """
        self.breakpoint = parse_condition(text) if text.strip() else None
        self.said = f"breakpoint: {text}" if self.breakpoint else "no breakpoint"

    def toggle_mark(self) -> None:
        """Compare with this version from now on; with the version before, where this one was marked."""
        self.mark = None if self.mark == self.version else self.version
        self.said = "compared with the version before" if self.mark is None else f"compared with version {self.mark}"

    def declared(self) -> PromptHead:
        """Return what today's agent of the chat says in each request, as far as it is known."""
        control = self.state.control
        agent = self._agents.get(control.agent)
        if agent is None:
            return PromptHead(agent=control.agent, given=tuple(self._agents))
        tools = tuple(tool.spec for tool in agent.offered(control.active_tools))
        return PromptHead(agent=agent.name, system=agent.system_texts, tools=tools)

    def prompt(self, version: int) -> BuiltPrompt:
        """Return the prompt that a provider would get after a version. On a long log it takes its time, once.

        Raises:
            EventsError: An event cannot be read.
            ContentUnavailable: A text is not at hand: its large content is not in the file.
        """
        if self._whole is None:
            self._whole = Checkpoints(self.log.events, self.log.blobs, content=True)
        self._whole.catch_up(max(0, self.log.read_to - self._whole.caught_up))
        return Prompt().build(self._whole.state(version).messages)
