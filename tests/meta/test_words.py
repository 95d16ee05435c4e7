"""What must not stand in any file: unfinished work, suppressions without a reason, places outside of the project."""

import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from tests.meta.source import ROOT, files_of_product, files_of_tests, shown, text_files

UNFINISHED: Final = re.compile(r"\b(TODO|FIXME|XXX|NotImplementedError)\b")

# Machines, indexes of packages and trackers: a file that names one is true in one place only.
# Written with gaps, so that this file itself says none of them.
ELSEWHERE: Final = re.compile(
    r"/(work|opt|root)/|py(pi)\.org|python(hosted)|index-(url)|find-(links)|\bissue #?[0-9]", re.IGNORECASE
)

BARE: Final = {
    "noqa without a rule": re.compile(r"#\s*noqa(?!:\s*[A-Z]+[0-9])", re.IGNORECASE),
    "noqa for a whole file without a rule": re.compile(r"#\s*(ruff|flake8):\s*noqa(?!:\s*[A-Z]+[0-9])", re.IGNORECASE),
    "type: ignore without a code": re.compile(r"#\s*type:\s*ignore(?!\[[a-z-]+)"),
    "mypy told to be lax": re.compile(r"#\s*mypy:"),
    "pyright told to be lax": re.compile(r"#\s*pyright:"),
}
TYPE_IGNORES_PER_1000_LINES: Final = 1

# This file has to name what it looks for.
OTHERS: Final = tuple(file for file in text_files() if file != Path(__file__))


def lines_with(pattern: re.Pattern[str], file: Path) -> Iterator[str]:
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if pattern.search(line):
            yield f"{shown(file)}:{number}: {line.strip()}"


@cache
def comments(file: Path) -> tuple[tuple[int, str], ...]:
    with file.open("rb") as source:
        tokens = tokenize.tokenize(source.readline)
        return tuple((token.start[0], token.string) for token in tokens if token.type == tokenize.COMMENT)


def test_nothing_is_left_unfinished() -> None:
    found = [line for file in OTHERS for line in lines_with(UNFINISHED, file)]
    assert not found, "\n".join(found)


def test_no_file_names_a_place_outside_of_the_project() -> None:
    found = [line for file in OTHERS for line in lines_with(ELSEWHERE, file)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("what", BARE)
def test_suppressions_name_what_they_suppress(what: str) -> None:
    found = [
        f"{shown(file)}:{line}: {comment}"
        for file in [*files_of_product(), *files_of_tests(), ROOT / "docs" / "generate.py"]
        for line, comment in comments(file)
        if BARE[what].search(comment)
    ]
    assert not found, "\n".join(found)


def test_suppressions_of_the_type_checker_are_few() -> None:
    files = [*files_of_product(), *files_of_tests()]
    ignores = [
        f"{shown(file)}:{line}: {comment}"
        for file in files
        for line, comment in comments(file)
        if re.search(r"type:\s*ignore", comment)
    ]
    lines = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)
    allowed = max(1, lines * TYPE_IGNORES_PER_1000_LINES // 1000)
    assert len(ignores) <= allowed, f"{len(ignores)}, {allowed} may be:\n" + "\n".join(ignores)


def test_the_patterns_find_what_they_are_for() -> None:
    assert BARE["noqa without a rule"].search("# noqa")
    assert not BARE["noqa without a rule"].search("# noqa: S101")
    assert BARE["type: ignore without a code"].search("# type: ignore # because")
    assert not BARE["type: ignore without a code"].search("# type: ignore[attr-defined]")
    assert UNFINISHED.search("# TODO: later")
    assert not UNFINISHED.search("XXL, TODOS, NotImplemented")
    assert ELSEWHERE.search("cd /" + "work/main")
