"""Random conversations: a share of them in every run of the tests, many of them in the soak."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest.mock import patch

import pytest

from chatfold.testing.conversations import converse
from chatfold.testing.conversations.__main__ import CONVERSATIONS
from chatfold.testing.simulation.__main__ import main
from chatfold.testing.simulation.report import failure_of
from generation import chain, naming, prompt, side_jobs
from generation.prompt_ids import CallIds
from generation.providers import anthropic_wire, openai_wire
from generation.providers.anthropic_prefix import Prefix
from generation.tools.hooked import CallHooks
from generation.tools.policy import ToolCall

SEEDS = 500
_PART = 25


@pytest.mark.parametrize("first", range(0, SEEDS, _PART))
def test_every_request_is_what_its_service_takes(first: int) -> None:
    for seed in range(first, first + _PART):
        outcome = converse(seed)
        assert outcome.violation is None, f"\n{failure_of(outcome, None, CONVERSATIONS.command)}"


def test_conversations_are_as_varied_as_they_claim() -> None:
    """What is drawn comes about: otherwise seeds that go well say nothing."""
    told = "\n".join(line for seed in range(40) for line in converse(seed, trace=True).trace)
    for sign in (
        "is killed",
        "edit ",
        "erase ",
        "let plain ask openai/",
        "let searching ask anthropic/",
        "hand over to",
        "chat_forked",
        "compaction_committed",
        ": done, version",
        "compaction_undone",
        "interruption_finished",
        "retry_scheduled",
        "turn_failed",
        "title_changed",
        "turn_label_changed",
        "refused (denied by a hook",
        "refused (hook meddler",
        "in the queue with effort",
        "reorder ",
    ):
        assert sign in told, sign


def test_a_seed_is_the_same_conversation_again() -> None:
    assert converse(3).digest == converse(3).digest != converse(4).digest


def test_the_command_runs_one_and_many(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "1"], CONVERSATIONS) == 0
    assert "seed 1: well" in capsys.readouterr().out
    assert main(["--seeds", "0:3", "--jobs", "1"], CONVERSATIONS) == 0
    assert "3 seeds" in capsys.readouterr().out


def _reasoning_sent_bare() -> AbstractContextManager[Any]:
    """Reasoning is sent without what it led to."""
    return patch.object(openai_wire, "_drop_reasoning", lambda items: None)


def _thinking_last() -> AbstractContextManager[Any]:
    """An answer that was cut while thinking is sent so."""
    return patch.object(anthropic_wire, "THINKING", frozenset())


def _ids_as_given() -> AbstractContextManager[Any]:
    """Calls keep the ids that their services gave them, though they repeat."""
    return patch.object(CallIds, "assign", lambda self, key, given: given or key)


def _no_go_on() -> AbstractContextManager[Any]:
    """A prompt may end with an answer."""
    real = prompt.Prompt._last_role
    return patch.object(prompt.Prompt, "_last_role", lambda self: None if real(self) == "assistant" else real(self))


def _prefixes_forgotten() -> AbstractContextManager[Any]:
    """Signed thinking comes back behind whatever stands there."""
    return patch.object(Prefix, "take", lambda self, message: message)


def _without(condition: str) -> AbstractContextManager[Any]:
    """A request goes on from a response although one condition does not hold."""
    return patch.object(chain, "CONDITIONS", tuple(each for each in chain.CONDITIONS if each.id != condition))


def _going_on_from_reasoning() -> AbstractContextManager[Any]:
    return _without("ends")


def _going_on_from_what_is_gone() -> AbstractContextManager[Any]:
    return _without("known")


def _run_though_denied() -> AbstractContextManager[Any]:
    """What a hook says of a call does not count."""

    async def before(self: CallHooks, call: ToolCall) -> tuple[ToolCall, None, None]:
        return call, None, None

    return patch.object(CallHooks, "before", before)


@contextmanager
def _named_again() -> Iterator[None]:
    """A chat gets a title after each of its first turns, whatever title it has."""
    with (
        patch.object(naming, "is_nameless", lambda state, said: True),
        patch.object(side_jobs, "is_nameless", lambda state, said: True),
    ):
        yield


PLANTS = (
    _reasoning_sent_bare,
    _thinking_last,
    _ids_as_given,
    _no_go_on,
    _prefixes_forgotten,
    _going_on_from_reasoning,
    _going_on_from_what_is_gone,
    _run_though_denied,
    _named_again,
)


@pytest.mark.parametrize("plant", PLANTS)
def test_a_planted_bug_is_found(plant: Callable[[], AbstractContextManager[Any]]) -> None:
    with plant():
        found = next((seed for seed in range(SEEDS) if converse(seed).violation is not None), None)
    print(f"{plant.__name__}: seed {found}")
    assert found is not None
    assert converse(found).violation is None
