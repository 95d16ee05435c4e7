"""What a title and a turn label may be, and what a model is shown to write a title."""

from __future__ import annotations

import pytest

from generation.titles import Material, Turn, fallback_label, fallback_title, label_of, material, title_of


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ('  "Fix  the\n login "  ', "Fix the login"),
        ("`Fix it`", "Fix it"),
        ("", None),
        (' "" ', None),
        ("x" * 80, "x" * 80),
        ("x" * 81, None),
        ("\u00e9" * 80, "\u00e9" * 80),
        ("a b c d e f g h", "a b c d e f g h"),
        ("a b c d e f g h i", None),
        ("Red\x1b[31m \u202e\x07title\x00", "Red[31m title"),
        ("One\x85two\u2028three\u2066", "One two three"),
        ("\u200b", None),
        ("\x1b\u202e", None),
        ("\u05d0\u200f!", "\u05d0\u200f!"),
    ],
)
def test_titles(text: str, title: str | None) -> None:
    assert title_of(text) == title


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("Fixed login page", "Fixed login page"),
        ('"Fixed login page."', "Fixed login page"),
        ("Fixed login page!?", "Fixed login page"),
        ("Updated to 3.11.2", "Updated to 3.11.2"),
        ("Iterated over files", "Iterated over files"),
        ("Done", None),
        ("one two three four five", "one two three four five"),
        ("one two three four five six", None),
        ("Fixed\npage", None),
        ("Fixed it. Next page", None),
        ("Agent fixed page", None),
        ("I fixed page", None),
        ("It's fixed now", None),
        ("The page works", None),
        ("We've fixed it", None),
        ("We\u2019re fixing it", None),
        ("How agent found bugs", None),
        ("Fixed " + "x" * 74, "Fixed " + "x" * 74),
        ("Fixed " + "x" * 75, None),
        ("Fixed\x1b[0m the \u202epage", "Fixed[0m the page"),
        ("Fixed \u200b", None),
        ("", None),
    ],
)
def test_labels(text: str, label: str | None) -> None:
    assert label_of(text) == label


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("  Fix   the\nlogin ", "Fix the login"),
        ("a b c d e f", "a b c d e f"),
        ("a b c d e f g", "a b c d e f\u2026"),
        ("x" * 90, "x" * 80),
        (("x" * 30 + " ") * 7, (("x" * 30 + " ") * 3)[:79] + "\u2026"),
        (" ", "New Chat"),
        ("\x1b]0;x\x07 hello\x00 \u202e there", "]0;x hello there"),
        ("\u200b \u2066", "New Chat"),
    ],
)
def test_titles_that_no_model_wrote(text: str, title: str) -> None:
    assert fallback_title(text) == title
    assert len(title) <= 80


@pytest.mark.parametrize(
    ("status", "label"),
    [
        ("waiting", "Finished latest turn"),
        ("pending", "Still working on request"),
        ("requires_action", "Waiting for user input"),
        ("error", "Hit an error"),
        ("running", "Updated chat status"),
    ],
)
def test_labels_that_no_model_wrote(status: str, label: str) -> None:
    assert fallback_label(status) == label


def test_one_useful_turn_has_no_sample_and_no_latest() -> None:
    assert material([Turn("Hello", "Hi"), Turn(" ", "")]) == Material("Hello", None, None)
    assert material([Turn("", "Hi")]) is None


def test_the_latest_is_left_out_where_it_is_the_first_when_cut() -> None:
    made = material([Turn("x" * 1000 + "a", ""), Turn(" " + "x" * 1000 + "b", "")])
    assert made is not None
    assert (made.first, made.latest) == ("x" * 1000, None)


@pytest.mark.parametrize(
    ("turns", "shown"),
    [
        (4, "User: 0\n\nUser: 1\n\nUser: 2\n\nUser: 3"),
        (5, "User: 0\n\n[turns left out: 1]\n\nUser: 2\n\nUser: 3\n\nUser: 4"),
        (6, "User: 0\n\n[turns left out: 2]\n\nUser: 3\n\nUser: 4\n\nUser: 5"),
    ],
)
def test_the_sample_has_the_first_and_the_last_three_turns(turns: int, shown: str) -> None:
    made = material([Turn(str(number), "") for number in range(turns)])
    assert made == Material("0", str(turns - 1), shown)


def test_the_sample_ends_at_its_limit() -> None:
    made = material([Turn("a", "x" * 5000), Turn("b", "y" * 5000)])
    assert made is not None
    assert made.sample is not None
    assert len(made.sample) == 6000
