"""Whatever goes wrong ends in one sentence and an exit code."""

import importlib

import pytest
import typer

from chatfold.cli import guard
from chatfold.cli.app import app
from tests.chatfold.cli.kit import Cli


@pytest.mark.parametrize("name", guard._KNOWN)
def test_the_errors_that_are_explained_exist(name: str) -> None:
    module, _, attribute = name.rpartition(".")
    if module.endswith("ValidationError") or module == "pydantic_core._pydantic_core":
        module = "pydantic_core"
    assert issubclass(getattr(importlib.import_module(module), attribute), Exception)


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (RuntimeError("a\nb"), 1, "this should not have happened (RuntimeError: a b); --log-level debug shows"),
        (PermissionError(13, "Permission denied", "x.db"), 1, "x.db: Permission denied"),
        (ExceptionGroup("many", [ExceptionGroup("more", [guard.UsageProblem("say it")])]), 2, "say it"),
        (KeyboardInterrupt(), 130, ""),
        (guard.Failure("bad \x1b[31m"), 1, "bad \\x1b[31m"),
    ],
)
def test_errors_become_sentences(
    error: BaseException, code: int, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    @guard.guarded
    def command() -> None:
        raise error

    with pytest.raises(typer.Exit) as ended:
        command()
    assert ended.value.exit_code == code
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == bool(sentence)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["--version"], 0), (["--help"], 0), (["nosuch"], 2), (["replay"], 2), (["replay", "x", "--at", "-1"], 2)],
)
def test_exit_codes(arguments: list[str], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert guard.run(app, arguments) == code
    said = capsys.readouterr()
    assert bool(said.out) is (code == 0)
    assert said.err.count("\n") == bool(code)


@pytest.mark.parametrize(("group", "first"), [([], "chat"), (["corpus"], "check")])
def test_no_command_shows_the_help(group: list[str], first: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert guard.run(app, group) == 2
    said = capsys.readouterr()
    usage = f"Usage: {' '.join(['chatfold', *group])} [OPTIONS] COMMAND"
    assert (said.out.startswith(usage), said.err) == (True, "")
    assert f"\n  {first} " in said.out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["list", "--limit", "x"],
            "Invalid value for '--limit' / '-n': must be a valid integer; `chatfold list --help`",
        ),
        (["chat", "--model"], "Option '--model' requires an argument; `chatfold chat --help`"),
        (["import"], "Missing argument 'FILE'; `chatfold import --help`"),
        (["lisr"], "No such command 'lisr'. Did you mean 'list'; `chatfold --help`"),
        (["--nothing"], "No such option: --nothing; `chatfold --help`"),
    ],
)
def test_the_help_that_is_named_is_the_commands(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert guard.run(app, arguments) == 2
    assert capsys.readouterr().err == f"chatfold: {sentence} shows what there is\n"


@pytest.mark.parametrize("command", [each.name or each.callback.__name__ for each in app.registered_commands])  # type: ignore[union-attr]
def test_every_command_teaches_by_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert guard.run(app, [command, "--help"]) == 0
    said = capsys.readouterr().out
    assert f"  Examples:\n    chatfold {command}" in said or f"| chatfold {command}" in said
    # All but what draws a screen and prints nothing, and what writes a page for people.
    assert ("--json" in said) is (command not in {"step", "report"})


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("import", "talk.jsonl", "--as", "a/b"), "--as: the id of a chat has no slash"),
        (("fork", "talk", "--as", "a/b"), "--as: the id of a chat has no slash"),
        (("fork", "talk", "--agent", ""), "--agent: is empty"),
        (("fork", "talk", "--message", " "), "--message: the text is blank"),
        (("chat", "hi", "--chat", "a/b"), "--chat: the id of a chat has no slash"),
        (("adopt", ""), "CHAT: is empty"),
    ],
)
def test_what_the_engine_refuses_is_told_by_the_option(chats: Cli, arguments: tuple[str, ...], said: str) -> None:
    chats.ok("export", "talk", "-o", "talk.jsonl")
    done = chats.run(*arguments)
    assert (done.code, done.err.startswith(f"chatfold: {said}")) == (2, True), done
