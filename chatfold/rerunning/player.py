"""One holder of the chat: the engine's own runner, among stand-ins for all that is not the engine."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final, Protocol

from msgspec.structs import replace

from chatfold.rerunning.agents import Agents
from chatfold.rerunning.answers import result_of
from chatfold.rerunning.declarations import Declarations
from chatfold.rerunning.fates import Fate
from chatfold.rerunning.gate import GatedJournal
from chatfold.rerunning.models import RecordedModel, RecordedSource
from chatfold.rerunning.script import Script
from chatfold.rerunning.store import RerunStore
from chatfold.rerunning.tools import RecordedCall, RecordedHooks, hook_failure, unrecorded
from chatstate.commands import AnyCommand, RecordToolResult
from events import vocabulary as v
from events.content import Content
from events.control import Control
from events.ids import CallKey, ChatId, WorkerId
from events.parts import ToolResultPart
from events.records import ReleaseReason
from generation.agents import Agent
from generation.flushing import Leftovers
from generation.partials import Leftover
from generation.parts import PartBuffer
from generation.plans import Held, Hold
from generation.prompt_types import ModelRequest
from generation.runner import ChatRunner
from generation.runtime import Runtime, WorkerSettings
from generation.tools.arguments import same_arguments
from generation.tools.execute import CallEnvironment
from generation.tools.policy import ToolCall
from generation.tools.registry import ToolSet
from store.append import Outcome
from store.errors import Unstorable
from store.loading import LoadedChat
from store.warm import WarmChats

GRACE: Final = 5.0
"""Virtual seconds that an interruption or a release waits for tools that run."""
_NEVER: Final = 1e9
"""Virtual seconds after which nobody is taken for silent: who was, is in the log."""

_LOST: Final = Content("what could not be recorded")


class Stage(Protocol):
    """What players share."""

    @property
    def script(self) -> Script:
        """The log."""
        ...

    @property
    def chat(self) -> ChatId:
        """The chat."""
        ...

    @property
    def store(self) -> RerunStore:
        """Where it is kept."""
        ...

    @property
    def warm(self) -> WarmChats:
        """The chat as it is known."""
        ...

    @property
    def agents(self) -> Mapping[str, Agent]:
        """Today's agents by name."""
        ...

    @property
    def kept(self) -> Declarations:
        """What agents said then, as far as it was kept."""
        ...

    @property
    def redacted(self) -> bool:
        """Whether the log's contents are made up."""
        ...

    def now(self) -> int:
        """Return the log's time, microseconds UTC."""
        ...

    def new_id(self) -> str:
        """Return an id that nobody has."""
        ...

    def held(self, control: Control, level: int) -> Held | None:
        """Return the policy that a worker holds at a moment; None where it has not the agent."""
        ...

    def appended(self, outcome: Outcome) -> None:
        """Take what an append did."""
        ...

    def asked(self, request: ModelRequest) -> None:
        """Take a request that was made."""
        ...

    def called(self, call: ToolCall, result: ToolResultPart | None, tools: ToolSet) -> None:
        """Take a call that was started, with its result in the log and the tools of today."""
        ...


class Player:
    """A worker, from the moment it takes the chat until it lets it go or is lost.

    Args:
        stage: What players share.
        worker: Its id.
        release: Its release.
        stop: Why it lets the chat go at once; None where it does not.
    """

    def __init__(self, stage: Stage, worker: WorkerId, release: str, stop: ReleaseReason | None = None) -> None:
        self._stage: Final = stage
        self._stop: Final = stop
        self._fate: Fate | None = None
        self._calls: Final[dict[CallKey, RecordedCall]] = {}
        self._task: asyncio.Task[None] | None = None
        self.journal: Final = GatedJournal(stage.store, stage.warm, self._appended, self._check, len(stage.script.log))
        self.gate: Final = self.journal.gate
        self.runtime: Final = Runtime(
            journal=self.journal,
            agents=Agents(stage.agents, self._source, stage.script, stage.kept, redacted=stage.redacted),
            provider=lambda model: RecordedModel(model.partition("/")[0], self._fated, stage.asked),
            parts=PartBuffer(asyncio.get_running_loop().time),
            now=stage.now,
            new_id=stage.new_id,
            release=release,
            settings=_settings(stage.script),
            worker=worker,
            hooks=RecordedHooks(lambda: self._fate, nudges=stage.script.nudges),
            policies=stage.held,
            call_starter=self._start,
            leftovers=lambda _: RecordedLeftovers(stage.script),
        )
        self.runner = ChatRunner(self.runtime, stage.chat)
        self.fault: Exception | None = None

    def hold_at(self, epoch: int) -> Hold:
        """Return its hold of the chat at an epoch."""
        actor = self.runtime.actor
        return Hold(
            worker=self.runtime.worker,
            actor=actor,
            epoch=epoch,
            policy_for=self.runtime.policy_for,
            stop=lambda: self._stop,
        )

    def began(self, outcome: Outcome) -> None:
        """Take note of the attempt that an append of somebody else's started for it."""
        self._note(outcome)

    def begin(self, loaded: LoadedChat | None = None) -> None:
        """Let its runner run, which takes the chat first where it is not ``loaded``."""
        if loaded is not None:
            self.runner = ChatRunner(self.runtime, self._stage.chat, loaded)
        elif self._stop is not None:
            self.runner.stop(self._stop)
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        try:
            await self.gate.leave()
            await self.runner.run()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what today's code does
            self.fault = error

    def lose(self) -> None:
        """Let it be gone: it writes nothing any more."""
        self.gate.close()
        self.runner.lose()
        self.gate.let_go()
        if self._task is not None:
            self._task.cancel()

    def give(self, results: Iterable[v.ToolResultRecorded], *behind: v.Event) -> None:
        """Let tools give results; ``behind`` are the events of the same append behind them."""
        fault = hook_failure(*behind)
        for each in results:
            call = self._calls.pop(each.result.call, None)
            if call is not None and not call.unstarted:
                lost = unrecorded(each.result) is not None
                call.give(result_of(replace(each.result, output=_LOST, is_error=False) if lost else each.result, fault))
                fault = None

    def _fated(self) -> Fate:
        if self._fate is None:
            raise RuntimeError("no attempt is under way")
        return self._fate

    def _appended(self, outcome: Outcome) -> None:
        self._stage.appended(outcome)
        self._note(outcome)

    def _note(self, outcome: Outcome) -> None:
        last = outcome.recorded[-1]
        if not isinstance(last.event, v.AttemptStarted):
            return
        fate = self._stage.script.fate(last.version)
        if fate is None:
            return  # the log has another event there: so it was found to differ
        self._fate = fate
        if not fate.begun:
            self.gate.hold()

    def _check(self, command: AnyCommand) -> None:
        """Refuse to record what could not be recorded.

        Raises:
            Unstorable: It is the result of a tool in whose place the log has why not.
        """
        if not isinstance(command, RecordToolResult) or command.result.output != _LOST or self._fate is None:
            return
        recorded = self._fate.results.get(command.result.call)
        if recorded is not None and (why := unrecorded(recorded)) is not None:
            raise Unstorable(why)

    def _start(self, call: ToolCall, env: CallEnvironment) -> RecordedCall:
        """Start a call.

        Raises:
            RuntimeError: It would be run with other arguments than it was.
        """
        given, wanted = call.in_force, self._stage.script.arguments.get(call.key)
        if None not in (given, wanted) and given != wanted and not same_arguments(str(given), str(wanted)):
            raise RuntimeError(f"call {call.key} is run with other arguments than the log has")
        result = self._fated().results.get(call.key)
        self._stage.called(call, result, env.tools)
        started = self._calls[call.key] = RecordedCall(call, result)
        return started

    def _source(self, agent: str) -> RecordedSource | None:
        names = (policy.context_source for policy in self._stage.script.policies.values() if policy.agent == agent)
        name = next((name for name in names if name is not None), None)
        return None if name is None else RecordedSource(name, self._fated)


class RecordedLeftovers(Leftovers):
    """What the attempts of dead holders left, as the log has it in the events that tell of them.

    Args:
        script: The log.
    """

    def __init__(self, script: Script) -> None:
        super().__init__()
        self._script: Final = script

    def of(self, control: Control) -> Leftover:
        """Return what the attempt under way left, whose holder is gone."""
        return self._script.left(control.version)


def _settings(script: Script) -> WorkerSettings:
    return WorkerSettings(
        watch_loop=False,
        grace=GRACE,
        first_part_timeout=_NEVER,
        silence_timeout=_NEVER,
        context_timeout=script.context_timeout or _NEVER,
        model_retry_unit=script.retry_unit,
    )
