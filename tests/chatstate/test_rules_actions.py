"""Rules of what is asked of the client: its deadline, what follows it, and how long a result may be."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from chatstate import commands as c
from chatstate.classify import X
from events.content import Content, Json
from events.parts import FilePart, OnExpiry, ToolResultPart
from tests.chatstate import build as b
from tests.chatstate.reach import called, reach


@pytest.mark.parametrize(
    ("sorts", "given", "tenths", "ends"),
    [
        ("client", "go_on", 10, "go_on"),
        ("client", "end_turn", 10, "end_turn"),
        ("brief client", "go_on", 1, "go_on"),
        ("patient client", "go_on", 100, "go_on"),
        ("patient client", "end_turn", 100, "go_on"),
        ("ending approval", "go_on", 10, "end_turn"),
        ("client brief-client", "go_on", 1, "go_on"),
        ("client patient-client", "go_on", 10, "go_on"),
        ("client patient-client", "end_turn", 10, "end_turn"),
        ("patient-client ending-approval brief-client", "go_on", 1, "end_turn"),
    ],
)
def test_the_earliest_deadline_counts_and_the_turn_ends_if_any_says_so(
    sorts: str, given: OnExpiry, tenths: int, ends: OnExpiry
) -> None:
    """What a call says of itself counts before what the policy says."""
    names = [sorts] if "-" not in sorts else [name.replace("-", " ") for name in sorts.split()]
    chat = reach(X.R0, work=called(*names))
    chat.do(b.require(chat, given))
    action = chat.control.action
    assert action is not None
    assert (action.deadline - chat.control.recorded_at, action.on_expiry) == (b.TIMEOUT // 10 * tenths, ends)


@pytest.mark.parametrize(
    ("budget", "output", "kept"),
    [
        (None, "x" * 5000, "x" * 5000),
        (1000, "x" * 1000, "x" * 1000),
        (500, "x" * 501, "x" * 500),
        (1000, {"a": 1}, {"a": 1}),
        (16, {"a": "x" * 50}, '{"a":"xxxxxxxxxx'),
    ],
    ids=["no budget", "as long as it may be", "cut", "data", "data as text"],
)
def test_a_submitted_result_is_cut_to_the_budget_of_its_action(budget: int | None, output: Json, kept: Json) -> None:
    chat = reach(X.R0, work=called("client"))
    chat.do(replace(b.require(chat), result_budget=budget))
    call = chat.calls[0].key
    given = c.SubmittedResult(call=call, output=Content(output))
    chat.do(c.SubmitResults(action=chat.control.version, results=(given,)))
    (part,) = chat.messages[-1].parts
    assert isinstance(part, ToolResultPart)
    assert part.output == Content(kept)


def test_a_submitted_result_keeps_head_and_tail() -> None:
    chat = reach(X.R0, work=called("client"))
    chat.do(replace(b.require(chat), result_budget=1000))
    given = c.SubmittedResult(call=chat.calls[0].key, output=Content("a" * 5000 + "z" * 5000), is_error=True)
    chat.do(c.SubmitResults(action=chat.control.version, results=(given,)))
    (part,) = chat.messages[-1].parts
    assert isinstance(part, ToolResultPart)
    assert part.output is not None
    text = part.output.text
    assert (len(text) <= 1000, text.startswith("a" * 400), text.endswith("z" * 200), part.is_error) == (True,) * 4
    assert "bytes of this result were left out here" in text


def test_a_submitted_result_comes_with_its_files() -> None:
    image = FilePart(media_type="image/png", data=Content("iVBORw0K"))
    table = FilePart(media_type="text/csv", data=Content("YSxi"))
    chat = reach(X.A0, work=called("client"))
    given = c.SubmittedResult(call=chat.calls[0].key, output=Content("a"), media=(image,), attachments=(table,))
    chat.do(c.SubmitResults(action=chat.control.version, results=(given,)))
    (part,) = chat.messages[-1].parts
    assert isinstance(part, ToolResultPart)
    assert (part.media, part.attachments) == ((image,), (table,))
