"""`chat`: what is said goes where it belongs, chats go on, and what cannot be done is said in a sentence."""

import pytest

from tests.chatfold.cli.kit import AGENTS, Cli


def test_the_answer_alone_goes_to_stdout(cli: Cli) -> None:
    done = cli.ok("chat", "Hello", "--chat", "c")
    assert done.out == "You said: Hello That is all I know, but I like to listen. I can also use current_time.\n"
    assert done.err == "chat c; go on with --chat c\n"


def test_a_chat_goes_on_and_tells_what_tools_do(cli: Cli) -> None:
    cli.ok("chat", "Hello", "-c", "c")
    done = cli.ok("chat", "current_time please", "-c", "c")
    assert done.out.startswith("Let me use current_time.\ncurrent_time says: 20")
    assert "[calls current_time({})]\n[result: 20" in done.err
    assert "Hello" in cli.ok("show", "c").out


def test_json_is_one_object_a_line_and_ends_with_the_turn(cli: Cli) -> None:
    lines = cli.ok("chat", "Hello", "-c", "c", "--json").lines
    # A scripted model may be done before the stream is followed, and parts are for those who are there.
    assert {line["kind"] for line in lines} - {"part"} == {"event", "turn"}
    versions = [line["version"] for line in lines if line["kind"] == "event"]
    assert versions == list(range(1, len(versions) + 1))
    assert lines[-1] == {
        "kind": "turn",
        "chat": "c",
        "version": versions[-1],
        "status": "waiting",
        "error": None,
        "asks": [],
    }
    assert "assistant: You said: Hello" in [line for line in lines if line["kind"] == "event"][4]["note"]


def test_a_message_comes_from_stdin(cli: Cli) -> None:
    assert "You said: two\nlines" in cli.ok("chat", "-", stdin="two\nlines\n").out


def test_lines_are_messages_and_questions_are_asked(cli: Cli) -> None:
    done = cli.ok("chat", "-c", "c", stdin='Hello\nplease ask "your name"\n{"name": "Bob"}\nBye\n')
    assert "You said: Hello" in done.out
    assert 'ask_user says: {"name":"Bob"}' in done.out
    assert "You said: Bye" in done.out
    assert "The model asks you to run ask_user(" in done.err


def test_what_is_left_unanswered_is_asked_again(cli: Cli) -> None:
    assert "left unanswered" in cli.ok("chat", "-c", "c", stdin="please ask me\n").err
    done = cli.ok("chat", "-c", "c", stdin="forty-two\n")
    assert "ask_user says: forty-two" in done.out


def test_one_message_leaves_questions_open(chats: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    (chats.file.parent / "asking_app.py").write_text(
        "from chatfold import Agent, client_tool\n"
        "def make():\n"
        "    where = client_tool('where_am_i', 'Ask.', {'type': 'object', 'properties': {}})\n"
        "    return Agent(name='asking', model='scripted/x', tools=[where])\n"
    )
    monkeypatch.syspath_prepend(str(chats.file.parent))
    done = chats.ok("chat", "where_am_i", "--agents", "asking_app:make", "--json")
    assert done.lines[-1]["status"] == "requires_action"
    (asked,) = done.lines[-1]["asks"]
    assert (asked["kind"], asked["name"], asked["arguments"]) == ("client_call", "where_am_i", "{}")


def test_a_budget_question_says_what_it_is_about_and_is_lifted(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    (cli.file.parent / "frugal_app.py").write_text(
        "from chatfold import Agent, Budget, Limits\n"
        "AGENT = Agent(name='frugal', model='scripted/x', limits=Limits(budget=Budget(turns=1)))\n"
    )
    monkeypatch.syspath_prepend(str(cli.file.parent))
    start = ("chat", "-c", "c", "--agents", "frugal_app:AGENT")
    asked = cli.ok(*start, "--json", "One")
    assert asked.lines[-1]["status"] == "waiting"
    (question,) = cli.ok(*start, "--json", "Two").lines[-1]["asks"]
    assert question["spending"]["reached"] == ["turns"]
    assert question["spending"]["spent"]["turns"] == question["spending"]["allowed"]["turns"] == 1
    assert "turns: 1 spent, 1 allowed" in cli.ok("doctor", "c").out
    done = cli.ok(*start, stdin="y\nThree\n")
    assert "The chat's budget is spent (turns: 1 spent, 1 allowed)." in done.err
    assert "You said: Two" in done.out
    assert "You said: Three" in done.out


def test_a_turn_that_fails_is_exit_code_1(cli: Cli) -> None:
    done = cli.run("chat", "Hello", "--model", "anthropic/x")
    assert done.code == 1
    assert "[failed, missing_key: There is no API key for Anthropic. Set ANTHROPIC_API_KEY and" in done.err
    assert done.out == ""


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["Hello", "--model", "gpt"], "model 'gpt': must be provider/name"),
        (["Hello", "--model", "nowhere/x"], "model 'nowhere/x': there is no provider of that name"),
        (["Hello", "--agents", "nothing"], "give MODULE:NAME"),
        (["Hello", "--agents", "nothing_there:X"], "cannot be loaded: ModuleNotFoundError"),
        (["Hello", "--agents", "json:dumps"], "cannot be loaded: TypeError"),
        (["Hello", "--agents", "sys:path"], "is no Agent"),
        (["Hello", "--agents", "wrong_app:look"], "is a tool: name the agent that has it"),
        (["Hello", "--agents", "wrong_app:engine"], "run `worker --engine wrong_app:engine`"),
        (["Hello", "--agent", "other"], "there is no agent other; there are assistant"),
        (["Hello", "--chat", "broken"], "belongs to agent 'failing', which is not here"),
        (["Hello", "--base-url", "foo"], "--base-url=foo: a service's URL is http://HOST"),
        (["Hello", "--agents", "wrong_app:make"], "cannot be loaded: ValidationError: size: must be a valid integer"),
        (["Hello", "--agents", "wrong_app:leave"], "cannot be loaded: SystemExit: 3"),
        (["  "], "the message is blank"),
        (["Hello", "--log-level", "loud"], "--log-level=loud: must be one of debug, info, warning, error"),
        (["Hello", "--db", "chats.db"], "no store of this kind"),
    ],
)
def test_what_is_typed_wrong_is_exit_code_2(
    chats: Cli, monkeypatch: pytest.MonkeyPatch, arguments: list[str], sentence: str
) -> None:
    (chats.file.parent / "wrong_app.py").write_text(
        "import sys\nfrom chatfold import Engine, tool\nfrom pydantic import BaseModel\n"
        "@tool\ndef look() -> str:\n    return 'seen'\n"
        "class Box(BaseModel):\n    size: int\n"
        "def make():\n    return Box(size='large')\n"
        "def leave():\n    sys.exit(3)\n"
        "def engine():\n    return Engine('memory://')\n"
    )
    monkeypatch.syspath_prepend(str(chats.file.parent))
    done = chats.run("chat", *arguments)
    assert done.code == 2, done
    assert sentence in done.err
    assert done.err.startswith("chatfold: ")
    assert done.err.count("\n") == 1


def test_an_imported_chat_is_not_continued(chats: Cli) -> None:
    log = chats.ok("export", "talk").out
    chats.ok("import", "-", "--as", "foreign", stdin=log)
    done = chats.run("chat", "Hello", "--chat", "foreign")
    assert done.code == 1
    assert "was imported and not adopted" in done.err


def test_an_applications_agent_is_loaded(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    (cli.file.parent / "patient_app.py").write_text(AGENTS)
    monkeypatch.syspath_prepend(str(cli.file.parent))
    done = cli.ok("chat", "wait 0", "--agents", "patient_app:AGENTS")
    assert "wait says: waited" in done.out


def test_characters_that_steer_a_terminal_are_written_out(cli: Cli) -> None:
    done = cli.ok("chat", "\x1b[31mred\x07\u202e", "-c", "c")
    shown = done.out + cli.ok("show", "c").out + cli.ok("replay", "c").out
    assert "\\x1b[31mred\\x07\\u202e" in shown
    assert not set(shown) & {"\x1b", "\x07", "\u202e"}


def test_a_model_is_chosen_once(cli: Cli) -> None:
    cli.ok("chat", "One", "-c", "c")
    cli.ok("chat", "-c", "c", "--model", "scripted/other", stdin="Two\nThree\n")
    cli.ok("chat", "Four", "-c", "c", "--model", "scripted/other")
    log = cli.ok("export", "c").lines[1:]
    sent = [line["facts"].get("model") for line in log if line["type"] == "message_sent"]
    assert sent == ["scripted/other", None, None]
