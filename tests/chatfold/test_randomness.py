"""Ids and salts: never twice, in the order of their times, and not the same in a process that was forked off."""

from __future__ import annotations

import multiprocessing
import os
import re
import time

from chatfold.randomness import RandomBytes, new_id


def test_ids_are_short_and_need_no_escaping() -> None:
    ids = [new_id() for _ in range(10_000)]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{21}", one) for one in ids)


def test_ids_sort_by_time_to_the_year_2109() -> None:
    moments = [0.0, 1.0, 1.001, 1e9, time.time(), 4.0e9, 4.398e9]
    ids = [new_id(lambda moment=moment: moment) for moment in moments]  # type: ignore[misc]
    assert ids == sorted(ids)


def test_no_bytes_are_given_twice() -> None:
    source = iter(range(1_000_000))
    stock = RandomBytes(lambda count: b"".join((next(source) % 251).to_bytes(1, "big") for _ in range(count)))
    given = b"".join(stock.take(7) for _ in range(1000))
    assert len(given) == 7000
    # 3072 are drawn at a time; of each stock the rest that is too short for the next is left.
    stocks = [bytes((3072 * at + place) % 251 for place in range(3072 // 7 * 7)) for at in range(3)]
    assert given == b"".join(stocks)[:7000]


def test_a_forked_process_draws_its_own() -> None:
    stock = RandomBytes(os.urandom)
    stock.take(1)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=lambda: queue.put(stock.take(16)))
    child.start()
    theirs = queue.get(timeout=10)
    child.join()
    assert theirs != stock.take(16)
