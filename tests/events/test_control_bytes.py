"""Control has one stored form: the same for the fold of what was just written and of what a database gave back."""

from __future__ import annotations

from typing import cast

from msgspec.structs import replace

from chatstate import commands as c
from events.content import Content
from events.control import Control, encode_control
from events.ids import MessageId
from events.indexes import advance
from events.messages import Message
from events.parts import CrashPolicy, ToolCallPart
from events.reducer import fold
from tests.chatstate import build as b
from tests.chatstate.chat import Chat


def test_statuses_that_are_equal_but_other_objects_give_the_same_bytes() -> None:
    chat = Chat()
    chat.all([b.create(), c.Interrupt()])
    assert chat.control.status == "waiting"
    read = [
        replace(recorded, envelope=replace(recorded.envelope, dest="".join(list(recorded.envelope.dest))))
        for recorded in chat.log
    ]
    assert read[-1].envelope.dest is not chat.log[-1].envelope.dest
    assert encode_control(fold(read).control) == encode_control(chat.control)


def test_a_crash_policy_that_was_built_at_run_time_gives_the_same_bytes() -> None:
    def opened(crash: CrashPolicy) -> bytes:
        call = ToolCallPart(name="t", arguments=Content("{}"), provider_call_id="1", runner="local", crash=crash)
        control = Control()
        advance(control.indexes, MessageId("1.0"), Message(role="assistant", parts=(call,)))
        return encode_control(control)

    built = cast("CrashPolicy", "".join(list("report")))
    assert opened(built) == opened("report")
