"""What a worker keeps of policies has an end, however many its chats choose."""

from __future__ import annotations

import pytest

from chatfold import Agent, Engine
from events.control import Control
from events.levels import NEWEST
from generation import runtime as module


def test_policies_are_kept_up_to_a_number_and_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_KEPT", 3)
    runtime = Engine("memory://", [Agent(name="helper", model="scripted/m")], worker=False).runtime
    controls = [Control(agent="helper", model=f"scripted/{number}") for number in range(5)]
    first = [runtime.policy_for(control, NEWEST) for control in controls]
    assert runtime.policy_for(controls[-1], NEWEST) is first[-1]
    assert len(runtime._policies) == 3
    again = runtime.policy_for(controls[0], NEWEST)
    assert again is not first[0]
    assert again == first[0]
    assert len(runtime._policies) == 3
