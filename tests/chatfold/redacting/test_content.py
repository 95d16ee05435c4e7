"""What stands in for contents: as long, as blank, of the same form, equal where equal; and none of it left."""

from __future__ import annotations

import base64
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chatfold.redacting.content import Contents
from chatfold.redacting.errors import KeyTooShort, RedactionError
from chatfold.redacting.numbers import Numbers
from chatfold.redacting.streams import KEY_BYTES, Streams
from chatfold.redacting.words import Words, is_json
from events.content import Json, size_of
from tests.events.strategies import JSON, TEXTS

KEY = b"a key that nobody would guess"
PNG = b"\x89PNG\r\n\x1a\n"


def contents(*keep: str) -> Contents:
    return Contents(Streams(KEY), frozenset(keep))


def replaced(value: Json, by: Contents | None = None, *, file: bool = False) -> Any:
    made = (by or contents()).replace(msgspec.json.encode(value), "file" if file else "text")
    return msgspec.json.decode(made)


def shape(value: Any) -> Any:
    """What must stay of a value: all but what its texts and numbers are."""
    if isinstance(value, str):
        return value if not value.strip() else "text"
    if isinstance(value, dict):
        return [shape(each) for each in value.values()]
    if isinstance(value, list):
        return tuple(shape(each) for each in value)
    if isinstance(value, bool) or value is None:
        return value
    return type(value), value == 0, value < 0


@given(JSON)
@settings(max_examples=300)
def test_a_value_keeps_size_and_form(value: Json) -> None:
    made = replaced(value)
    assert size_of(made) == size_of(value)
    assert shape(made) == shape(value) or isinstance(value, str)
    if isinstance(value, str):
        assert bool(made.strip()) == bool(value.strip())
        assert is_json(made) == is_json(value)


@given(st.lists(JSON, max_size=8))
@settings(max_examples=200)
def test_values_are_equal_where_they_were(values: list[Json]) -> None:
    by = contents()
    raw = [msgspec.json.encode(value) for value in values]
    made = [by.replace(each, "text") for each in raw]
    for one, first in zip(raw, made, strict=True):
        for other, second in zip(raw, made, strict=True):
            assert (one == other) == (first == second), (one, other, first, second)


@given(st.lists(TEXTS, max_size=8), st.booleans(), st.booleans())
def test_a_json_text_stays_one_of_the_same_bytes(texts: list[str], ascii_alone: bool, spaced: bool) -> None:
    value = {text: [text, index] for index, text in enumerate(texts)}
    separators = (", ", " : ") if spaced else (",", ":")
    text = json.dumps(value, ensure_ascii=ascii_alone, separators=separators)
    made = replaced(text)
    assert len(made.encode()) == len(text.encode())
    again = json.loads(made)
    assert isinstance(again, dict)
    assert len(again) == len(value)
    assert shape(list(again.values())) == shape(list(value.values()))


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=4, max_size=80))
def test_nothing_of_a_text_stays(text: str) -> None:
    made = replaced(text)
    if not text.strip() or is_json(text):
        return
    assert made != text
    assert made.isascii()
    assert any(map(str.isspace, made)) <= any(map(str.isspace, text))


@given(st.lists(st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False), max_size=10))
def test_numbers_stay_numbers_of_as_many_characters(values: list[float]) -> None:
    numbers = Numbers(Streams(KEY))
    for value in values:
        token = msgspec.json.encode(value).decode()
        made = numbers.replace(token)
        assert len(made) == len(token)
        assert msgspec.json.encode(msgspec.json.decode(made)) == made.encode()
        assert numbers.replace(token) == made


@pytest.mark.parametrize(
    ("token", "form"),
    [
        ("0", "0"),
        ("-0.0", "-0.0"),
        ("0e5", "0e5"),
        ("-12", "-dd"),
        ("3.50", "d.d0"),
        ("0.07", "0.0d"),
        ("1000", "dddd"),
        ("120000000000000000000.0", "dd0000000000000000000.0"),
        ("0.000029762526339921572", "0.0000ddddddddddddddddd"),
        ("6.02E+23", "d.ddE+23"),
        ("1e999", "de999"),
        ("1e0000000012", "de0000000012"),
        ("0e4111", "0edddd"),
        ("0.0E+004111111111", "0.0E+00dddddddddd"),
        ("1.5e-4111111111", "d.de-dddddddddd"),
        ("123456789012345678901234567890", "d" * 30),
    ],
)
def test_signs_points_exponents_and_zeros_stay(token: str, form: str) -> None:
    made = Numbers(Streams(KEY)).replace(token)
    assert len(made) == len(form)
    assert all(char == wanted or (wanted == "d" and char.isdigit()) for char, wanted in zip(made, form, strict=True))


@pytest.mark.parametrize(
    "token", ["0e4111111111", "0.0e-41111111", "1e-4111111111", "-4711", "3.141e5", "0.004711", "1234e-4111111111"]
)
def test_a_number_of_more_than_a_few_digits_is_never_its_own(token: str) -> None:
    for key in range(40):
        made = Numbers(Streams(f"a key of many: {key:04}".encode())).replace(token)
        for one, other in zip(token.split("e"), made.split("e"), strict=True):
            assert one != other or len(one.strip("-0.")) < 4


def test_texts_that_are_numbers_with_long_exponents_stay_apart() -> None:
    by = contents()
    texts = [f"0e{41111 + each}" for each in range(200)]
    assert len({replaced(text, by) for text in texts}) == len(texts)


def test_the_few_texts_of_one_byte_are_each_anothers() -> None:
    singles = [chr(code) for code in range(128) if not chr(code).isspace() and not chr(code).isdigit()]
    words = Words(Streams(KEY))
    made = [words.replace(char) for char in singles]
    assert sorted(made) == sorted(singles)
    assert all(one != other for one, other in zip(singles, made, strict=True))
    fields = {char: 1 for char in map(chr, range(0x21, 0x7F)) if char not in '"\\'}
    assert len(replaced(dict(fields))) == len(fields)


def test_short_texts_stay_apart_until_there_are_no_more() -> None:
    words = Words(Streams(KEY))
    two = [f"{a}{b}" for a in "abcdefghijklmnopqrstuvwxyz" for b in "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.,"]
    assert len({words.replace(text) for text in two}) == len(two)
    everything = [f"{chr(a)}{chr(b)}" for a in range(33, 127) for b in range(33, 127)] + list(
        map(chr, range(0x80, 0x800))
    )
    with pytest.raises(RedactionError, match="there are no more texts of 2 bytes"):
        list(map(words.replace, everything))


def test_fields_stay_where_the_rules_say_so_and_nothing_gets_their_name() -> None:
    value: Json = {"path": "path", "query": {"path": 7}, "x": [{"path": None}]}
    made = replaced(value, contents("path"))
    assert next(iter(made)) == "path"
    assert made["path"] != "path"
    assert [list(each) for each in made.values() if isinstance(each, dict)] == [["path"]]
    names = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    assert len(replaced(dict.fromkeys(names, 1), contents("q", "r"))) == len(names)


@pytest.mark.parametrize("text", ['{"a": ', "{'a': 1}", "[1, 2,, 3]", "NaN", '{"a": "\\ud800"}', "{} {}"])
def test_broken_json_stays_broken(text: str) -> None:
    assert not is_json(replaced(text))


@pytest.mark.parametrize(
    "data", [b"x", b"some bytes", PNG + b"pixels", b"%PDF-1.7 text", b"RIFF1234WEBPdata", b"\xff\xd8\xffx"]
)
def test_a_file_stays_one_of_its_type(data: bytes) -> None:
    text = base64.b64encode(data).decode()
    made = base64.b64decode(replaced(text, file=True), validate=True)
    assert len(made) == len(data)
    assert made != data
    sign = len(PNG) if data.startswith(PNG) else 3 if data[0] == 0xFF else 4 if data[:4] in (b"%PDF", b"RIFF") else 0
    assert made[:sign] == data[:sign]


def test_small_files_stay_apart() -> None:
    by = contents()
    files = [base64.b64encode(bytes([byte])).decode() for byte in range(256)]
    assert len({replaced(text, by, file=True) for text in files}) == len(files)


def test_what_should_be_a_file_and_is_none_is_a_text() -> None:
    assert len(replaced("no base64!", file=True)) == 10
    assert replaced("", file=True) == ""


def test_the_same_key_gives_the_same_and_another_gives_another() -> None:
    value: Json = {"who": "ada", "n": 12345}
    assert replaced(value) == replaced(value)
    assert replaced(value) != replaced(value, Contents(Streams(KEY + b"!"), frozenset()))
    with pytest.raises(KeyTooShort, match=f"at least {KEY_BYTES} bytes, this one has 3"):
        Streams(b"abc")
