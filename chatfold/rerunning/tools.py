"""Stand-ins for tools and hooks: no function of an application is ever entered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final, cast

from chatfold.rerunning.answers import classified
from chatfold.rerunning.fates import Fate
from chatfold.rerunning.models import summary_in
from events import vocabulary as v
from events.content import Content, Json
from events.ids import CallKey
from events.parts import HookContextPart, ToolResultPart
from events.reasons import Reason
from generation.errors import ClassifiedError, HookFailed
from generation.hooks.contract import HookEvent
from generation.hooks.dispatch import Hooks, Verdict
from generation.tools.execute import StartedCall
from generation.tools.output import CallResult, unrecordable
from generation.tools.policy import ToolCall


class RecordedCall:
    """A call that was started, and ends when its result is given, or when it is asked to end and the log has none.

    Args:
        call: The call.
        recorded: Its result in the log; None where there is none.
    """

    def __init__(self, call: ToolCall, recorded: ToolResultPart | None) -> None:
        self.call = call
        self.unstarted: Final = recorded is not None and recorded.reason is Reason.NOT_STARTED
        self._comes: Final = recorded is not None and not self.unstarted
        self._end: Final[asyncio.Future[CallResult | None]] = asyncio.get_running_loop().create_future()

    @property
    def waits(self) -> bool:
        """Whether nothing of it was entered."""
        return self.unstarted

    def give(self, result: CallResult) -> None:
        """End it with a result."""
        if not self._end.done():
            self._end.set_result(result)

    def on_done(self, callback: Callable[[StartedCall], None]) -> None:
        """See :class:`generation.tools.execute.StartedCall`."""
        self._end.add_done_callback(lambda _: callback(self))

    def tell(self) -> None:
        """Nothing is to be told: what it gave is recorded."""

    def cancel(self) -> None:
        """Ask it to end: one whose result is to come goes on to it."""
        if not self._comes:
            self.abandon()

    async def wait(self, grace: float | None = None) -> CallResult | None:
        """See :class:`generation.tools.execute.StartedCall`."""
        await asyncio.wait({self._end}, timeout=grace)
        self.abandon()
        return self.result()

    def result(self) -> CallResult | None:
        """Return its result; None where there is none."""
        return self._end.result() if self._end.done() else None

    def abandon(self) -> None:
        """Wait for it no longer."""
        if not self._end.done():
            self._end.set_result(None)


UNRECORDED: Final = cast("Content", unrecordable(ToolResultPart(call=CallKey("")), "").output).text
"""How the output begins that was recorded in the place of one that could not be."""


def unrecorded(recorded: ToolResultPart) -> str | None:
    """Return why a result could not be recorded in whose place this one stands; None where it is the tool's own."""
    output = recorded.output
    if not recorded.is_error or output is None or not isinstance(output.value, str):
        return None
    return output.value.removeprefix(UNRECORDED) if output.value.startswith(UNRECORDED) else None


class _Failed(HookFailed):
    """A hook that could not be asked, as the log has it."""

    def __init__(self, event: str, error: ClassifiedError) -> None:
        super().__init__("recorded", event, error.message)
        self._error = error

    def classified(self, *, on_request: bool = False) -> ClassifiedError:
        """Return what was recorded."""
        return self._error


_AGAIN: Final = "Go on once more."


class RecordedHooks(Hooks):
    """What hooks said of effects, as far as the log shows it. Tools are not asked about: their results have it.

    A hook that has let a turn go on says so again at its next end, which must change nothing: it may do so once.

    Args:
        fate: Gives the fate of the attempt under way; None where there is none.
        nudges: Whether a hook lets a turn go on somewhere in the log.
    """

    def __init__(self, fate: Callable[[], Fate | None], *, nudges: bool = False) -> None:
        super().__init__()
        self._fate: Final = fate
        self._nudges: Final = nudges

    def __bool__(self) -> bool:
        return True

    def at(self, *events: HookEvent) -> bool:
        """Whether the log shows that a hook said something at one of some events."""
        return ("stop" in events and self._nudges) or any(event in self._said() for event in events)

    async def ask(
        self, event: HookEvent, chat: str, place: str, facts: Mapping[str, Json], *, input_as: str | None = None
    ) -> Verdict:
        """Say what was said.

        Raises:
            HookFailed: That could not be asked.
        """
        said = self._said().get(event)
        if isinstance(said, ClassifiedError):
            raise _Failed(event, said)
        if facts.get("nudged") is True:
            return Verdict((_AGAIN,))
        return Verdict() if said is None else Verdict((said,))

    def _said(self) -> dict[str, str | ClassifiedError]:
        fate = self._fate()
        return {} if fate is None or not fate.own else _said(fate)


def _said(fate: Fate) -> dict[str, str | ClassifiedError]:
    """Return what hooks said by what they were asked at."""
    ended = fate.ended
    failed = hook_failure(*fate.beside)
    match ended:
        case v.StepCommitted() if failed is not None:
            return {"stop": failed}
        case v.StepCommitted():
            parts = (part for message in ended.added for part in message.parts)
            more = next((part for part in parts if isinstance(part, HookContextPart)), None)
            return {} if more is None else {"stop": more.text.text}
        case v.CompactionCommitted() if failed is not None:
            return {"post_compact": failed}
        case v.CompactionCommitted() if (context := summary_in(ended)[1]) is not None:
            return {"post_compact": context}
        case v.TurnFailed() if fate.kind == "compact" and (refused := hook_failure(ended)) is not None:
            return {"pre_compact": refused}
        case _:
            return {}


def hook_failure(*events: v.Event) -> ClassifiedError | None:
    """Return why a turn failed by a hook in one of some events; None where none did."""
    for event in events:
        if isinstance(event, v.TurnFailed) and event.error.kind == HookFailed.kind:
            return classified(event.error)
    return None
