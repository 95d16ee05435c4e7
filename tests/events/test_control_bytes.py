"""Control has one stored form: the same for the fold of what was just written and of what a database gave back."""

from __future__ import annotations

from msgspec.structs import replace

from chatstate import commands as c
from events.control import encode_control
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
