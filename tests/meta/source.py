"""The source tree as the tests of this package see it: files, modules, syntax trees.

Owns finding and parsing; what must hold is said by the tests.
"""

import ast
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
LAYERS: Final = ("events", "chatstate", "store", "generation", "chatfold")
TEXT_SUFFIXES: Final = {
    ".cfg",
    ".css",
    ".html",
    ".ini",
    ".js",
    ".mako",
    ".md",
    ".py",
    ".sh",
    ".toml",
    ".txt",
    ".yaml",
    ".yml",
}
_SKIPPED: Final = {"__pycache__", "build", "dist", "node_modules"}

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def text_files() -> tuple[Path, ...]:
    """All files of the project that people write, hidden and generated folders left out."""
    return tuple(sorted(_walk(ROOT)))


def _walk(folder: Path) -> Iterator[Path]:
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            hidden = entry.name.startswith(".") and entry.name != ".ci"
            if not hidden and entry.name not in _SKIPPED:
                yield from _walk(Path(entry.path))
        elif Path(entry.name).suffix in TEXT_SUFFIXES or entry.name in {"Makefile", "run", ".gitignore"}:
            yield Path(entry.path)


@cache
def files_of_product() -> tuple[Path, ...]:
    """The Python files of the five packages."""
    return tuple(file for file in text_files() if file.suffix == ".py" and file.relative_to(ROOT).parts[0] in LAYERS)


@cache
def files_of_tests() -> tuple[Path, ...]:
    """The Python files under tests/."""
    return tuple(file for file in text_files() if file.suffix == ".py" and file.relative_to(ROOT).parts[0] == "tests")


def shown(file: Path) -> str:
    """Give the path as messages show it, from the root of the project on."""
    return file.relative_to(ROOT).as_posix()


def module_name(file: Path) -> str:
    """Give the dotted name that the file is imported as."""
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def syntax(file: Path) -> ast.Module:
    """Parse the file, once."""
    return ast.parse(file.read_text(encoding="utf-8"), filename=str(file))


def functions(tree: ast.Module) -> Iterator[FunctionNode]:
    """All functions, methods and nested functions, overloads left out."""
    for node in ast.walk(tree):
        if isinstance(node, FunctionNode) and "overload" not in decorators(node):
            yield node


def decorators(node: FunctionNode | ast.ClassDef) -> set[str]:
    """The last word of each decorator: `typing.overload` -> overload."""
    names: set[str] = set()
    for decorator in node.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        if isinstance(called, ast.Attribute):
            names.add(called.attr)
        elif isinstance(called, ast.Name):
            names.add(called.id)
    return names


def is_type_checking(node: ast.stmt) -> bool:
    """Tell whether the statement is `if TYPE_CHECKING:`."""
    if not isinstance(node, ast.If):
        return False
    test = node.test
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )
