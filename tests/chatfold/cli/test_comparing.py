"""`diff`, `bisect` and `fork`: what they print, what they make, and how they end."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from chatfold.engine import Engine
from tests.chatfold.cli.kit import Cli
from tests.chatfold.replaying.pair import agent, log, model


@pytest.fixture
def logs(cli: Cli, tmp_path: Path) -> Cli:
    for order in ("A-1", "B-2", "gone"):
        (tmp_path / f"{order}.jsonl").write_bytes(log(order))
    return cli


@pytest.fixture
def stored(logs: Cli) -> Cli:
    async def talk() -> None:
        async with Engine(logs.url, [agent()], providers={"scripted": model("A-1")}) as engine:
            await engine.create_chat("support", "Where is A-1?", owner="ada", chat_id="shop")
            await engine.settled("shop")

    asyncio.run(talk())
    return logs


def test_logs_that_did_the_same(logs: Cli) -> None:
    done = logs.ok("diff", "A-1.jsonl", "B-2.jsonl")
    assert done.out.startswith("the same: ")
    (line,) = logs.ok("diff", "A-1.jsonl", "-", "--json", stdin=log("B-2")).lines
    assert line["parts"] is False
    assert line["then"] == [[], []]


def test_logs_that_part(logs: Cli) -> None:
    done = logs.run("diff", "A-1.jsonl", "gone.jsonl", "--context", "1")
    assert done.code == 1
    assert done.out == (
        "the same for 4 moves, up to version 6 and 6; then they part:\n"
        "\nA-1.jsonl\n     7  R0 record_tool_result R0 (look_up)\n"
        "\ngone.jsonl\n     7  R0 record_tool_result R0 (look_up): error\n"
    )
    (line,) = logs.run("diff", "A-1.jsonl", "gone.jsonl", "--json").lines
    assert line["last"] == [6, 6]
    assert line["then"][1][0] == {
        "version": 7, "source": "R0", "trigger": "record_tool_result", "dest": "R0", "rule": None, "action": None,
        "tools": ["look_up"], "cause": "error", "origin": None,
    }  # fmt: skip


@pytest.fixture
def family(stored: Cli) -> Cli:
    """A chat, two forks of it, and a fork of the first of these that went on."""

    async def fork() -> None:
        async with Engine(stored.url, [agent()], worker=False) as engine:
            await engine.fork("shop", at=10, chat_id="early")
            await engine.fork("shop", at=16, chat_id="late")
            await engine.fork("early", chat_id="grandchild")
            await engine.send_message("grandchild", "Otherwise")

    asyncio.run(fork())
    for chat in ("shop", "early", "grandchild"):
        stored.ok("export", chat, "-o", f"{chat}.jsonl")
    return stored


PAY = "    11  R0 start_attempt R0, D1 run_tools (pay)"
ENDS = "        (ends here)\n"
SENT = "     3  W send P0\n"


@pytest.mark.parametrize(
    ("sources", "said"),
    [
        (["shop", "early"], f"up to version 10 and 3; then they part:\n\nshop\n{PAY}\n\nearly\n{ENDS}"),
        (["shop.jsonl", "early.jsonl"], f"up to version 10 and 3; then they part:\n\nshop.jsonl\n{PAY}\n"),
        (["shop", "grandchild"], f"up to version 10 and 2; then they part:\n\nshop\n{PAY}\n\ngrandchild\n{SENT}"),
        (["early.jsonl", "grandchild"], f"up to version 3 and 2; then they part:\n\nearly.jsonl\n{ENDS}"),
        (["late", "early"], f"up to version 3 and 3; then they part:\n\nlate\n{PAY}, in shop\n\nearly\n{ENDS}"),
    ],
)  # fmt: skip
def test_a_fork_did_what_its_origin_did_until_it_was_forked(family: Cli, sources: list[str], said: str) -> None:
    done = family.run("diff", *sources, "--context", "1")
    assert done.code == 1
    assert done.out.startswith(f"the same for 8 moves, {said}")
    assert "is a fork of shop, from version 10\n" in done.err


def test_a_fork_whose_origin_is_not_at_hand_is_compared_from_its_copying_on(family: Cli) -> None:
    done = family.run("diff", "shop.jsonl", "grandchild.jsonl")
    assert done.out.startswith("they part at once\n")
    assert "grandchild.jsonl is a fork of early, from version 3\n" in done.err
    assert "the log of early is not at hand" in done.err
    (line,) = family.run("diff", "shop.jsonl", "grandchild.jsonl", "--json").lines
    assert line["origins"] == [[], [{"chat": "early", "version": 3, "known": False}]]


def test_versions_of_one_log(logs: Cli) -> None:
    done = logs.run("diff", "A-1.jsonl", "--at", "1", "--to", "2")
    assert done.code == 1
    assert "$.status: 'pending' -> 'running'\n" in done.out
    assert done.err == "version 1 (P0) and version 2 (R0)\n"
    changes = logs.run("diff", "A-1.jsonl", "--at", "1", "--to", "2", "--json").lines
    assert {"kind": "change", "path": "$.epoch", "before": 0, "after": 1} in changes
    assert logs.ok("diff", "A-1.jsonl", "--at", "21").out == "nothing differs\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["A-1.jsonl"], "name two logs"),
        (["A-1.jsonl", "B-2.jsonl", "--at", "3"], "name two logs"),
        (["A-1.jsonl", "--to", "3"], "name two logs"),
        (["A-1.jsonl", "--at", "99"], "A-1.jsonl has no version 99; its last is 21"),
        (["-", "-"], "- (stdin) is one log"),
    ],
)
def test_what_cannot_be_compared(logs: Cli, arguments: list[str], said: str) -> None:
    done = logs.run("diff", *arguments)
    assert done.code == 2
    assert said in done.err


def test_where_a_condition_first_holds(logs: Cli) -> None:
    done = logs.ok("bisect", "A-1.jsonl", "--when", "status == requires_action")
    assert "action_required" in done.out
    assert done.err.startswith("first at version 16 of 21, ")
    (line,) = logs.ok("bisect", "A-1.jsonl", "--when", "tool == pay", "--json").lines
    assert (line["version"], line["event"]["event"]) == (10, "step_committed")
    never = logs.run("bisect", "A-1.jsonl", "--when", "status == error")
    assert (never.code, never.out) == (1, "")
    assert never.err == "A-1.jsonl: it holds at no version from 1 to 21, the last\n"
    (line,) = logs.run("bisect", "A-1.jsonl", "--when", "status == error", "--json").lines
    assert (line["version"], line["versions"]) == (None, 21)
    wrong = logs.run("bisect", "A-1.jsonl", "--when", "statis == error")
    assert wrong.code == 2
    assert "there is no name 'statis'" in wrong.err


def test_a_fork_over_what_tools_did_is_made_only_if_one_says_so(stored: Cli) -> None:
    refused = stored.run("fork", "shop", "--at", "5", "--as", "copy")
    assert refused.code == 1
    assert "2 calls, 1 not safe to repeat" in refused.err
    assert "pay" in refused.err
    assert stored.run("show", "copy").code == 2
    (line,) = stored.run("fork", "shop", "--at", "5", "--as", "copy", "--json").lines
    assert line["chat"] is None
    assert [each["tool"] for each in line["effects"]] == ["look_up", "pay"]

    done = stored.ok(
        "fork", "shop", "--at", "5", "--as", "copy", "--message", "Otherwise", "--model", "scripted/y", "-y"
    )
    assert done.out == "copy\n"
    (state,) = stored.ok("show", "copy", "--json").lines
    assert state["status"] == "pending"
    assert state["control"]["model"] == "scripted/y"
    assert state["messages"][-1]["parts"] == [{"kind": "text", "text": "Otherwise"}]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "`chatfold chat --chat copy --agents MODULE:NAME`, whose agents have support, goes on with it"),
        (["--message", "x"], "`chatfold worker --agents MODULE:NAME`, whose agents have support, runs its turn"),
        (["--agent", "assistant"], "`chatfold chat --chat copy` goes on with it"),
        (["--agents", "shop_agents:AGENTS"], "`chatfold chat --chat copy --agents shop_agents:AGENTS` goes on with it"),
        (["--agent", "assistant", "--db", "FILE"], "`chatfold chat --chat copy --db FILE` goes on with it"),
    ],
)
def test_a_fork_is_told_with_the_command_that_goes_on(
    stored: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    (tmp_path / "shop_agents.py").write_text("from chatfold import Agent\nAGENTS = [Agent(name='support')]\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("sys.argv", ["chatfold"])
    url = stored.url
    done = stored.ok("fork", "shop", "--as", "copy", *(url if each == "FILE" else each for each in arguments))
    assert f"; {said.replace('FILE', url)}" in done.err


def test_a_fork_from_the_last_version_needs_no_yes(stored: Cli) -> None:
    (line,) = stored.ok("fork", "shop", "--at", "15", "--agent", "other", "--resume", "--yes", "--json").lines
    assert line["effects"] == []
    (state,) = stored.ok("show", line["chat"], "--json").lines
    assert (state["status"], state["control"]["agent"]) == ("pending", "other")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--at", "99"], "shop has no version 99"),
        (["--resume", "--message", "x"], "give one of them"),
        (["--model", "nonsense"], "nonsense"),
        (["--message", " "], "the text is blank"),
        (["--agent", ""], "--agent: "),
        (["--agent", "x" * 300, "--message", "x"], "--agent: "),
        (["--as", "shop"], "a chat of this id exists"),
        (["--agents", "no_module:X"], "--agents no_module:X cannot be loaded"),
    ],
)
def test_what_cannot_be_forked(stored: Cli, arguments: list[str], said: str) -> None:
    before = stored.ok("list", "--json").out
    done = stored.run("fork", "shop", "--yes", *arguments)
    assert done.code in (1, 2)
    assert said in done.err
    assert stored.ok("list", "--json").out == before, "nothing is made by half"


def test_a_model_whose_provider_is_not_there_is_refused_or_told(chats: Cli) -> None:
    done = chats.run("fork", "talk", "--model", "nosuch/m", "--as", "copy")
    assert (done.code, "'nosuch/m': there is no such provider; known here: " in done.err) == (2, True), done
    assert chats.run("show", "copy").code == 2
    told = chats.ok("fork", "asks", "--model", "nosuch/m", "--as", "copy")
    assert "provider nosuch of --model nosuch/m is not known here" in told.err
    assert "unless the workers that run agent asking have it" in told.err


def test_an_agent_that_is_not_known_here_is_told(chats: Cli) -> None:
    told = chats.ok("fork", "talk", "--agent", "nobody", "--as", "copy")
    assert "agent nobody of --agent is not known here (known: " in told.err
    assert "the fork's turns wait until a worker runs that has it" in told.err
    assert "not known here" not in chats.ok("fork", "talk", "--agent", "assistant", "--as", "other").err
    assert "not known here" not in chats.ok("fork", "asks", "--agent", "asking", "--as", "third").err


def test_a_bisect_that_finds_nothing_says_which_words_the_log_has(logs: Cli) -> None:
    done = logs.run("bisect", "A-1.jsonl", "--when", "tool == look_upp and agent == support")
    assert done.code == 1
    nowhere, hint = done.err.splitlines()
    assert nowhere.startswith("A-1.jsonl: it holds at no version")
    assert hint == "tool is never look_upp there; there are look_up, pay, where; did you mean look_up?"
    assert len(logs.run("bisect", "A-1.jsonl", "--when", "tool == pay and steps > 1000").err.splitlines()) == 1


def test_a_file_is_not_forked(logs: Cli) -> None:
    done = logs.run("fork", "A-1.jsonl")
    assert (done.code, "`chatfold import`" in done.err) == (2, True)


def test_a_turn_that_is_not_owed_leaves_no_fork(chats: Cli) -> None:
    before = chats.ok("list", "--json").out
    done = chats.run("fork", "talk", "--resume", "--as", "copy")
    assert (done.code, done.err.endswith("history owes no turn; send a message instead\n")) == (1, True)
    assert chats.ok("list", "--json").out == before
