"""Stream positions as text."""

import base64
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generation.cursor import Cursor
from generation.errors import CursorInvalid

NUMBER = st.integers(0, 2**63 - 1)


@given(st.builds(Cursor, version=NUMBER, history_version=NUMBER, attempt=NUMBER, seq=NUMBER))
def test_round_trip(cursor: Cursor) -> None:
    text = cursor.encode()
    assert Cursor.parse(text) == cursor
    assert set(text) <= set(string.ascii_letters + string.digits + "-_")


def _text(plain: str) -> str:
    return base64.urlsafe_b64encode(plain.encode()).rstrip(b"=").decode()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "garbage!",
        "ä",
        "A",
        Cursor().encode() + "=",
        Cursor().encode() + "\n",
        Cursor().encode() * 20,
        _text("2.1.1.1.1"),
        _text("1.1.1.1"),
        _text("1.1.1.1.1.1"),
        _text("1.01.1.1.1"),
        _text("1.-1.1.1.1"),
        _text("1.1.1.1.x"),
        _text("1.1.1.1.٣"),
        _text("1.9223372036854775808.1.1.1"),
        _text("1.99999999999999999999.1.1.1"),
        Cursor().encode()[:-1] + "B",
    ],
    ids=range(17),
)
def test_refused(text: str) -> None:
    with pytest.raises(CursorInvalid, match="not a stream position") as refused:
        Cursor.parse(text)
    assert refused.value.text == text


@given(st.text(max_size=200))
def test_any_text_is_refused_or_canonical(text: str) -> None:
    try:
        cursor = Cursor.parse(text)
    except CursorInvalid:
        return
    assert cursor.encode() == text


@pytest.mark.parametrize("number", [-1, 2**63])
def test_out_of_range(number: int) -> None:
    with pytest.raises(ValueError, match="seq"):
        Cursor(seq=number)


def test_order_is_the_streams() -> None:
    assert Cursor(1, 1, 1, 9) < Cursor(1, 1, 2, 1) < Cursor(2)
