"""How long results are cut."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from events.cutting import truncate
from generation.budget import result_budget

TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=3000)


@pytest.mark.parametrize(
    ("limit", "budget"),
    [(None, 65536), (0, 65536), (-5, 65536), (1, 16384), (16384, 16384), (200_000, 199_998), (1_000_000, 999_999)],
)
def test_result_budget(limit: int | None, budget: int) -> None:
    assert result_budget(limit) == budget


@given(TEXT, st.integers(0, 4000))
@example("é" * 2000, 513)
@example("\U0001f600" * 1000, 1000)
@example("x" * 1001, 1000)
def test_truncation(text: str, budget: int) -> None:
    cut = truncate(text, budget)
    data = text.encode()
    assert len(cut.encode()) <= budget
    if len(data) <= budget:
        assert cut == text
    elif budget <= 512:
        assert text.startswith(cut)
        assert len(data[: len(cut.encode())]) > budget - 4
    else:
        marker = re.search(r"\n\n\[\.\.\. (\d+) bytes of this result were left out here \.\.\.\]\n\n", cut)
        assert marker is not None
        head, tail = cut[: marker.start()], cut[marker.end() :]
        assert text.startswith(head)
        assert text.endswith(tail)
        assert int(marker[1]) == len(data) - len(head.encode()) - len(tail.encode()) > 0


@given(st.integers(513, 5000))
def test_two_thirds_are_head(budget: int) -> None:
    head, tail = truncate("a" * 3000 + "b" * 3000, budget).split("\n\n[")
    room = budget - 256
    assert len(head) == room * 2 // 3
    assert len(tail.partition("\n\n")[2]) == room - room * 2 // 3


def test_refused() -> None:
    with pytest.raises(ValueError, match="-1"):
        truncate("a", -1)
    with pytest.raises(UnicodeEncodeError):
        truncate("\ud83d", 10)
