"""What can be typed at the prompt beside messages, and what one message alone can do in a chat that asks."""

import pytest

from chatfold.cli.slash import WORDS, message_of, word_of
from tests.chatfold.cli.kit import Cli


@pytest.mark.parametrize(
    ("line", "word"),
    [
        *((f"/{word}", word) for word in sorted(WORDS)),
        (" /HELP ", "help"),
        ("/exit", "quit"),
        ("/?", "help"),
        ("/", ""),
        ("/what", "what"),
        ("/etc/passwd", None),
        ("/help me", None),
        ("//help", None),
        ("help", None),
    ],
)
def test_words_are_told_from_messages(line: str, word: str | None) -> None:
    assert word_of(line) == word


def test_two_slashes_begin_a_message_with_one() -> None:
    assert [message_of(line) for line in ("//help", "/a b", "a // b")] == ["/help", "/a b", "a // b"]


def test_words_are_not_sent(cli: Cli) -> None:
    done = cli.ok("chat", "-c", "c", stdin="/state\n/help\n/what\n//quit\n/state\n/interrupt\n/quit\nnever\n")
    assert "the chat begins with your first message" in done.err
    assert "/resume     let the model go on" in done.err
    assert "there is no /what; /help shows what there is" in done.err
    assert "You said: /quit" in done.out
    assert "status    waiting W" in done.err
    assert "interrupt refused in W" in done.err
    assert "never" not in cli.ok("show", "c").out
    assert [line["event"] for line in cli.ok("replay", "c", "--json").lines].count("message_sent") == 0


def test_the_state_is_json_where_all_is(cli: Cli) -> None:
    lines = cli.ok("chat", "-c", "c", "--json", stdin="Hello\n/state\n").lines
    assert (lines[-1]["kind"], lines[-1]["status"], lines[-1]["chat"]) == ("state", "waiting", "c")


def test_a_question_is_interrupted_and_the_turn_resumed(cli: Cli) -> None:
    done = cli.ok("chat", "-c", "c", stdin="please ask me\n/help\n/resume\n/interrupt\n/resume\n")
    assert "the chat waits for your answer" in done.err
    assert "ask_user did not work" in done.out
    events = [line["event"] for line in cli.ok("replay", "c", "--json").lines]
    assert events.index("turn_interrupted") < events.index("turn_resumed")


def test_leaving_at_a_question_ends_the_talk(cli: Cli) -> None:
    done = cli.ok("chat", "-c", "c", stdin="please ask me\n/quit\nHello\n")
    assert "left unanswered" in done.err
    assert "Hello" not in cli.ok("show", "c").out


def test_one_message_cannot_answer_a_chat_that_asks(cli: Cli) -> None:
    cli.ok("chat", "-c", "c d", stdin="please ask me\n")
    before = cli.ok("export", "c d").out
    done = cli.run("chat", "again", "-c", "c d", "--db", cli.url)
    assert (done.code, done.out) == (1, "")
    assert 'nothing was sent: the chat asks its client ask_user({"question":"please ask me"});' in done.err
    assert f"answer with `chatfold chat --chat 'c d' --db {cli.url}`" in done.err
    assert cli.ok("export", "c d").out == before
