"""Segments of a few events, so that a short chat has several."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from store import building, loading


@contextmanager
def small_segments(tail: int = 3, cut: int = 2000) -> Iterator[None]:
    """Have segments built of ``tail`` events, and cut after ``cut`` bytes of them."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (loading, building):
            patch.setattr(module, "TAIL", tail)
        patch.setattr(building, "_CUT", cut)
        yield
