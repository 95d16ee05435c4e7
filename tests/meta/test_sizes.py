"""Files and functions stay small enough to be read whole.

A function's length runs from its `def` line to its last line; nested functions count too, overloads and empty files
do not.
"""

import ast
import math
from pathlib import Path
from statistics import median

import pytest

from tests.meta.source import files_of_product, files_of_tests, functions, shown, syntax

FILE_MEDIAN, FILE_MOST = 200, 500
FUNCTION_USUAL, FUNCTION_MOST = 50, 80
SHARE_OVER_USUAL = 0.02

ROOMS = {"product": files_of_product, "tests": files_of_tests}


def lines_of(file: Path) -> int:
    return len(file.read_text(encoding="utf-8").splitlines())


def function_lengths(tree: ast.Module) -> dict[str, int]:
    return {
        f"{node.lineno} {node.name}": (node.end_lineno or node.lineno) - node.lineno + 1 for node in functions(tree)
    }


def table(offenders: dict[str, int]) -> str:
    return "\n".join(f"{lines:6d}  {name}" for name, lines in sorted(offenders.items(), key=lambda item: -item[1]))


@pytest.mark.parametrize("room", ROOMS)
def test_files_are_short(room: str) -> None:
    sizes = {shown(file): count for file in ROOMS[room]() if (count := lines_of(file))}
    too_long = {name: count for name, count in sizes.items() if count > FILE_MOST}
    assert not too_long, f"files over {FILE_MOST} lines:\n{table(too_long)}"
    middle = median(sizes.values())
    longer = {name: count for name, count in sizes.items() if count > FILE_MEDIAN}
    assert middle <= FILE_MEDIAN, f"the median file has {middle} lines; over {FILE_MEDIAN}:\n{table(longer)}"


@pytest.mark.parametrize("room", ROOMS)
def test_functions_are_short(room: str) -> None:
    lengths = {
        f"{shown(file)}:{name}": length
        for file in ROOMS[room]()
        for name, length in function_lengths(syntax(file)).items()
    }
    too_long = {name: length for name, length in lengths.items() if length > FUNCTION_MOST}
    assert not too_long, f"functions over {FUNCTION_MOST} lines:\n{table(too_long)}"
    long = {name: length for name, length in lengths.items() if length > FUNCTION_USUAL}
    allowed = math.floor(len(lengths) * SHARE_OVER_USUAL)
    assert len(long) <= allowed, (
        f"{len(long)} of {len(lengths)} functions are over {FUNCTION_USUAL} lines, {allowed} may be:\n{table(long)}"
    )


def test_the_length_of_a_function_is_measured_from_def_to_its_last_line() -> None:
    source = "@decorated\n\ndef outer(\n    a,\n):\n    def inner():\n        pass\n\n    return inner\n# not this\n"
    assert function_lengths(ast.parse(source)) == {"3 outer": 7, "6 inner": 2}
