"""A moment of a log as the text of a test: what was seen at it, pinned, to be pasted into a test file. Pure."""

from __future__ import annotations

import re
from typing import Final

from chatfold.replaying.conditions import Moment
from chatstate.classify import classify
from events.vocabulary import decision_of

_TEST: Final = """\
from chatfold import decode_log, load_log, state_at
from chatfold.testing.asserts import assert_replays
from chatstate.classify import classify


def test_{name}_at_version_{version}() -> None:
    log = load_log({file!r})
    assert_replays(log)
    events = decode_log(log)
    control = state_at(events, {version}).control
    assert (control.status, classify(control)) == ({status!r}, {state!r})
    assert events[{index}].envelope.type == {event!r}
"""
_DECISION: Final = """\
    decision = events[{index}].event.decision
    assert (decision.rule, decision.action) == ({rule!r}, {action!r})
"""


def as_test(moment: Moment, name: str, file: str) -> str:
    """Return a test that holds today and fails where the chat would go otherwise up to this event.

    Args:
        moment: The event, and the states around it.
        name: What the log is called.
        file: The log's file, as the test will find it.
    """
    control, recorded = moment.after.control, moment.recorded
    text = _TEST.format(
        name=re.sub(r"\W+", "_", name.removesuffix(".jsonl").rpartition("/")[2]).strip("_") or "chat",
        version=recorded.version,
        index=recorded.version - 1,
        file=file,
        status=control.status,
        state=str(classify(control)),
        event=recorded.envelope.type,
    )
    decision = decision_of(recorded.event)
    if decision is not None:
        text += _DECISION.format(index=recorded.version - 1, rule=decision.rule, action=decision.action)
    return text
