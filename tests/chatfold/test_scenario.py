"""Scenarios over the pure machine: what follows from commands on a recorded chat, and failures that say what did."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import pytest

from chatfold import Agent, tool
from chatfold.testing import Scenario, ScriptedProvider, UseTool, VirtualTime, fence_of, given, turn
from chatstate import commands as c
from chatstate.errors import ChatNotFound, NothingOwed, StaleFence, TransitionNotAllowed
from events.content import Content
from events.envelope import Recorded
from events.errors import InvalidValue
from events.ids import ChatId
from events.messages import Message, QueuedMessage
from events.parts import TextPart
from events.state import ChatState


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def recorded() -> Sequence[Recorded]:
    time = VirtualTime()
    model = ScriptedProvider([turn(UseTool("add", {"a": 2, "b": 3})), "Five."])

    async def talk() -> Sequence[Recorded]:
        agents = [Agent(name="sums", model="scripted", tools=[add])]
        async with time.engine(agents, providers={"scripted": model}) as engine:
            chat = (await engine.create_chat("sums", "What is 2 + 3?")).chat
            await engine.settled(chat)
            return await engine.events(chat)

    return time.run(talk)


LOG: Final = recorded()
CALLED: Final = next(each.version for each in LOG if each.envelope.type == "step_committed")
ANSWERED: Final = next(each.version for each in LOG if each.version > CALLED and each.envelope.type == "step_committed")
HELLO: Final = Message(role="user", parts=(TextPart(text=Content("Hello.")),))


def release(state: ChatState) -> c.Release:
    return c.Release(fence=fence_of(state), reason="shutdown")


def test_what_follows_from_a_command_is_asserted() -> None:
    given(LOG, at=CALLED).then(state="R0", decides="D1").when(c.Interrupt()).then(
        state="I0", events=["turn_interrupted"], decides="none"
    )
    given(LOG).when(c.SendMessage(message=QueuedMessage(message=HELLO))).then(state="P0", events=["message_sent"])


def test_a_chat_begins_with_nothing() -> None:
    begin = c.CreateChat(chat=ChatId("c"), owner="ann", agent="sums", release="0", messages=(HELLO,))
    begun = given().when(begin).then(state="P0", events=["chat_created"])
    assert begun.state.need_transcript("a test").messages[0].message == HELLO
    given().when(c.Interrupt()).refused(ChatNotFound)


def test_workers_believe_what_the_chat_says() -> None:
    given(LOG, at=CALLED).when(release).then(state="P0", events=["released"])
    old = fence_of(given(LOG, at=CALLED).state)
    given(LOG, at=CALLED).when(release, c.Release(fence=old, reason="shutdown")).refused(TransitionNotAllowed)
    stale = c.Fence(epoch=9)
    given(LOG, at=CALLED).when(c.Release(fence=stale, reason="shutdown")).refused(StaleFence)


def test_commands_behind_a_refused_one_are_not_given() -> None:
    done = given(LOG).when(c.Resume(), c.Clear())
    done.refused(NothingOwed, "resume")
    assert done.events == ()


def test_another_policy_decides_otherwise() -> None:
    end = given(LOG, at=len(LOG) - 1)
    end.then(decides="D6")
    given(LOG, at=ANSWERED).then(decides="D11").under(max_steps=1).then(decides="D7")


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        (lambda chat: chat.then(state="W"), "the chat is in R0, not in W"),
        (lambda chat: chat.then(decides="D6"), "the rule that holds is D1, not D6"),
        (lambda chat: chat.when(release).then(events=[]), r"the commands gave \['released'\], not \[\]"),
        (lambda chat: chat.refused(NothingOwed), "nothing was refused: the chat is in R0"),
        (lambda chat: chat.when(c.Resume()).then(), "refused: resume refused in R0"),
        (lambda chat: chat.when(c.Resume()).refused(NothingOwed), "refused with TransitionNotAllowed, not NothingOwed"),
        (lambda chat: chat.when(c.Resume()).refused(TransitionNotAllowed, "xyz"), "the refusal says: resume refused"),
    ],
)
def test_a_claim_that_does_not_hold_says_what_does(claim: Callable[[Scenario], object], said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        claim(given(LOG, at=CALLED))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"state": "Z9"}, "$.state: there is no execution state Z9; there are N, P0, "),
        ({"state": "Invald"}, "$.state: there is no execution state Invald; did you mean Invalid? There are N, P0, "),
        ({"decides": "D99"}, "$.decides: there is no rule D99; did you mean D9? There are none, D0, D1, "),
        (
            {"events": ["chat_created", "releasd"]},
            "$.events[1]: there is no type of event releasd; did you mean released?",
        ),
        ({"events": [3]}, "$.events[0]: must be a text, not int"),
    ],
)
def test_a_word_that_there_is_not_is_no_claim(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        given(LOG, at=CALLED).then(**wrong)
    assert str(refused.value).startswith(said)


@pytest.mark.parametrize("at", [-1, len(LOG) + 1])
def test_there_is_no_such_version(at: int) -> None:
    with pytest.raises(InvalidValue, match=rf"\$\.at: .*, not {at}"):
        given(LOG, at=at)


@pytest.mark.parametrize(
    ("wrong", "called"),
    [("interrupt", "'interrupt'"), (c.Interrupt, "the class Interrupt"), (lambda _: None, "None"), (None, "None")],
)
def test_what_is_no_command_is_refused(wrong: Any, called: str) -> None:
    with pytest.raises(InvalidValue, match=rf"\$.commands\[0\]: must be a command of chatstate.commands, .* {called}"):
        given(LOG).when(wrong)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"max_steps": "3"}, r"Expected `int`, got `str` - at `\$.max_steps`"),
        (
            {"max_step": 3},
            r"a policy has no field max_step; did you mean max_steps\? Decisions read model.context_limit, ",
        ),
        ({"tools": []}, r"no decision reads tools, .* They read .*max_steps, "),
        ({"model": {"name": "other"}}, r"no decision reads model.name"),
    ],
)
def test_a_policy_that_tells_nothing_is_refused(changes: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidValue, match=rf"\$.changes: no policy to decide under: other values: .*{said}"):
        given(LOG).under(**changes)


def test_a_part_of_a_policy_is_changed_field_by_field() -> None:
    given(LOG, at=ANSWERED).then(decides="D11").under(model={"context_limit": 9}).then(decides="D10")


def test_nothing_is_decided_without_a_policy() -> None:
    with pytest.raises(ValueError, match="no policy is recorded"):
        given(LOG, at=2).then(decides="D11")
