"""Which models name a chat, which chats are named, and what a model is shown."""

from __future__ import annotations

import pytest

from chatstate import commands as c
from chatstate.classify import X
from events.content import Content
from generation.agents import Agent
from generation.errors import AgentDeclarationError
from generation.models import ModelConfig, Prices
from generation.naming import Titles, ask_for_label, ask_for_title, latest_turn, to_name, turns_of
from generation.titles import Turn
from tests.chatstate import build as b
from tests.chatstate.chat import Chat
from tests.chatstate.reach import answered, reach

OWN = ModelConfig(provider="anthropic", name="big")
PRICED = ModelConfig(provider="anthropic", name="claude-haiku-4-5", prices=Prices(input=1, output=5))


@pytest.mark.parametrize(
    ("titles", "own", "configured", "asked"),
    [
        (Titles(), OWN, (OWN,), ["anthropic/claude-haiku-4-5", "anthropic/big"]),
        (Titles(), None, (), []),
        (Titles(), ModelConfig(provider="scripted", name="m"), (), ["scripted/m"]),
        (
            Titles(),
            ModelConfig(provider="openai", name="gpt-4o-mini"),
            (OWN,),
            ["anthropic/claude-haiku-4-5", "openai/gpt-4o-mini"],
        ),
        (Titles(cheap=()), OWN, (OWN,), ["anthropic/big"]),
        (Titles(model="openai/one"), OWN, (OWN,), ["openai/one"]),
    ],
)
def test_cheap_models_of_the_agents_providers_come_before_the_chats_own(
    titles: Titles, own: ModelConfig | None, configured: tuple[ModelConfig, ...], asked: list[str]
) -> None:
    assert [model.reference for model in titles.candidates(own, configured)] == asked


def test_what_the_agent_configures_of_a_model_is_known_of_it_here_too() -> None:
    first, _ = Titles().candidates(OWN, (OWN, PRICED))
    assert first is PRICED
    assert Titles(model="anthropic/claude-haiku-4-5").candidates(OWN, (PRICED,)) == (PRICED,)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"auto": 1}, "auto must be True or False"),
        ({"labels": "yes"}, "labels must be True or False"),
        ({"model": 5}, "a model is a text"),
        ({"model": "nonsense"}, "provider/name"),
        ({"cheap": "anthropic/x"}, "cheap must be a list"),
        ({"cheap": [None]}, "a model is a text"),
    ],
)
def test_what_cannot_be_declared(given: dict[str, object], why: str) -> None:
    with pytest.raises(AgentDeclarationError, match=why):
        Titles(**given)  # type: ignore[arg-type]
    with pytest.raises(AgentDeclarationError, match=r"Titles\(\) or None"):
        Agent(name="a", titles=True)  # type: ignore[arg-type]


def turn(chat: Chat, text: str) -> None:
    chat.do(b.send(text))
    chat.do(b.acquire())
    answered(chat)
    chat.do(b.finish(chat))


def after_first_turn() -> Chat:
    chat = reach(X.W)
    assert len(turns_of(chat.state)) == 1
    return chat


@pytest.mark.parametrize(("title", "named"), [(None, True), (" ", True), ("Mine", False)])
def test_a_chat_is_named_while_it_has_no_title_of_its_own(title: str | None, *, named: bool) -> None:
    chat = after_first_turn()
    chat.do(c.SetTitle(title=None if title is None else Content(title)))
    assert (to_name(chat.state) is not None) is named


def test_a_title_that_the_first_words_give_counts_as_none() -> None:
    chat = after_first_turn()
    said = turns_of(chat.state)[0].user
    chat.do(c.SetTitle(title=Content(said)))
    assert to_name(chat.state) == said


def test_a_chat_with_a_second_message_of_its_user_is_not_named() -> None:
    chat = after_first_turn()
    turn(chat, "More")
    assert to_name(chat.state) is None
    assert latest_turn(chat.state) == turns_of(chat.state)[-1] == Turn("More", "Sure.")


def test_a_chat_that_was_cleared_since_has_no_turn_to_label() -> None:
    chat = after_first_turn()
    chat.do(c.Clear())
    assert latest_turn(chat.state) is None


def test_what_a_model_is_shown() -> None:
    assert ask_for_title([Turn(" ", "")]) is None
    assert ask_for_title([Turn("Hi", "Hello")]) == "The user's first message:\nHi"
    assert ask_for_title([Turn("Hi", "Hello"), Turn("Why?", "")]) == (
        "The user's first message:\nHi\n\nFrom the conversation:\nUser: Hi\nAssistant: Hello\n\nUser: Why?\n\n"
        "The user's latest message:\nWhy?"
    )
    shown = ask_for_label(Turn("Hi", "x" * 3000), "waiting")
    assert "\n" + "x" * 2000 + "\n" in shown
    assert shown.endswith("How the turn ended: waiting")
