"""Files are written whole or not at all, and new ones never in the place of another."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from chatfold.files import write_new, write_whole


def _breaks() -> Iterator[bytes]:
    yield b"half"
    raise OSError("the disk is full")


def _no_links(path: Path, target: Path) -> None:
    raise PermissionError("no hard links here")


@pytest.mark.parametrize("links", [True, False], ids=["links", "no-links"])
def test_a_new_file_takes_nobodys_place(links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not links:
        monkeypatch.setattr(Path, "hardlink_to", _no_links)
    path = tmp_path / "a.jsonl"
    write_new(path, [b"one", b" line"])
    with pytest.raises(FileExistsError):
        write_new(path, [b"another"])
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == {"a.jsonl": b"one line"}


def test_of_many_who_write_one_file_at_once_one_does(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"

    def write(number: int) -> bool:
        try:
            write_new(path, [str(number).encode()])
        except FileExistsError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        wrote = list(pool.map(write, range(64)))
    assert sum(wrote) == 1
    assert path.read_bytes() == str(wrote.index(True)).encode()
    assert list(tmp_path.iterdir()) == [path]


def test_what_breaks_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with pytest.raises(OSError, match="full"):
        write_new(path, _breaks())
    assert list(tmp_path.iterdir()) == []
    write_whole(path, [b"one"])
    with pytest.raises(OSError, match="full"):
        write_whole(path, _breaks())
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == {"a.jsonl": b"one"}
