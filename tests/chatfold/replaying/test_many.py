"""Work on many logs: the results are those of one after the other, on however many cores."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from chatfold.replaying.many import WorkFailed, each
from events.errors import LogFileError


def squared(number: int) -> int:
    return number * number


def where(number: int) -> tuple[int, int]:
    return number, os.getpid()


def marked(folder: str, number: int) -> int:
    Path(folder, str(number)).touch()
    return number


def failing(number: int) -> int:
    if number == 3:
        raise LogFileError("x.jsonl", 7, "cut off")  # an error that cannot be made anew in another process
    return number


@pytest.mark.parametrize("jobs", [1, 2, None])
@pytest.mark.parametrize("count", [0, 1, 3, 130])
def test_results_come_in_the_order_of_the_items(count: int, jobs: int | None) -> None:
    done = []
    results = list(each(squared, range(count), jobs=jobs, done=lambda: done.append(len(done))))
    assert results == [number * number for number in range(count)]
    assert len(done) == count


def test_several_processes_take_part_and_one_job_is_this_process() -> None:
    beside = list(each(where, range(60), jobs=2))
    assert [number for number, _ in beside] == list(range(60))
    assert os.getpid() not in {pid for _, pid in beside}
    assert {pid for _, pid in each(where, range(3), jobs=1)} == {os.getpid()}
    assert {pid for _, pid in each(where, [1], jobs=2)} == {os.getpid()}


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_the_work_raises_names_the_item(jobs: int) -> None:
    with pytest.raises(WorkFailed, match=r"LogFileError: x\.jsonl, line 7: cut off") as caught:
        list(each(failing, range(60), jobs=jobs))
    assert caught.value.item == "3"


def test_who_stops_asking_stops_the_work(tmp_path: Path) -> None:
    results = each(partial(marked, str(tmp_path)), range(5000), jobs=2)
    assert isinstance(results, Iterator)
    assert next(results) == 0
    results.close()  # type: ignore[attr-defined]
    begun = len(list(tmp_path.iterdir()))
    assert 0 < begun < 5000
    assert begun == len(list(tmp_path.iterdir()))


def test_nothing_is_begun_before_a_result_is_asked_for(tmp_path: Path) -> None:
    each(partial(marked, str(tmp_path)), range(10), jobs=2)
    assert not list(tmp_path.iterdir())
