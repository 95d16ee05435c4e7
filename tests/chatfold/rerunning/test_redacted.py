"""Redacted logs run again: facts come out the same, contents by kind and size; what changed is found all the same."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from unittest.mock import patch

import pytest
from msgspec.structs import replace
from pydantic import BaseModel, Field

from chatfold.corpus.adding import add_log
from chatfold.corpus.expected import requests_expected
from chatfold.corpus.gate import FOLD, check_corpus
from chatfold.engine import Engine
from chatfold.logcheck import verify_log
from chatfold.redacting.record import Order, record_log
from chatfold.redacting.rules import KINDS, RedactionRules
from chatfold.replaying.decisions import decision_drifts
from chatfold.replaying.logs import Log, LogSource
from chatfold.rerunning.redacted import legible, made_up
from chatfold.rerunning.run import RerunReport, rerun
from chatfold.testing import Cut, Fail, Think, Turn, UseTool, assert_reruns, turn
from events.content import Content, Json
from events.ids import ChatId
from events.messages import Usage
from events.records import ApprovalAnswer
from events.vocabulary import RetryScheduled, TurnFailed
from generation.agents import Agent, Limits
from generation.context import Context
from generation.error_texts import redact
from generation.providers.scripted import ScriptedProvider
from generation.tools.contract import Tool, client_tool
from tests.chatfold.cli.kit import Cli
from tests.chatfold.rerunning.kit import agent, log_of, written
from tests.corpus.kit import BUSY, Scenario, Scene, assistant, hook, play
from tests.corpus.make import FOLDER

LOGS: Final = sorted(FOLDER.glob("*.jsonl"))
KEY: Final = b"a key that nobody would guess"
RULES: Final[Mapping[str, RedactionRules]] = {
    "usual": RedactionRules(),
    "mapped": RedactionRules(names=dict.fromkeys(KINDS, "map")),
    "kept": RedactionRules(names=dict.fromkeys(KINDS, "keep")),
}
ARGUMENTS: Final = "calls: arguments are made up, so it is looked whether there is the tool, and no more"
SAID: Final = "messages: the log was redacted, so contents are compared by their kind and size, and prompts are not"


def recorded(file: Path, folder: Path, rules: RedactionRules = RedactionRules()) -> Path:  # noqa: B008 -- frozen
    """Record a log as `chatfold record` does, and return its file."""
    folder = folder / file.stem  # chats of the corpus have the same ids
    folder.mkdir()
    done = record_log(LogSource("file", str(file)), Order(rules=rules, key=KEY, folder=str(folder)))
    assert done.failed is None
    assert done.file is not None
    return Path(done.file)


def redacted(data: bytes, folder: Path, rules: RedactionRules = RedactionRules()) -> Log:  # noqa: B008 -- frozen
    """Return the redacted form of a log file's bytes."""
    (folder / "plain.jsonl").write_bytes(data)
    return LogSource("file", str(recorded(folder / "plain.jsonl", folder, rules))).read()


def same(report: RerunReport) -> bool:
    return report.same and report.sections == ()


EACH: Final = [(path, "usual") for path in LOGS] + [(path, rules) for rules in ("mapped", "kept") for path in LOGS[::2]]


@pytest.mark.parametrize(("path", "rules"), EACH, ids=lambda each: each.stem if isinstance(each, Path) else each)
def test_each_log_of_the_corpus(path: Path, rules: str, tmp_path: Path) -> None:
    log = LogSource("file", str(recorded(path, tmp_path, RULES[rules]))).read()
    assert log.redacted
    assert verify_log(log.chat, log.events, log.blobs).findings == ()
    assert list(decision_drifts(log.recorded())) == []
    report = rerun(log)
    assert same(report), report
    assert [said for said in report.not_compared if "redacted" in said] == [SAID]
    assert_reruns(log)


async def nothing_said(scene: Scene) -> str:
    """Each attempt announces calls that do not come, until the turn is given up."""
    silent = [turn(finish="tool_calls", usage=Usage(input=1))] * 12
    engine = await scene.engine(silent, agents=[assistant(limits=Limits(max_model_attempts=12))])
    return await _settled(scene, engine)


async def declined(scene: Scene) -> str:
    """The service declines, and explains itself."""
    said = replace(turn("I", finish="refusal"), explanation="It is about something that I do not do.")
    engine = await scene.engine([said])
    return await _settled(scene, engine)


async def declined_silently(scene: Scene) -> str:
    """The service declines without a word."""
    return await _settled(scene, await scene.engine([turn(finish="content_filter")]))


_TWICE: Final = Limits(max_model_attempts=2)


def _compacted(*summaries: Turn | str, said: str | None = None) -> Scenario:
    """Return a chat that is compacted, by these answers, with what a hook adds to the summary."""
    hooks = [] if said is None else [hook("post_compact", context=said)]

    async def compact(scene: Scene) -> str:
        engine = await scene.engine(["One.", *summaries], agents=[assistant(limits=_TWICE)], hooks=hooks)
        chat = (await engine.create_chat("assistant", "Hello.")).chat
        await engine.settled(chat)
        await engine.compact(chat)
        await engine.settled(chat)
        return chat

    return compact


class _Source:
    """A context source that collects as it is told to."""

    name = "a source with a name of its own"
    revision = None

    def __init__(self, collect: Callable[[], Any]) -> None:
        self._collect = collect

    async def collect(self, chat: ChatId) -> Context:
        got = self._collect()
        if got is None:
            await asyncio.sleep(1_000_000)
        return got  # type: ignore[no-any-return]  # it may be none


def _collected(collect: Callable[[], Any]) -> Scenario:
    async def ask(scene: Scene) -> str:
        agents = [assistant(context=_Source(collect), limits=Limits(max_model_attempts=3))]
        return await _settled(scene, await scene.engine([], agents=agents, context_timeout=7.5))

    return ask


async def _settled(_: Scene, engine: Any) -> str:
    chat: str = (await engine.create_chat("assistant", "Hello.")).chat
    await engine.settled(chat)
    return chat


async def cut_and_busy(scene: Scene) -> str:
    """Both kinds of failure that models tell of, until the turn is given up."""
    script = [turn("Hal", Cut()), turn(Fail(BUSY)), turn("H", Cut())]
    return await _settled(scene, await scene.engine(script, agents=[assistant(limits=Limits(max_model_attempts=3))]))


_EMPTY: Final = turn(finish="stop")
ENGINES_OWN: Final[dict[str, Scenario]] = {
    "no output": nothing_said,
    "declined": declined,
    "declined without a word": declined_silently,
    "empty summaries": _compacted(_EMPTY, _EMPTY),
    "summaries of calls": _compacted(*[turn(UseTool("add", {"a": 1, "b": 2}))] * 2),
    "summaries of thoughts": _compacted(*[turn(Think("Hm."))] * 2),
    "a cut summary": _compacted(turn(finish="length")),
    "a summary with quotes": _compacted(turn('"They" said:\n"Hello" and "Hello."')),
    "a summary with more": _compacted("They talked.", said="It was Monday."),
    "a summary with quotes and more": _compacted('They "talked".', said="M"),
    "no context": _collected(lambda: None),
    "a broken source": _collected(lambda: 1 / 0),
    "a wrong context": _collected(lambda: 7),
    "cut and busy": cut_and_busy,
}


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("what", ENGINES_OWN)
def test_what_the_engine_itself_said_is_found_by_its_size(what: str, rules: str, tmp_path: Path) -> None:
    log = redacted(play(ENGINES_OWN[what]), tmp_path, RULES[rules])
    report = rerun(log)
    assert same(report), report
    failed = [each.event for each in log.recorded() if isinstance(each.event, TurnFailed | RetryScheduled)]
    assert bool(failed) is ("summary with" not in what)


def test_words_are_put_back_and_sizes_stay(tmp_path: Path) -> None:
    log = redacted(play(nothing_said), tmp_path).recorded()
    assert not [each for each in log if b"no output" in repr(each.event).encode()]
    last = legible(log)[-1].event
    assert isinstance(last, TurnFailed)
    assert isinstance(last.error.detail, Content)
    assert last.error.detail.text == "finish reason: tool_calls"
    assert last.error.message.text == "The scripted model gave no output. Given up after 12 attempts; try again later."
    then = log[-1].event
    assert isinstance(then, TurnFailed)
    assert then.error.message.size == last.error.message.size


@pytest.mark.parametrize("size", [0, 1, 2, 3, 500, 2000])
def test_what_is_made_up_has_its_size_and_looks_like_no_secret(size: int) -> None:
    text = made_up(size)
    assert len(text.encode()) == size
    assert redact(text) == text


def test_today_s_agents_are_compared_all_the_same(tmp_path: Path) -> None:
    """A tool cannot say whether it takes made-up arguments: it took them then."""
    for name in ("approval", "client_tool", "tools"):
        log = LogSource("file", str(recorded(FOLDER / f"{name}.jsonl", tmp_path))).read()
        assert same(report := rerun(log, [assistant()])), report
        assert report.not_compared == (SAID, ARGUMENTS)
        other = rerun(log, [assistant(system="You do not help.")])
        assert other.same
        assert {change.section for change in other.sections} == {"system"}


def test_a_tool_that_is_gone_is_told(tmp_path: Path) -> None:
    log = LogSource("file", str(recorded(FOLDER / "tools.jsonl", tmp_path))).read()
    report = rerun(log, [assistant(tools=[tool for tool in assistant().tools if tool.name != "add"])])
    told = {change.now for change in report.sections if change.section == "calls"}
    assert told == {"there is no tool add today, which was called then"}


def test_digests_that_are_mapped_are_told_and_not_compared(tmp_path: Path) -> None:
    rules = RedactionRules(names={"digests": "map"})
    log = LogSource("file", str(recorded(FOLDER / "tools.jsonl", tmp_path, rules))).read()
    report = rerun(log, [assistant()])
    assert same(report), report
    assert report.not_compared[2].startswith("system, tools, options: the log's digests are mapped")
    assert not report.compared & {"system", "tools", "options"}
    fewer = rerun(log, [assistant(limits=Limits(max_steps=77))])
    assert [change.path for change in fewer.sections[0].changes] == ["$.max_steps"], "limits are compared all the same"


class Seat(BaseModel, extra="forbid"):
    row: Annotated[int, Field(ge=1, le=5)]
    side: Literal["left", "right"]
    code: Annotated[str, Field(pattern="^[A-Z]-[0-9]$")]


def pay(amount: Annotated[int, Field(le=100)], currency: Literal["EUR"]) -> str:
    """Pay an amount."""
    return f"{amount} {currency}"


def cashier(*, needs_approval: bool) -> Agent:
    """Return an agent whose tools take values that hardly anything made up is."""
    tools = [client_tool("pick", "Pick a seat.", Seat), Tool.from_function(pay, needs_approval=needs_approval)]
    return Agent(name="support", model="scripted", tools=tools)


def paid(*, needs_approval: bool) -> bytes:
    """Return the log of a chat with calls whose arguments the tools take, and with calls whose they do not."""
    seat: dict[str, Json] = {"row": 1, "side": "left", "code": "A-1"}
    calls: list[tuple[str, dict[str, Json]]] = [
        ("pick", seat),
        ("pick", {**seat, "row": 9}),
        ("pay", {"amount": 1, "currency": "EUR"}),
    ]
    calls += [("pay", {"amount": True, "currency": "YEN"}), ("pay", {"amount": 999, "currency": "EUR"})]
    script = [*(turn(UseTool(name, arguments)) for name, arguments in calls), turn("Done.")]

    async def talk() -> bytes:
        models = {"scripted": ScriptedProvider(script)}
        async with Engine("memory://", [cashier(needs_approval=needs_approval)], providers=models) as engine:
            await engine.create_chat("support", "A seat, please.", chat_id="help")
            while (action := (await engine.settled("help")).control.action) is not None:
                results = dict.fromkeys(action.client_calls, "taken")
                allowed = [ApprovalAnswer(call=call, approved=True) for call in action.to_approve]
                await engine.submit_tool_results("help", action.id, results, approvals=allowed)
            return await engine.export_log("help")

    return asyncio.run(talk())


@pytest.mark.parametrize("rules", ["usual", "kept"])
@pytest.mark.parametrize("needs_approval", [True, False])
def test_made_up_arguments_are_held_to_no_schema(needs_approval: bool, rules: str, tmp_path: Path) -> None:
    log = redacted(paid(needs_approval=needs_approval), tmp_path, RULES[rules])
    assert same(report := rerun(log, [cashier(needs_approval=needs_approval)])), report


def test_a_tool_that_asks_today_asks_for_made_up_arguments_too(tmp_path: Path) -> None:
    data = paid(needs_approval=False)
    today = [cashier(needs_approval=True)]
    plain, made = rerun(log_of(data), today), rerun(redacted(data, tmp_path), today)
    assert plain.difference is not None
    assert made.difference is not None
    assert made.difference.version == plain.difference.version
    assert made.difference.changes == plain.difference.changes


@pytest.mark.odd_decisions("another policy is run")
@pytest.mark.odd_reruns("another policy is run")
def test_a_decision_that_moves_is_a_difference(tmp_path: Path) -> None:
    log = redacted(asyncio.run(written()), tmp_path)
    assert same(rerun(log, [agent()]))
    moved: Agent = agent(limits=Limits(max_steps=1))
    report = rerun(log, [moved])
    assert report.difference is not None
    assert (report.difference.version, report.difference.rule) == (9, "D11")


@pytest.mark.odd_prompts("another text is taken")
@pytest.mark.odd_decisions("another text is taken")
@pytest.mark.odd_reruns("another text is taken")
@pytest.mark.parametrize(("text", "differs"), [("y" * 51, False), ("y" * 52, True)])
def test_a_text_of_another_size_is_a_difference(text: str, differs: bool, tmp_path: Path) -> None:
    log = LogSource("file", str(recorded(FOLDER / "approval.jsonl", tmp_path))).read()
    with patch("chatstate.handlers.action.REJECTED", Content(text)):
        report = rerun(log)
    assert (report.difference is not None) is differs
    if report.difference is not None:
        assert str(report.difference.changes[0]) == "$.added[0].parts[0].output: 51 B -> 52 B"


def test_a_corpus_may_have_redacted_logs(tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    folder.mkdir()
    for name in ("compact_asked", "given_up", "approval"):
        log = recorded(FOLDER / f"{name}.jsonl", tmp_path).read_bytes()
        assert add_log(log, folder, name, "A note.", [assistant()]).strangers == ()
    assert [each.finding for each in check_corpus(folder, jobs=1)] == [None] * 3
    # An agent's revision is another one in a redacted log; it is known by what it says.
    assert requests_expected(folder / f"given_up{FOLD}") == {"system", "tools"}


def test_the_command_line_says_once_what_is_not_compared(tmp_path: Path) -> None:
    file = recorded(FOLDER / "compact_asked.jsonl", tmp_path)
    cli = Cli(tmp_path / "none.db")
    (line,) = cli.ok("rerun", str(file), "--json").lines
    assert line["same"]
    assert [said for said in line["not_compared"] if "redacted" in said] == [SAID]
    done = cli.ok("rerun", str(file))
    assert done.err.count("redacted") == 1
    assert "is not given" not in done.err, "who gave no agents knows that, where nothing differs"
