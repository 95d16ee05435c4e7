"""Notes that cannot be read: they are for people, and nothing fails by one."""

import pytest

from store.notes import WorkerNote
from store.rows import note_bytes, refusal_note, worker_note

DAMAGED = [b"", b"{", b"[]", b'{"agents":3}', b'{"release":"\xae"}', 7, "\ud800", None]


@pytest.mark.parametrize("data", DAMAGED)
def test_a_note_that_cannot_be_read_says_nothing(data: bytes) -> None:
    assert worker_note(data) == WorkerNote()
    assert refusal_note(data) is None


def test_a_note_says_what_it_was_given() -> None:
    note = WorkerNote(agents=("helper",), capacity=3, lease=15_000_000)
    assert worker_note(note_bytes(note)) == note
