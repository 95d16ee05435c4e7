"""Every value that a caller gives to the engine is checked where it comes in, and refused with its path."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest

from chatfold import (
    Agent,
    ApprovalAnswer,
    BudgetAnswer,
    ChatNotFound,
    ChatQuery,
    Content,
    Engine,
    FilePart,
    InvalidValue,
    LogFileError,
    Message,
    TextPart,
    ToolResultsInvalid,
    state_at,
    tool,
)
from chatfold.checks import checked_id, checked_new_chat, checked_title
from chatfold.testing import ScriptedProvider, UseTool, turn
from events.parts import ToolResultPart


@tool(needs_approval=True)
def burn(name: str) -> str:
    """Burn something."""
    return f"{name} is gone"


AGENT: Final = Agent(name="a", model="scripted", tools=[burn])

NO_IDS: Final[dict[str, tuple[object, str]]] = {
    "empty": ("", "is empty"),
    "long": ("a" * 201, "at most 200 characters, this one has 201"),
    "huge": ("a" * 10**6, "at most 200 characters"),
    "a number": (5, "must be a text, not int"),
    "nothing": (None, "must be a text, not NoneType"),
    "bytes": (b"c", "must be a text, not bytes"),
    "a line break": ("a\nb", "no control characters"),
    "nul": ("a\0", "no control characters"),
    "delete": ("a\x7fb", "no control characters"),
    "a next line": ("a\x85b", "no control characters"),
    "a line separator": ("a\u2028b", "no control characters"),
    "a lone surrogate": ("\ud800", "lone surrogate"),
    "blanks before": (" a", "no blanks at its ends"),
    "blanks after": ("a\u00a0", "no blanks at its ends"),
}
NO_NEW_CHATS: Final = ("a/b", "a\\b", "x.jsonl", "X.JSONL", "-", "/", "../x")


@pytest.mark.parametrize("name", NO_IDS)
def test_what_is_no_id(name: str) -> None:
    given, said = NO_IDS[name]
    with pytest.raises(InvalidValue, match=said) as caught:
        checked_id(given, "$.x")
    assert caught.value.path == "$.x"


@pytest.mark.parametrize("given", ["a", "a b", "é", "a" * 200, "notes.txt", "--", "a:b|c", "日本", "x.jsonl.1"])
def test_what_is_an_id(given: str) -> None:
    assert checked_id(given, "$.x") == checked_new_chat(given, "$.x") == given


@pytest.mark.parametrize("given", NO_NEW_CHATS)
def test_a_new_chat_looks_like_no_file(given: str) -> None:
    assert checked_id(given, "$.x") == given
    with pytest.raises(InvalidValue, match="command line takes those for files"):
        checked_new_chat(given, "$.x")


@pytest.fixture
async def engine() -> AsyncIterator[Engine]:
    model = ScriptedProvider([turn(UseTool("burn", {"name": "x"})), "Done."])
    async with Engine("memory://", [AGENT], providers={"scripted": model}) as engine:
        await engine.create_chat("a", chat_id="c")
        yield engine


ON_A_CHAT: Final[dict[str, tuple[Any, ...]]] = {
    "send_message": ("Hi.",),
    "edit_message": ("1.0", "Hi."),
    "interrupt": (),
    "resume": (),
    "submit_tool_results": (1,),
    "edit_queued": ("1.0", "Hi."),
    "reorder_queue": (["1.0"],),
    "delete_queued": ("1.0",),
    "promote_queued": ("1.0",),
    "compact": (),
    "uncompact": (),
    "clear": (),
    "archive": (),
    "unarchive": (),
    "set_title": ("t",),
    "set_labels": ({},),
    "set_model": (None,),
    "set_agent": ("a",),
    "set_active_tools": (["t"],),
    "set_pinned": (True,),
    "set_retention": (None,),
    "refresh_context": (),
    "erase": (["1.0"],),
    "adopt": (),
    "reconcile": (),
    "fork": (),
}
READS: Final = (
    "delete",
    "state",
    "events",
    "queue",
    "settled",
    "diagnose",
    "export_log",
    "context",
    "costs",
    "family_costs",
    "propose_title",
)


def test_all_commands_are_looked_at() -> None:
    takers = {
        name
        for name in dir(Engine)
        if not name.startswith("_") and "chat" in getattr(getattr(Engine, name), "__annotations__", {})
    }
    assert takers == {*ON_A_CHAT, *READS, "stream"}


@pytest.mark.parametrize("name", [*ON_A_CHAT, *READS])
@pytest.mark.parametrize("given", [5, "", "a" * 10**6, "a\0b", "\ud800"], ids=["5", "empty", "long", "nul", "lone"])
async def test_a_chat_is_named_by_an_id(engine: Engine, name: str, given: object) -> None:
    with pytest.raises(InvalidValue) as caught:
        await getattr(engine, name)(given, *ON_A_CHAT.get(name, ()))
    assert caught.value.path == "$.chat"


async def test_a_stream_is_of_a_chat_and_begins_at_a_cursor(engine: Engine) -> None:
    for given, path in (({"chat": 5}, "$.chat"), ({"chat": "c", "cursor": 5}, "$.cursor")):
        with pytest.raises(InvalidValue) as caught:
            await anext(engine.stream(**given))
        assert caught.value.path == path


@pytest.mark.parametrize("name", ON_A_CHAT)
@pytest.mark.parametrize("given", [5, "", "a" * 10**6, "\ud800"], ids=["5", "empty", "long", "lone"])
async def test_a_command_id_is_an_id(engine: Engine, name: str, given: object) -> None:
    with pytest.raises(InvalidValue) as caught:
        await getattr(engine, name)("c", *ON_A_CHAT[name], command_id=given)
    assert caught.value.path == "$.command_id"


WRONG: Final[list[tuple[str, tuple[Any, ...], dict[str, Any], str]]] = [
    ("create_chat", (5,), {}, "$.agent"),
    ("create_chat", ("",), {}, "$.agent"),
    *(("create_chat", ("a",), {"chat_id": given}, "$.chat_id") for given in (5, "", "a\nb", *NO_NEW_CHATS)),
    *(("fork", ("c",), {"chat_id": given}, "$.chat_id") for given in (5, "", "a\nb", *NO_NEW_CHATS)),
    ("create_chat", ("a",), {"owner": 5}, "$.owner"),
    ("create_chat", ("a",), {"owner": "a" * 10**6}, "$.owner"),
    ("create_chat", ("a",), {"owner": None}, "$.owner"),
    ("create_chat", ("a",), {"command_id": ""}, "$.command_id"),
    ("create_chat", ("a",), {"command_id": "a" * 10**6}, "$.command_id"),
    ("create_chat", ("a",), {"title": "t" * 2_000_000}, "$.title"),
    ("create_chat", ("a",), {"title": 5}, "$.title"),
    ("create_chat", ("a",), {"labels": ["x"]}, "$.labels"),
    ("create_chat", ("a",), {"labels": {"x": "y" * 257}}, "$.labels['x']"),
    ("create_chat", ("a",), {"labels": {str(i): "" for i in range(51)}}, "$.labels"),
    ("create_chat", ("a",), {"model": 5}, "$.model"),
    ("create_chat", ("a",), {"effort": []}, "$.effort"),
    ("create_chat", ("a", "Hi."), {"system": 5}, "$.message"),
    ("set_title", ("c", "t" * 2_000_000), {}, "$.title"),
    ("set_pinned", ("c", "yes"), {}, "$.pinned"),
    ("set_retention", ("c", "1"), {}, "$.seconds"),
    ("context", ("c",), {"look": "yes"}, "$.look"),
    ("set_retention", ("c", float("inf")), {}, "$.seconds"),
    ("set_agent", ("c", 5), {}, "$.agent"),
    ("set_labels", ("c", None), {}, "$.labels"),
    ("set_active_tools", ("c", "look"), {}, "$.tools"),
    ("set_active_tools", ("c", ["look", 5]), {}, "$.tools[1]"),
    ("erase", ("c", "1.0"), {}, "$.message_ids"),
    ("erase", ("c", [5]), {}, "$.message_ids[0]"),
    ("reorder_queue", ("c", "1.0"), {}, "$.order"),
    ("delete_queued", ("c", 5), {}, "$.message_id"),
    ("edit_message", ("c", None, "Hi."), {}, "$.message_id"),
    ("edit_message", ("c", "1.0", None), {}, "$.message"),
    ("send_message", ("c", [TextPart(text="Hi.")]), {}, "$.message[0].text"),  # type: ignore[arg-type]
    ("send_message", ("c", [TextPart(text=Content(5))]), {}, "$.message[0].text"),
    ("send_message", ("c", [TextPart(text=Content("Hi.")), TextPart(text=Content(" \n"))]), {}, "$.message[1].text"),
    ("send_message", ("c", Message(role="user", parts=(TextPart(text=Content("")),))), {}, "$.message[0].text"),
    ("send_message", ("c", [FilePart(media_type="text/plain", data=Content({}))]), {}, "$.message[0].data"),
    ("send_message", ("c", [FilePart(media_type="text/plain", data=Content("eA=="), name=Content(5))]), {},
     "$.message[0].name"),
    ("create_chat", ("a", [TextPart(text=Content(""))]), {}, "$.message[0].text"),
    ("edit_message", ("c", "1.0", [TextPart(text=Content([]))]), {}, "$.message[0].text"),
    ("send_message", ("c", "Hi."), {"author": 5}, "$.author"),
    ("send_message", ("c", "Hi."), {"busy": "interupt"}, "$.busy"),
    ("send_message", ("c", "Hi."), {"busy": []}, "$.busy"),
    ("compact", ("c",), {"hint": 5}, "$.hint"),
    ("compact", ("c",), {"hint": "\ud800"}, "$.hint"),
    ("fork", ("c",), {"at": "3"}, "$.at"),
    ("fork", ("c",), {"at": -1}, "$.at"),
    ("fork", ("c",), {"at": 0}, "$.at"),
    ("fork", ("c",), {"at": 2**70}, "$.at"),
    ("fork", ("c",), {"resume": 1}, "$.resume"),
    ("fork", ("c",), {"owner": 5}, "$.owner"),
    ("state", ("c",), {"at": "3"}, "$.at"),
    ("state", ("c",), {"at": -1}, "$.at"),
    ("state", ("c",), {"at": True}, "$.at"),
    ("events", ("c",), {"after": -1}, "$.after"),
    ("events", ("c",), {"upto": "x"}, "$.upto"),
    ("submit_tool_results", ("c", "1"), {}, "$.action"),
    ("submit_tool_results", ("c", 1, 5), {}, "$.results"),
    ("submit_tool_results", ("c", 1, "x"), {}, "$.results"),
    ("submit_tool_results", ("c", 1, {5: "x"}), {}, "$.results"),
    ("submit_tool_results", ("c", 1, [("1.0.0", "x")]), {}, "$.results[0]"),
    ("submit_tool_results", ("c", 1), {"approvals": [True]}, "$.approvals[0]"),
    ("submit_tool_results", ("c", 1), {"approvals": 5}, "$.approvals"),
    ("submit_tool_results", ("c", 1), {"budget": True}, "$.budget"),
    ("submit_tool_results", ("c", 1), {"budget": BudgetAnswer(end_turn=False, raised=5)},  # type: ignore[arg-type]
     "$.budget.raised"),
    ("submit_tool_results", ("c", 1), {"budget": BudgetAnswer(end_turn=1)}, "$.budget.end_turn"),  # type: ignore[arg-type]
    ("import_log", ("file.jsonl",), {}, "$.log"),
    ("list_chats", (5,), {}, "$.query"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "given", "options", "path"), WRONG, ids=[f"{n}-{p}-{i}" for i, (n, _, _, p) in enumerate(WRONG)]
)
async def test_a_wrong_value_is_refused_with_its_path(
    engine: Engine, name: str, given: tuple[Any, ...], options: dict[str, Any], path: str
) -> None:
    with pytest.raises(InvalidValue) as caught:
        await getattr(engine, name)(*given, **options)
    assert caught.value.path == path
    assert len(await engine.events("c")) == 1
    assert len(await engine.list_chats()) == 1


async def test_an_imported_log_needs_an_id_too(engine: Engine) -> None:
    data = await engine.export_log("c")
    for given in ("a/b", "", 5, "a" * 201):
        with pytest.raises(InvalidValue) as caught:
            await engine.import_log(data, as_id=given)  # type: ignore[arg-type]
        assert caught.value.path == "$.as_id"
    with pytest.raises(LogFileError, match="the header's chat is 'a/b', the first event's 'c'"):
        await engine.import_log(data.replace(b'"chat":"c"', b'"chat":"a/b"', 1))


async def test_a_fork_is_of_a_version_that_there_is(engine: Engine) -> None:
    with pytest.raises(ChatNotFound, match=r"^fork refused: chat c has no version 9; its newest is 1$"):
        await engine.fork("c", at=9)
    with pytest.raises(ChatNotFound, match=r"^fork refused: there is no chat nope$"):
        await engine.fork("nope", at=9)
    with pytest.raises(ChatNotFound, match="there is no such chat"):
        await engine.adopt("nope")


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ({"statuses": ("foo",)}, "$.statuses"),
        ({"statuses": "waiting"}, "$.statuses"),
        ({"limit": -1}, "$.limit"),
        ({"limit": "5"}, "$.limit"),
        ({"before": ("x", 3)}, "$.before"),
        ({"before": (1,)}, "$.before"),
        ({"owner": 5}, "$.owner"),
        ({"archived": "yes"}, "$.archived"),
        ({"labels": {"x": 1}}, "$.labels"),
        ({"labels": "x"}, "$.labels"),
    ],
)
def test_a_query_that_makes_no_sense_is_refused(query: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        ChatQuery(**query)
    assert caught.value.path == path


async def test_a_log_has_the_versions_that_it_has(engine: Engine) -> None:
    log = await engine.events("c")
    assert state_at(log, 0).control.version == 0
    assert state_at(log, 1).control.version == 1
    for version in (99, -1, "1", True):
        with pytest.raises(InvalidValue, match=r"\$\.version"):
            state_at(log, version)  # type: ignore[arg-type]


@pytest.mark.parametrize("arguments", ["{bad", "[]", "", '{"a": NaN}', {"name": "y"}], ids=str)
async def test_an_approval_with_broken_arguments_leaves_the_question_open(engine: Engine, arguments: Any) -> None:
    await engine.send_message("c", "Please burn it.")
    action = (await engine.settled("c")).control.action
    assert action is not None
    call = action.items[0].call
    assert call is not None
    answer = ApprovalAnswer(call=call, approved=True, arguments=Content(arguments))
    with pytest.raises(ToolResultsInvalid, match="what was given cannot be taken: ") as caught:
        await engine.submit_tool_results("c", action.id, approvals=[answer])
    assert (caught.value.kind, caught.value.ids) == ("invalid_json", (call,))
    assert (await engine.state("c")).control.action == action

    right = ApprovalAnswer(call=call, approved=True, arguments=Content('{"name": "y"}'))
    await engine.submit_tool_results("c", action.id, approvals=[right])
    assert (await engine.settled("c")).control.status == "waiting"


async def test_nothing_given_is_said_so(engine: Engine) -> None:
    await engine.send_message("c", "Please burn it.")
    action = (await engine.settled("c")).control.action
    assert action is not None
    with pytest.raises(ToolResultsInvalid, match=r"no results were given$"):
        await engine.submit_tool_results("c", action.id)


async def test_an_id_that_is_not_there_is_quoted(engine: Engine) -> None:
    with pytest.raises(Exception, match="no message '' is in history"):
        await engine.edit_message("c", "", "Hi.")


async def test_what_is_no_object_is_not_called_no_json(engine: Engine) -> None:
    await engine.send_message("c", "Please burn it.")
    action = (await engine.settled("c")).control.action
    assert action is not None
    (call,) = action.to_approve
    for arguments, said in (("[1]", "must be the JSON text of an object"), ("{bad", r"\$: not JSON: .*column 2")):
        answer = ApprovalAnswer(call=call, approved=True, arguments=Content(arguments))
        with pytest.raises(ToolResultsInvalid, match=rf"cannot be taken: {call}: {said}"):
            await engine.submit_tool_results("c", action.id, approvals=[answer])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ('{"nam": "y"}', r"\$\.name: Field required"),
        ('{"name": 5}', r"\$\.name: Input should be a valid str"),
    ],
)
async def test_arguments_that_the_tool_does_not_take_are_refused_with_the_answer(
    engine: Engine, arguments: str, said: str
) -> None:
    await engine.send_message("c", "Please burn it.")
    action = (await engine.settled("c")).control.action
    assert action is not None
    (call,) = action.to_approve
    answer = ApprovalAnswer(call=call, approved=True, arguments=Content(arguments))
    with pytest.raises(ToolResultsInvalid, match=rf"its tool does not take: {call}: .*{said}") as caught:
        await engine.submit_tool_results("c", action.id, approvals=[answer])
    assert (caught.value.kind, caught.value.ids) == ("invalid_arguments", (call,))
    assert (await engine.state("c")).control.action == action
    # What is not approved is not run, whatever stands beside it.
    no = ApprovalAnswer(call=call, approved=False, arguments=Content(arguments))
    await engine.submit_tool_results("c", action.id, approvals=[no])


async def test_where_the_tool_is_not_known_its_arguments_are_looked_at_when_it_runs(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/chats.db"
    model = ScriptedProvider([turn(UseTool("burn", {"name": "x"})), "Done."])
    async with Engine(url, [AGENT], providers={"scripted": model}) as runs, Engine(url, worker=False) as takes:
        await runs.create_chat("a", "Please burn it.", chat_id="c")
        action = (await runs.settled("c")).control.action
        assert action is not None
        answer = ApprovalAnswer(call=action.to_approve[0], approved=True, arguments=Content('{"nam": "y"}'))
        await takes.submit_tool_results("c", action.id, approvals=[answer])
        state = await runs.settled("c")
        parts = [part for item in state.messages for part in item.message.parts]
        (result,) = [part for part in parts if isinstance(part, ToolResultPart)]
        assert result.is_error
        assert result.output is not None
        assert "so the tool was not run" in result.output.text


@pytest.mark.parametrize(
    ("title", "why"),
    [
        ("Red\x1b[31m", "U+001B"),
        ("a\x00", "U+0000"),
        ("a\nb", "U+000A"),
        ("a\u2028b", "U+2028"),
        ("a\x9bb", "U+009B"),
        ("\u202ecba", "U+202E"),
        ("a\u2066b", "U+2066"),
        ("\u200b", "is blank"),
        ("\u202e", "is blank"),
    ],
)
def test_titles_without_controls(title: str, why: str) -> None:
    with pytest.raises(InvalidValue, match=re.escape(why)) as refused:
        checked_title(title)
    assert refused.value.path == "$.title"


@pytest.mark.parametrize("title", ["\u05d0\u200f!", "\U0001f468\u200d\U0001f469", " A "])
def test_titles_that_are_fine(title: str) -> None:
    checked = checked_title(title)
    assert checked is not None
    assert checked.text == title
