"""The conditions of chain mode: all hold, then each alone does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from events.content import Absent, Content
from events.ids import CallKey, MessageId
from events.messages import KeptResponse, Message, Step
from events.parts import (
    ContextFilePart,
    FilePart,
    FileReferencePart,
    Part,
    ReasoningPart,
    SourcePart,
    ToolCallPart,
    ToolResultPart,
)
from events.records import ModelPolicy
from generation.chain import CONDITIONS, Continuation, continuation, missing
from generation.prompt import BuiltPrompt, Prompt, build_prompt
from tests.generation.kit import assistant, state_of, system, text, tool, user

MODEL = ModelPolicy(provider="openai", name="m", options="o1")
CALL = ToolCallPart(name="f", arguments=Content("{}"), provider_call_id="c", runner="local")
SEARCH = (
    replace(CALL, runner="provider"),
    ToolResultPart(call=CallKey("3.0.1"), output=Content("r"), provider_executed=True),
)
THOUGHT = ReasoningPart(text=Content("Hm."))
RESULT = ToolResultPart(call=CallKey("3.0.0"), output=Content("r"))


def kept(*before: Message, response: str | None = "resp_1", **more: str) -> Step:
    """A step of which the service keeps the response to these messages."""
    digest = build_prompt(state_of(before)).digest
    step = Step(provider="openai", model="m", response_id=response, kept=KeptResponse(before=digest, options="o1"))
    return replace(step, **more)


BEGUN = (system("Be brief."), user("Hi."))
ANSWER = assistant("Hello.", step=kept(*BEGUN))
HISTORY = (*BEGUN, ANSWER, user("And?"))


class Row(NamedTuple):
    messages: tuple[Message, ...]
    model: ModelPolicy = MODEL
    stores: bool = True
    lost: str | None = None
    instruction: str | None = None

    def prompt(self) -> BuiltPrompt:
        return build_prompt(state_of(self.messages), instruction=self.instruction)

    def missing(self) -> str | None:
        return missing(self.prompt(), self.model, stores=self.stores, lost=self.lost)

    def found(self) -> Continuation | None:
        return continuation(self.prompt(), self.model, stores=self.stores, lost=self.lost)


def changed(**more: object) -> tuple[Message, ...]:
    """The history with another answer."""
    return (*BEGUN, replace(ANSWER, **more), user("And?"))


def of(*parts: Part) -> tuple[Message, ...]:
    return changed(parts=(*ANSWER.parts, *parts))


OFF = {
    "not stored": ("stores", Row(HISTORY, stores=False)),
    "no answer yet": ("kept", Row(BEGUN)),
    "the newest answer is not kept": ("kept", Row((*HISTORY, assistant("Yes."), user("So?")))),
    "no response id": ("kept", Row(changed(step=kept(*BEGUN, response=None)))),
    "the response is gone": ("known", Row(HISTORY, lost="resp_1")),
    "another provider": ("model", Row(HISTORY, model=replace(MODEL, provider="other"))),
    "another model": ("model", Row(HISTORY, model=replace(MODEL, name="n"))),
    "other options": ("model", Row(HISTORY, model=replace(MODEL, options="o2"))),
    "copied from another chat": ("own", Row(changed(origin=MessageId("1.0")))),
    "cut by an interruption": ("whole", Row(changed(interrupted=True))),
    "erased": ("whole", Row(changed(parts=(replace(text("x"), text=Content(Absent.ERASED, 1)),)))),
    "reasoning alone": ("ends", Row(changed(parts=(THOUGHT,)))),
    "reasoning at its end": ("ends", Row(of(THOUGHT, SourcePart(source_id="s", url=Content("https://x.org"))))),
    "a search at its end": ("ends", Row(of(*SEARCH))),
    "a call whose result the service has not seen": (
        "no_calls",
        Row((*of(CALL)[:3], tool(replace(RESULT, call=CallKey("3.0.1"))), user("And?"))),
    ),
    "a later answer whose call is open": ("users", Row((*HISTORY, assistant(CALL), user("So?")))),
    "a message before it was changed": ("same_history", Row((BEGUN[0], user("Hi!"), *HISTORY[2:]))),
    "a message before it went": ("same_history", Row((BEGUN[0], *HISTORY[2:]))),
    "a message came before it": ("same_history", Row((user("Oh."), *HISTORY))),
    "nothing new of the user": ("users", Row(HISTORY[:3])),
    "an instruction of ours": ("users", Row(HISTORY[:3], instruction="Summarise.")),
    "a user's message without content": ("users", Row((*HISTORY[:3], user("  ")))),
}


@pytest.mark.parametrize("name", OFF)
def test_each_condition_alone_has_the_whole_history_sent(name: str) -> None:
    condition, row = OFF[name]
    assert (row.missing(), row.found()) == (condition, None)


def test_every_condition_has_a_row() -> None:
    assert {condition for condition, _ in OFF.values()} == {condition.id for condition in CONDITIONS}


def test_where_all_hold_what_is_new_of_the_user_is_sent() -> None:
    row = Row(HISTORY)
    assert row.missing() is None
    found = row.found()
    assert found is not None
    assert (found.response, [message.text for message in found.messages]) == ("resp_1", ["And?"])


@pytest.mark.parametrize(
    "part",
    [
        text("A text."),
        FilePart(media_type="image/png", data=Content("AAAA")),
        FileReferencePart(name=Content("f"), start_line=1, end_line=1, text=Content("line")),
        ContextFilePart(path=Content("A.md"), text=Content("a")),
    ],
    ids=["text", "file", "file reference", "context file"],
)
def test_what_contributes(part: Part) -> None:
    found = Row((*HISTORY[:3], user("  "), user(part))).found()
    assert found is not None
    assert len(found.messages) == 1


ON: dict[str, Callable[[], tuple[Message, ...]]] = {
    "reasoning before what it led to": lambda: changed(parts=(THOUGHT, *ANSWER.parts)),
    "more messages of the user": lambda: (*HISTORY, user("So?")),
    "system texts go along in any case": lambda: (*HISTORY, system("Be kind.")),
    "a call that the service ran itself": lambda: of(*SEARCH, text("Found.")),
    "user-only messages are nobody's": lambda: (*HISTORY, user("Note.", visibility="user")),
}


@pytest.mark.parametrize("name", ON)
def test_what_does_not_matter(name: str) -> None:
    assert Row(ON[name]()).missing() is None


def test_results_that_were_sent_back_are_no_hindrance() -> None:
    before = (*BEGUN, assistant(CALL, step=kept(*BEGUN)), tool(RESULT))
    row = Row((*before, assistant("Done.", step=kept(*before, response="resp_2")), user("And?")))
    found = row.found()
    assert found is not None
    assert (found.response, len(found.messages)) == ("resp_2", 1)


def test_a_prompt_that_was_kept_up_finds_the_same_as_one_made_anew() -> None:
    long = [*HISTORY]
    for number in range(2, 6):
        long += [assistant("Yes.", step=kept(*long, response=f"resp_{number}")), user("And?")]
    prompt, whole = Prompt(), state_of(long).messages
    for upto in range(1, len(long) + 1):
        built = prompt.build(whole.before(upto))
        anew = build_prompt(state_of(long[:upto]))
        assert built.kept == anew.kept
        found = missing(built, MODEL, stores=True), missing(anew, MODEL, stores=True)
        # It goes on wherever a message of the user is the newest, but the first.
        assert found == ((None, None) if upto >= 4 and upto % 2 == 0 else (found[0], found[0]))
