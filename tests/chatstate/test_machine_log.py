"""What the library of the machine logs: nothing of ours, and all of the machines of others."""

from __future__ import annotations

import logging

import pytest
from transitions import Machine

from chatstate.classify import X
from chatstate.errors import TransitionNotAllowed
from chatstate.machine import destination


class _Model:
    state = "on"


def test_the_library_says_nothing_of_our_machine_at_info(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    destination.cache_clear()
    assert destination("archive", X.W) == "waiting"
    with pytest.raises(TransitionNotAllowed):
        destination("archive", X.R0)
    assert caplog.records == []


def test_it_speaks_of_the_machines_of_others(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    machine = Machine(model=None, states=["on", "off"], initial=None, auto_transitions=False)
    machine.add_transition("toggle", "on", "off")
    assert machine.events["toggle"].trigger(_Model())
    assert any("Finished processing state on exit callbacks." in each.getMessage() for each in caplog.records)
