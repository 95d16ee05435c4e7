"""What a state says of its chat beside its fields."""

from __future__ import annotations

import pytest

from chatstate.classify import X
from events.ids import CallKey
from tests.chatstate.reach import called, reach


def test_a_call_is_found_by_the_key_that_an_action_names() -> None:
    chat = reach(X.R0, work=called("client", "report"))
    for call in chat.calls:
        found = chat.state.find_call(call.key)
        assert found is not None
        assert (found.name, found.runner) == (call.name, call.runner)


@pytest.mark.parametrize("key", ["", "1", "1.0", "9.9.9", "1.0.0", "1.0.99", "1.0.x", "x.y.z"])
def test_a_key_that_names_no_call(key: str) -> None:
    assert reach(X.R0, work=called("client")).state.find_call(CallKey(key)) is None
