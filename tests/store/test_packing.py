"""What is kept packed comes back to the byte, and what was packed by a release is read by all that follow."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.errors import MalformedRow
from store.packing import CannotUnpack, pack, unpack
from store.rows import EVENT_COLUMNS, event_of, event_row, header_of, header_row
from tests.store.making import events, header

FACTS = b'{"attempt":1,"kind":"tools","decision":{"rule":"D1","action":"run_tools"},"calls":["6.0.0"]}'
PACKED_ONCE = bytes.fromhex("01205c95000040362e302e30225d7d02007e0507b51b1540")
"""``FACTS`` as release 0.1 packed them."""


@given(
    st.binary() | st.text().map(str.encode) | st.binary(max_size=9).map(lambda data: b"\x01" + data),
    st.sampled_from([0, 80]),
    st.booleans(),
)
def test_bytes_come_back(data: bytes, least: int, text: bool) -> None:
    packed = pack(data, least, text=text)
    assert unpack(packed) == data
    assert len(packed) <= len(data) or data[:1] == b"\x01"


def test_facts_and_long_texts_get_smaller_and_small_ones_stay() -> None:
    assert len(pack(FACTS, 80)) < len(FACTS) / 2
    assert pack(FACTS, len(FACTS) + 1) == FACTS
    text = b'["salt","' + b"the quick brown fox and others of his kind " * 10 + b'"]'
    assert len(pack(text, 256, text=True)) < len(text) / 3


def test_what_an_old_release_packed_is_read() -> None:
    assert unpack(PACKED_ONCE) == FACTS


@pytest.mark.parametrize("data", [b"\x01", b"\x01{}", PACKED_ONCE[:-3], b"\x01" + PACKED_ONCE])
def test_what_was_changed_is_not_taken_for_packed(data: bytes) -> None:
    with pytest.raises(CannotUnpack):
        unpack(data)


def test_a_row_names_what_cannot_be_unpacked() -> None:
    row = list(event_row(*events(7, "a"))[: len(EVENT_COLUMNS)])
    row[EVENT_COLUMNS.index("content")] = b"\x01no"
    with pytest.raises(MalformedRow, match="content") as caught:
        event_of("chat", row)
    assert caught.value.version == 7
    values = list(header_row(header(control=b"x" * 500)))
    values[values.index(pack(b"x" * 500, 1))] = b"\x01no"
    with pytest.raises(MalformedRow, match="column control"):
        header_of(values)


def test_threads_do_not_share_a_compressor() -> None:
    texts = [bytes([65 + n % 26]) * 5000 + FACTS * (n % 7) for n in range(200)]
    wrong: list[int] = []

    def run(first: int) -> None:
        wrong.extend(n for n in range(first, 200) if unpack(pack(texts[n], 0)) != texts[n])

    threads = [threading.Thread(target=run, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
