"""`list`, `show`, `replay` and `graph`: what they show of stored chats and of log files, old ones too."""

import io
import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from chatfold.cli.looking import print_state
from chatfold.cli.output import Channel, one_line, printable
from chatfold.cli.shapes import SHAPES, Shape
from chatfold.cli.timeline import note, said_of, time_of
from chatfold.replaying.logs import is_file
from events.content import Content
from events.ids import CallKey, WorkerId
from events.parts import FilePart
from events.records import ErrorInfo
from events.vocabulary import Acquired
from tests.chatfold.cli.kit import Cli
from tests.generation.kit import assistant, call, result, state_of, tool, user
from tests.meta.source import ROOT

GOLDEN = sorted((ROOT / "tests" / "golden" / "v0.1" / "logs").glob("*.jsonl"))


def test_list_shows_the_newest_change_first_and_filters(chats: Cli) -> None:
    told = chats.ok("list")
    assert told.err.split() == ["chat", "last", "changed", "status", "events", "agent,", "title"]
    assert told.err.index("status") == told.out.index("error")
    lines = chats.ok("list", "--json").lines
    assert [line["chat"] for line in lines] == ["broken", "asks", "talk"]
    assert lines[2]["title"] == "A talk"
    assert [line["chat"] for line in chats.ok("list", "--json", "-n", "2").lines] == ["broken", "asks"]
    some = chats.ok("list", "--json", "--status", "error", "--status", "requires_action").lines
    assert [line["status"] for line in some] == ["error", "requires_action"]
    assert [line["chat"] for line in chats.ok("list", "--json", "--agent", "assistant").lines] == ["talk"]
    assert chats.ok("list", "--json", "--owner", "nobody").out == ""


def test_list_for_people(chats: Cli) -> None:
    done = chats.ok("list")
    assert [line.split()[0] for line in done.out.splitlines()] == ["broken", "asks", "talk"]
    assert done.out.splitlines()[2].endswith("A talk")
    nothing = chats.ok("list", "--owner", "nobody")
    assert (nothing.out, "no chats" in nothing.err) == ("", True)


def test_replay_tells_every_event_and_why(chats: Cli) -> None:
    lines = chats.ok("replay", "talk", "--json").lines
    assert [line["event"] for line in lines] == [
        "chat_created", "acquired", "policy_recorded", "attempt_started", "step_committed", "turn_finished",
        "message_sent", "acquired", "attempt_started", "step_committed", "turn_finished",
    ]  # fmt: skip
    decided = lines[3]
    assert (decided["rule"], decided["action"], decided["source"], decided["dest"]) == (
        "D11",
        "generate",
        "running",
        "running",
    )
    assert (lines[0]["state_before"], lines[0]["state_after"]) == ("N", "P0")
    shown = chats.ok("replay", "talk").out.splitlines()
    assert len(shown) == len(lines)
    assert shown[0].split()[:6] == ["1", *time_of(lines[0]["recorded_at"]).split(), "chat_created", "none", "->"]
    assert shown[5].rstrip().endswith("D6 finish(complete)  complete")


@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: file.stem)
def test_logs_of_every_release_are_replayed(cli: Cli, file: Path) -> None:
    lines = cli.ok("replay", str(file), "--json").lines
    assert len(lines) == json.loads(file.read_text().partition("\n")[0])["events"]
    assert len(cli.ok("replay", str(file)).out.splitlines()) == len(lines)
    (state,) = cli.ok("show", str(file), "--json").lines
    assert state["version"] == len(lines)
    assert cli.ok("show", str(file)).out
    assert not cli.file.exists(), "a file was read, and a database was made"


def test_the_state_at_a_version(chats: Cli) -> None:
    (state,) = chats.ok("replay", "talk", "--at", "5", "--json").lines
    assert (state["version"], state["status"], state["state"]) == (5, "running", "R0")
    assert [(each["id"], each["role"], each["parts"][0]["text"]) for each in state["messages"]] == [
        ("1.0", "user", "First"),
        ("5.0", "assistant", "One."),
    ]
    assert state["control"]["version"] == 5
    (before,) = chats.ok("replay", "talk", "--at", "0", "--json").lines
    assert (before["status"], before["state"], before["messages"]) == ("none", "N", [])
    shown = chats.ok("replay", "talk", "--at", "5").out
    assert "version   5 of 11\n" in shown
    assert "user [1.0]\n  First\n" in shown
    beyond = chats.run("replay", "talk", "--at", "12")
    assert (beyond.code, beyond.err) == (2, "chatfold: talk has no version 12; its last is 11\n")


def test_what_a_chat_asks_and_what_failed_is_shown(chats: Cli) -> None:
    assert "asks      client_call 5.0.1, until " in chats.ok("show", "asks").out
    assert "error     config: " in chats.ok("show", "broken").out


def test_erased_content_is_said_to_be_erased(chats: Cli) -> None:
    lines = chats.ok("export", "talk").out.splitlines()
    event = json.loads(lines[1])
    assert event["content"]
    # As the store erases: the hash of the item takes its place.
    from events.contentlist import erase_items

    bare = lines[1].index('"content":') + len('"content":')
    end = lines[1].index(',"digest"', bare)
    lines[1] = lines[1][:bare] + erase_items(lines[1][bare:end].encode()).decode() + lines[1][end:]
    log = "\n".join(lines)
    assert "(erased, 5 B)" in chats.ok("replay", "-", stdin=log).out
    (state,) = chats.ok("show", "-", "--json", stdin=log).lines
    assert state["messages"][0]["parts"][0]["text"] == {"absent": "erased", "bytes": 5}
    assert chats.ok("verify", "-", stdin=log).code == 0


@pytest.mark.parametrize("command", [["replay"], ["replay", "--at", "3"], ["show"], ["graph"]], ids=" ".join)
def test_an_altered_log_is_shown_under_a_warning(chats: Cli, command: list[str]) -> None:
    log = chats.ok("export", "talk").out
    altered = log.replace('"Second"', '"Fourth"', 1)
    assert altered != log
    (found,) = [line for line in chats.run("verify", "-", "--json", stdin=altered).lines if line["kind"] == "problem"]
    for more in ([], ["--json"]):
        sound = chats.ok(*command, "-", *more, stdin=log)
        done = chats.run(*command, "-", *more, stdin=altered)
        assert done.code == 1
        assert done.out.count("\n") == sound.out.count("\n")
        assert done.err == (
            f"<stdin> was altered, from version {found['version']} on: {found['problem']}; "
            "`chatfold verify` says more\n"
        )


def test_an_altered_chat_is_shown_under_a_warning(chats: Cli) -> None:
    chats.change("UPDATE chat_events SET recorded_at = recorded_at + 1 WHERE chat = 'talk' AND version = 4")
    for command in ("replay", "show"):
        done = chats.run(command, "talk")
        assert (done.code, "talk was altered, from version 4 on: " in done.err) == (1, True)
        assert done.out == chats.run(command, "talk", "--log-level", "error").out


def test_stdin_is_a_file_and_names_decide(chats: Cli) -> None:
    log = chats.ok("export", "talk").out
    assert chats.ok("replay", "-", stdin=log).out == chats.ok("replay", "talk").out
    Path("talk").write_text(log)
    assert is_file("talk")
    assert not is_file("other")
    assert all(map(is_file, ("-", "a/b", "x.jsonl", "./other")))
    assert not is_file("x" * 5000)
    assert not is_file("a\0b")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["replay", "nowhere"], "there is no chat nowhere; `chatfold list` shows which chats there are"),
        (["show", "./nowhere"], "there is no file ./nowhere"),
        (["show", "nowhere.jsonl"], "there is no file nowhere.jsonl"),
        (["replay", "."], "is a folder"),
        (["list", "--db", "sqlite:///nowhere.db"], "there is no database nowhere.db; `chatfold chat` makes one"),
        (["list", "--db", "mysql://x:secret@y/z"], "'mysql://x:***@y/z': no store of this kind"),
    ],
)
def test_what_is_not_there_is_exit_code_2(chats: Cli, arguments: list[str], sentence: str) -> None:
    if arguments[1] == ".":
        arguments = [arguments[0], str(chats.file.parent)]
    done = chats.run(*arguments)
    assert done.code == 2, done
    assert sentence in done.err
    assert done.out == ""


@pytest.mark.parametrize("text", ["", "no log\n", '{"chatfold_log": 99}\n', "\xff"])
def test_what_is_no_log_is_said_with_its_line(cli: Cli, text: str) -> None:
    done = cli.run("replay", "-", stdin=text.encode("latin-1"))
    assert done.code == 2
    assert done.err.startswith("chatfold: <stdin>, line 1: ")


def test_wrong_settings_are_named(chats: Cli) -> None:
    done = chats.run("list", env={"CHATFOLD_POLL": "soon"})
    assert done.code == 2
    assert done.err == "chatfold: CHATFOLD_POLL=soon: must be a valid number\n"
    Path("chatfold.toml").write_text("pol = 1\npoll = 'soon'\n")
    assert chats.run("list").err == (
        "chatfold: chatfold.toml: poll=soon: must be a valid number; "
        "pol: there is no such setting; did you mean poll?\n"
    )
    Path("chatfold.toml").write_text("poll =\n")
    done = chats.run("list")
    assert (done.code, "chatfold.toml: is not TOML: " in done.err) == (2, True)
    done = chats.run("list", env={"CHATFOLD_CONFIG": "/none.toml"})
    assert (done.code, done.err) == (2, "chatfold: /none.toml: No such file or directory; CHATFOLD_CONFIG names it\n")


def test_graphs(chats: Cli) -> None:
    assert chats.ok("graph").out.startswith("stateDiagram-v2\n")
    assert '"P0" -> "R0"' in chats.ok("graph", "--dot", "--states").out
    way = chats.ok("graph", "talk").out
    assert "    [*] --> pending: create\n" in way
    assert "requires_action" not in way
    (line,) = chats.ok("graph", "talk", "--dot", "--json").lines
    assert line["format"] == "dot"
    assert line["text"] == chats.ok("graph", "talk", "--dot").out


def test_texts_are_cut_and_cleaned() -> None:
    assert one_line("a\n b\t c", 20) == "a b c"
    assert one_line("x" * 100, 10) == "xxxxxxx..."
    assert printable("a\x1b\x9b\x00\u2066\r\n\tb") == "a\\x1b\\x9b\\x00\\u2066\\r\n\tb"
    assert printable("é 漢 😀 \ud800") == "é 漢 😀 \\ud800"
    assert time_of(10**30) == f"{10**30} us"


def test_calls_whose_outcome_is_unknown_are_named_where_they_became_so() -> None:
    taken = Acquired(worker=WorkerId("w"), epoch=2, release="0.1.0", takeover=True, unknown=(CallKey("5.0.1"),))
    assert note(taken) == "epoch 2, taken over from a dead holder; outcome unknown: 5.0.1"


def test_an_error_says_its_cause_once() -> None:
    refused = "OpenAI cannot be reached: cannot reach h: Connection refused."
    error = ErrorInfo(kind="timeout", message=Content(refused), detail=Content("cannot reach h: Connection refused"))
    assert said_of(error) == f"timeout: {refused}"
    assert said_of(replace(error, detail=Content("no route"))) == f"timeout: {refused} (no route)"


def test_every_shape_is_documented() -> None:
    assert set(Shape.__subclasses__()) == set(SHAPES)


def test_what_came_with_a_result_is_told_without_the_bytes_of_files() -> None:
    image = FilePart(media_type="image/png", data=Content("iVBORw0K"), name=Content("page.png"))
    table = FilePart(media_type="text/csv", data=Content("YSxi"))
    given = replace(result("2.0.0", "paid"), media=(image,), attachments=(table,), rewritten=Content('{"cents": 5}'))
    stream = io.StringIO()
    state = state_of([user("Pay"), assistant(call("pay")), tool(given)])
    print_state(Channel(stream), "chat", 3, replace(state, control=replace(state.control, version=3)))
    told = [
        "2.0.0 = paid",
        'arguments changed to {"cents": 5}',
        "file page.png, image/png, 8 B of base64",
        "attachment, text/csv, 4 B of base64",
    ]
    assert "\n  ".join(told) in stream.getvalue()
    assert "iVBORw0K" not in stream.getvalue()


def test_a_long_event_and_a_long_status_stay_apart(chats: Cli) -> None:
    file = str(ROOT / "tests" / "incidents" / "silent_client.jsonl")
    assert "  action_expired_turn_ended requires_action A0 -> waiting W" in chats.ok("replay", file).out
