"""The command line on PostgreSQL: the same words, and headers that are the folds of their logs."""

from collections.abc import Callable

from tests.chatfold.cli.kit import Cli


def test_chats_on_postgres(chats: Cli, postgres_database: Callable[[], str]) -> None:
    url = postgres_database()
    assert "You said: Hello" in chats.ok("chat", "Hello", "--chat", "c", "--db", url).out
    for chat in ("talk", "asks", "broken"):
        chats.ok("import", "-", "--db", url, stdin=chats.ok("export", chat).out)
    assert sorted(line["chat"] for line in chats.ok("list", "--json", "--db", url).lines) == [
        "asks",
        "broken",
        "c",
        "talk",
    ]
    assert [line["problems"] for line in chats.ok("verify", "--all", "--json", "--db", url).lines] == [0] * 4
    assert chats.ok("export", "talk", "--db", url).out == chats.ok("export", "talk").out
