"""Long random lives of chats: what holds for a state of the bounded space holds for any sequence.

Hypothesis draws which of the commands that the machine takes is given next; a failing life is shrunk.
"""

from __future__ import annotations

from itertools import count

from hypothesis import given, settings
from hypothesis import strategies as st

from chatfold.testing.prompts import prompt_problems
from chatstate import commands as c
from chatstate.audit import audit
from chatstate.classify import X
from chatstate.errors import Refusal
from chatstate.fork import plan_imports
from chatstate.invariants import violations
from chatstate.table import TABLE
from events.codec import decode
from events.content import Content
from events.control import encode_control
from events.envelope import Recorded
from events.ledger import ledger_of
from events.messages import Message
from events.parts import ToolResultPart
from events.reducer import evolve, fold
from events.state import ChatState
from events.vocabulary import CompactionUndone, ContentErased, MessageEdited
from tests.chatstate import build as b
from tests.chatstate.chat import Chat, store, trace
from tests.chatstate.space import every_command

CHOICES = st.lists(st.integers(0, 10_000), min_size=20, max_size=80)
"""One number per step: which of the commands that are taken is given."""


def live(choices: list[int]) -> list[Chat]:
    """Return a chat after each step of a life."""
    chat = Chat()
    chat.do(b.create(b.system(), b.user(), b.user("Two questions.")))
    steps = [chat]
    for choice in choices:
        given_ = [t for t in every_command(chat.state, chat.now) if t.command.trigger in TABLE[chat.x]]
        # Of a trigger with many variants not more is drawn than of one with few.
        triggers = sorted({timed.command.trigger for timed in given_})
        for offset in count():
            trigger = triggers[(choice + offset) % len(triggers)]
            variants = [timed for timed in given_ if timed.command.trigger == trigger]
            if taken(chat, variants[choice // len(triggers) % len(variants)].command, chat.now + 1_000_000_000):
                break
        after = Chat(chat.state)
        after.log, after.now = list(chat.log), chat.now
        steps.append(after)
        chat = after
    return steps


def taken(chat: Chat, command: c.AnyCommand, now: int) -> bool:
    try:
        chat.do(command, now=now)
    except Refusal:
        return False
    return True


@settings(max_examples=40)
@given(CHOICES)
def test_every_state_of_a_life_is_sound_and_its_log_is_accepted(choices: list[int]) -> None:
    steps = live(choices)
    for chat in steps:
        assert violations(chat.state) == []
    assert list(audit(steps[-1].log)) == []
    assert prompt_problems(steps[-1].log) == []
    ledger, control = ledger_of(steps[-1].log), steps[-1].control
    assert (ledger.usage, ledger.cost_micros) == (control.usage, control.cost_micros)


@settings(max_examples=40)
@given(CHOICES)
def test_folding_the_log_gives_the_state_that_the_steps_gave(choices: list[int]) -> None:
    chat = live(choices)[-1]
    whole = fold(chat.log)
    assert trace(whole) == trace(chat.state)
    half = fold(chat.log[: len(chat.log) // 2])
    assert trace(fold(chat.log[len(chat.log) // 2 :], half)) == trace(chat.state)


@settings(max_examples=40)
@given(CHOICES)
def test_states_before_an_event_stay_as_they_were(choices: list[int]) -> None:
    state, states, traces = Chat().state, [], []
    for recorded in live(choices)[-1].log:
        states.append(state)
        traces.append(trace(state))
        state = evolve(state, recorded)
    # Every old state, also after others have branched off.
    for old, event in zip(states[::-1], live(choices)[-1].log[::-1], strict=True):
        evolve(old, event)
    assert [trace(old) for old in states] == traces


@settings(max_examples=40)
@given(CHOICES)
def test_control_folds_alone_to_the_same_bytes_wherever_no_event_needs_the_transcript(choices: list[int]) -> None:
    whole = alone = Chat().state
    for recorded in live(choices)[-1].log:
        whole = evolve(whole, recorded)
        if isinstance(recorded.event, MessageEdited | CompactionUndone):
            alone = ChatState(control=whole.control, transcript=None)
        else:
            alone = evolve(ChatState(control=alone.control, transcript=None), recorded)
        assert encode_control(alone.control) == encode_control(whole.control)


@settings(max_examples=40)
@given(CHOICES)
def test_a_log_without_its_contents_folds_to_the_same_control_and_passes_the_same_audit(choices: list[int]) -> None:
    log = live(choices)[-1].log
    bare: list[Recorded] = [decode(store(recorded), content=False) for recorded in log]
    assert encode_control(fold(bare).control) == encode_control(fold(log).control)
    assert list(audit(bare)) == list(audit(log))


@settings(max_examples=40)
@given(CHOICES)
def test_any_state_can_be_forked_and_the_copy_holds_the_same_messages(choices: list[int]) -> None:
    origin = live(choices)[-1]
    chat = Chat()
    chat.do(b.fork(owed=origin.control.owed))
    for command in plan_imports(origin.state, batch_bytes=40):
        chat.do(command)
    assert chat.x is X.W
    assert violations(chat.state) == []
    assert list(audit(chat.log)) == []
    told = chat.texts()
    assert told[: len(origin.texts())] == origin.texts()
    assert chat.calls == ()
    if chat.control.owed:
        resumed = chat.do(c.Resume())
        assert (resumed.envelope.source, resumed.envelope.dest) == ("waiting", "pending")
        assert chat.messages[-1].role != "assistant" or not chat.messages[-1].interrupted


@settings(max_examples=25)
@given(CHOICES)
def test_erasing_messages_leaves_control_and_what_else_is_there(choices: list[int]) -> None:
    chat = live(choices)[-1]
    targets = tuple(item.id for item in chat.state.need_transcript("a test").messages)[::2]
    before = chat.messages
    if chat.x is X.INVALID or not targets:
        return
    chat.do(c.Erase(targets=targets))
    assert chat.log[-1].event == ContentErased(messages=targets)
    erased = {item.id for item in chat.state.need_transcript("a test").messages if _gone(item.message)}
    assert erased >= set(targets)
    for old, new in zip(before, chat.messages, strict=True):
        assert [type(part) for part in old.parts] == [type(part) for part in new.parts]
    assert violations(chat.state) == []


def _gone(message: Message) -> bool:
    contents = [
        value
        for part in message.parts
        if not (isinstance(part, ToolResultPart) and part.output is None)
        for name in part.__struct_fields__
        if isinstance(value := getattr(part, name), Content)
    ]
    return all(value.erased for value in contents)
