"""`export`, `import` and `migrate`: a chat that moves is the same chat, and nothing is overwritten."""

import json
import sqlite3
from pathlib import Path

import pytest

from tests.chatfold.cli.kit import Cli


def test_a_chat_moves_byte_for_byte(chats: Cli) -> None:
    log = chats.ok("export", "talk").out
    other = f"sqlite:///{chats.file.parent / 'other.db'}"
    done = chats.ok("import", "-", "--db", other, stdin=log)
    assert (done.out, "it is foreign" in done.err) == ("talk\n", True)
    assert chats.ok("export", "talk", "--db", other).out == log
    chats.ok("verify", "--all", "--db", other)
    (line,) = chats.ok("list", "--json", "--db", other).lines
    assert (line["foreign"], line["title"]) == (True, "A talk")


def test_an_id_in_use_is_refused_and_another_is_taken(chats: Cli) -> None:
    Path("talk.jsonl").write_text(chats.ok("export", "talk").out)
    done = chats.run("import", "talk.jsonl")
    assert done.code == 1
    assert done.err == "chatfold: chat 'talk' exists already, or did; use another id: --as ID\n"
    (line,) = chats.ok("import", "talk.jsonl", "--as", "copy", "--json").lines
    assert line == {"kind": "imported", "chat": "copy", "version": 11, "foreign": True, "missing_blobs": 0}
    chats.ok("verify", "--all")


def test_an_adopted_chat_runs_here(chats: Cli) -> None:
    log = chats.ok("export", "talk").out
    (line,) = chats.ok("import", "-", "--as", "mine", "--adopt", "--json", stdin=log).lines
    assert (line["version"], line["foreign"]) == (12, False)
    assert "You said: Hello" in chats.ok("chat", "Hello", "--chat", "mine").out
    chats.ok("verify", "mine")
    assert chats.ok("replay", "mine", "--json").lines[11]["event"] == "chat_adopted"


def test_a_chat_is_adopted_later(chats: Cli) -> None:
    log = chats.ok("export", "talk").out
    said = chats.ok("import", "-", "--as", "its copy", stdin=log).err
    assert "`chatfold adopt 'its copy'` takes it over" in said
    done = chats.run("chat", "Hello", "--chat", "its copy", "--db", chats.url)
    assert (done.code, done.out) == (1, "")
    assert f"`chatfold adopt 'its copy' --db {chats.url}` takes it over" in done.err
    (line,) = chats.ok("adopt", "its copy", "--json").lines
    assert line == {"kind": "adopted", "chat": "its copy", "version": 12}
    assert "You said: Hello" in chats.ok("chat", "Hello", "--chat", "its copy").out
    assert chats.run("adopt", "its copy").code == 1
    assert chats.run("adopt", "none").code == 2


def test_an_altered_log_is_not_imported(chats: Cli) -> None:
    log = chats.ok("export", "talk").out.replace("First", "Fifth", 1)
    done = chats.run("import", "-", "--as", "other", stdin=log)
    assert done.code == 1
    assert "is not as it was written (version 1: " in done.err
    assert "other" not in chats.ok("list").out


def test_an_empty_log_is_not_imported(cli: Cli) -> None:
    header = {"chatfold_log": 1, "chat": "c", "release": "0", "events": 0, "head": "00" * 32}
    done = cli.run("import", "-", stdin=json.dumps(header))
    assert done.code == 2
    assert "no event" in done.err


def test_large_contents_are_packed_when_asked_for(cli: Cli) -> None:
    text = "y" * 40_000
    cli.ok("chat", "-", "--chat", "large", stdin=text)
    other = f"sqlite:///{cli.file.parent / 'other.db'}"
    bare = cli.ok("export", "large").out
    assert text not in bare
    done = cli.ok("import", "-", "--db", other, "--as", "bare", "--json", stdin=bare)
    assert done.lines[0]["missing_blobs"] > 0
    assert "large contents are missing" in done.err
    assert "(not loaded, 40000 B)" in cli.ok("show", "bare", "--db", other).out
    packed = cli.ok("export", "large", "--blobs").out
    assert text in packed
    (line,) = cli.ok("import", "-", "--db", other, "--json", stdin=packed).lines
    assert line["missing_blobs"] == 0
    assert text in cli.ok("show", "large", "--db", other).out


def test_a_file_is_written_whole_or_not_at_all(chats: Cli) -> None:
    (line,) = chats.ok("export", "talk", "--output", "talk.jsonl", "--json").lines
    assert line == {"kind": "exported", "chat": "talk", "version": 11, "blobs": 0, "file": "talk.jsonl"}
    assert Path("talk.jsonl").read_text() == chats.ok("export", "talk").out
    done = chats.run("export", "talk", "-o", "nowhere/talk.jsonl")
    assert done.code == 1
    assert done.err == "chatfold: nowhere/talk.jsonl: No such file or directory\n"
    done = chats.run("export", "talk", "-o", "/")
    assert (done.code, done.err) == (2, "chatfold: / is a folder; name a file\n")
    chats.change("UPDATE chat_events SET facts = CAST('{\n}' AS BLOB) WHERE chat = 'talk' AND version = 5")
    assert chats.run("export", "talk", "-o", "bad.jsonl").code == 1
    assert sorted(path.name for path in Path().glob("*.jsonl*")) == ["talk.jsonl"]
    assert not list(Path().glob(".*"))


@pytest.mark.parametrize(
    "arguments",
    [
        ("migrate", "--finish"),
        ("adopt", "talk"),
        ("fork", "talk"),
        ("repair", "--all"),
        ("verify", "--all"),
        ("export", "talk"),
    ],
)
def test_what_works_on_a_database_makes_none(cli: Cli, arguments: tuple[str, ...]) -> None:
    done = cli.run(*arguments)
    assert (done.code, done.err.partition(";")[0]) == (2, f"chatfold: there is no database {cli.file}")
    assert not cli.file.exists()


def test_migrate_sets_up_and_says_what_it_found(cli: Cli) -> None:
    (line,) = cli.ok("migrate", "--json").lines
    assert line["database"] == cli.url
    assert cli.ok("migrate").err == f"{cli.url} has schema {line['schema']}\n"
    assert cli.ok("migrate", "--finish").err.endswith("; what only this release can read may be written from now on\n")
    assert cli.ok("list", "--json").out == ""
    assert cli.ok("verify", "--all").err == "there are no chats: is this the database that you mean?\n"
    cli.change("UPDATE chatfold_version SET version_num = '9999'")
    cli.change("UPDATE schema_levels SET oldest = '9999'")
    for command in ("migrate", "list"):
        done = cli.run(command)
        assert done.code == 1
        assert "upgrade chatfold" in done.err


def test_a_database_of_others_is_left_alone(cli: Cli) -> None:
    connection = sqlite3.connect(cli.file)
    connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    done = cli.run("chat", "Hello")
    assert done.code == 1
    assert "run `chatfold migrate`" in done.err


@pytest.mark.parametrize(
    ("url", "code", "sentence"),
    [
        ("sqlite:///none.db", 2, "there is no database none.db"),
        ("chats.db", 2, "no store of this kind"),
        ("sqlite:///garbage.db", 1, "garbage.db: file is not a database"),
        ("sqlite:///secret.db?poll=x", 2, "poll=x is not a number of seconds"),
        ("postgresql://127.0.0.1:1/x", 1, "refused"),
    ],
)
def test_what_a_wrong_database_exits_with(cli: Cli, url: str, code: int, sentence: str) -> None:
    Path("garbage.db").write_text("this is no database, and long enough to be seen as none")
    done = cli.run("list", "--db", url)
    assert done.code == code
    assert sentence in done.err


@pytest.mark.parametrize("command", ["list", "chat"])
def test_a_database_that_is_away_is_said_in_one_line(cli: Cli, command: str) -> None:
    arguments = [command, "Hello"] if command == "chat" else [command]
    done = cli.run(*arguments, "--db", "postgresql://me:secret@127.0.0.1:1/x")
    assert done.code == 1
    assert done.err.count("\n") == 1
    assert "--db or CHATFOLD_DB says which database is meant" in done.err
    assert "secret" not in done.err
