"""Counted nouns: one of a thing is not several."""

import pytest

from events.counting import counted


@pytest.mark.parametrize(("count", "said"), [(0, "0 turns"), (1, "1 turn"), (2, "2 turns"), (1_200, "1,200 turns")])
def test_a_count_and_its_noun_agree(count: int, said: str) -> None:
    assert counted(count, "turn") == said


def test_the_verb_may_stand_with_the_noun() -> None:
    assert [counted(count, "file is", "files are") for count in (1, 2)] == ["1 file is", "2 files are"]
