"""What a worker does beside the turns of its chats: it names a chat after its first turn, and labels each turn.

Each chat's work is a task of its own that begins when the chat is let go. It has its own appends, which no turn waits
for, and what fails in it is logged; when the worker stops, it is dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from chatstate import commands as c
from chatstate.errors import Refusal
from events.content import Content
from events.control import Control
from events.ids import ChatId, MessageId
from events.messages import Step
from events.records import AttemptReport, Policy, SideCallKind
from events.state import ChatState
from generation.agents import Agent
from generation.errors import UnknownModel
from generation.models import ModelConfig
from generation.naming import (
    LABEL_SYSTEM,
    TITLE_SYSTEM,
    Titles,
    ask_for_label,
    ask_for_title,
    first_said,
    is_nameless,
    latest_turn,
    to_name,
    turns_of,
)
from generation.observing import Effect
from generation.plans import may_write_beside, takes_beside
from generation.runtime import Runtime
from generation.side_calls import DEADLINE, LABEL_TOKENS, TITLE_TOKENS, Question, SideAnswer, ask
from generation.titles import Turn, fallback_label, fallback_title, label_of, title_of
from store.append import PlanRun
from store.loading import LoadedChat
from store.log import get_logger

_log = get_logger(__name__)

_LABELLED: Final = ("waiting", "requires_action", "error")
"""Statuses in which a turn has ended, or waits for its user."""

_ENDING: Final = 1.0
"""Seconds that the work gets to end when it is dropped."""


def candidates(agent: Agent, control: Control) -> tuple[ModelConfig, ...]:
    """Return the models that are asked beside the turns of a chat, in order."""
    try:
        own = agent.find_model(control.model)
    except UnknownModel:
        own = None  # its turns fail, and say so
    return (agent.titles or Titles()).candidates(own, agent.configured)


async def record(
    runtime: Runtime,
    chat: ChatId,
    kind: SideCallKind,
    spent: Sequence[Step],
    also: Callable[[ChatState], c.AnyCommand | None] = lambda _: None,
) -> None:
    """Record in one append what side calls took, and what came of them where the chat still wants it.

    Raises:
        StoreError: It was not written.
        Refusal: The chat does not take it.
    """

    def plan(run: PlanRun) -> None:
        if not may_write_beside(run):
            return
        for step in spent:
            run.do(c.RecordSideCall(kind=kind, report=AttemptReport(step=step)))
        command = also(run.state)
        if command is not None:
            run.do(command)

    await runtime.journal.execute(chat, plan, runtime.identity(), transcript=True)


def _effect(runtime: Runtime, loaded: LoadedChat, kind: SideCallKind, state: ChatState) -> Effect | None:
    """Return what observers are told that calls beside the turns are for; None where nobody observes."""
    if not runtime.observed:
        return None
    control = state.control
    agent = runtime.agents[control.agent]
    none_yet = Policy(agent=agent.name, revision=agent.revision, model=None)
    return Effect(
        chat=loaded.header.chat,
        owner=loaded.header.owner,
        agent=agent.name,
        turn=control.indexes.turn_start,
        history_version=control.history_version,
        attempt=0,
        epoch=control.epoch,
        kind=kind,
        policy=state.need_transcript("ask beside the turns").policies.get(control.policy, none_yet),
        began_at=runtime.now(),
        version=control.version,
    )


async def propose_title(runtime: Runtime, agent: Agent, loaded: LoadedChat) -> SideAnswer:
    """Ask for a title of all the conversation, and record what that took; the chat keeps the title that it has.

    Raises:
        StoreError: What it took was not written.
        Refusal: The chat does not take it.
    """
    state = loaded.state
    text = ask_for_title(turns_of(state))
    if text is None:
        return SideAnswer(text=fallback_title(""))
    spent: list[Step] = []
    question = Question(system=TITLE_SYSTEM, text=text, tokens=TITLE_TOKENS, accept=title_of, any_error=False)
    told = _effect(runtime, loaded, "title", state)
    answer = await ask(runtime, candidates(agent, state.control), question, spent, told)
    if spent:
        await record(runtime, loaded.header.chat, "title", spent)
    return answer


class _Wanted(Struct, frozen=True):
    """A chat as it was let go, whose work is to be done."""

    agent: Agent
    titles: Titles
    loaded: LoadedChat


class SideJobs:
    """The work beside the turns of one worker's chats.

    Args:
        runtime: The process's parts.
        deadline: Seconds that each model has.
    """

    def __init__(self, runtime: Runtime, deadline: float = DEADLINE) -> None:
        self._runtime = runtime
        self._deadline = deadline
        self._tasks: Final[dict[ChatId, asyncio.Task[None]]] = {}
        self._wanted: Final[dict[ChatId, _Wanted]] = {}

    def begin(self, chat: ChatId, loaded: LoadedChat) -> None:
        """Begin what there is to do for a chat that was let go, after what is under way for it."""
        agent = self._runtime.agents.get(loaded.state.control.agent)
        titles = None if agent is None else agent.titles
        header, control = loaded.header, loaded.state.control
        if agent is None or titles is None or control.status not in _LABELLED:
            return
        if not takes_beside(control, foreign=header.foreign, level=header.reader_level):
            return
        self._wanted[chat] = _Wanted(agent, titles, loaded)
        if chat not in self._tasks:
            self._tasks[chat] = asyncio.create_task(self._work(chat), name=f"aside {chat}")

    async def stop(self) -> None:
        """Drop the work that is under way."""
        self._wanted.clear()
        tasks = tuple(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_ENDING)

    async def _work(self, chat: ChatId) -> None:
        while (wanted := self._wanted.pop(chat, None)) is not None:
            for job, on in ((self._name, wanted.titles.auto), (self._label, wanted.titles.labels)):
                if not on:
                    continue
                try:
                    await job(chat, wanted)
                except Refusal as refusal:
                    # Deleted, or put away meanwhile.
                    _log.debug("side_work_refused", chat=chat, code=refusal.code)
                except Exception as error:  # noqa: BLE001 - best effort: no turn waits for it, and none is its cause
                    _log.warning("side_work_failed", chat=chat, exc_info=error)
        # At once, not when the task is done: what begins in between would be left lying.
        del self._tasks[chat]

    async def _state(self, chat: ChatId, wanted: _Wanted) -> ChatState:
        state = wanted.loaded.state
        if state.transcript is not None:
            return state
        loaded = await self._runtime.journal.load(chat, transcript=True)
        return state if loaded is None else loaded.state

    async def _name(self, chat: ChatId, wanted: _Wanted) -> None:
        state = await self._state(chat, wanted)
        said = to_name(state)
        text = None if said is None else ask_for_title([Turn(said, "")])
        if said is None or text is None:
            return
        spent: list[Step] = []
        question = self._question(TITLE_SYSTEM, text, TITLE_TOKENS, title_of)
        told = _effect(self._runtime, wanted.loaded, "title", state)
        answer = await ask(self._runtime, candidates(wanted.agent, state.control), question, spent, told)
        title = answer.text or fallback_title(said)

        def still(now: ChatState) -> c.AnyCommand | None:
            known = now.need_transcript("name the chat").title
            same = known is not None and known.available and known.text == title
            # What was edited or erased meanwhile must not come back as a title.
            wanted = first_said(now) == said and is_nameless(now, said) and not same
            return c.SetTitle(title=Content(title)) if wanted else None

        await record(self._runtime, chat, "title", spent, still)

    async def _label(self, chat: ChatId, wanted: _Wanted) -> None:
        state = await self._state(chat, wanted)
        turn, status = latest_turn(state), state.control.status
        if turn is None:
            return
        opened: MessageId | None = state.control.indexes.turn_start
        spent: list[Step] = []
        label = fallback_label(status)
        if status != "requires_action":  # that it waits for its user is all there is to say of it
            question = self._question(LABEL_SYSTEM, ask_for_label(turn, status), LABEL_TOKENS, label_of)
            told = _effect(self._runtime, wanted.loaded, "label", state)
            answer = await ask(self._runtime, candidates(wanted.agent, state.control), question, spent, told)
            label = answer.text or label

        def still(now: ChatState) -> c.AnyCommand | None:
            known = now.need_transcript("label the turn").turn_label
            same = known is not None and known.available and known.text == label
            current = (now.control.indexes.turn_start, now.control.status) == (opened, status)
            wanted = current and latest_turn(now) == turn and not same
            return c.SetTurnLabel(label=Content(label)) if wanted else None

        await record(self._runtime, chat, "label", spent, still)

    def _question(self, system: str, text: str, tokens: int, accept: Callable[[str], str | None]) -> Question:
        return Question(system=system, text=text, tokens=tokens, accept=accept, deadline=self._deadline)
