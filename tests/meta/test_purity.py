"""The pure core does no I/O and reads no clock, no randomness, no environment and no registry.

What a pure module may import is listed; what it must not is listed as well, so that nobody widens the first list by a
name of the second without meeting this page. The calls that need no import (open, hash, a clock's `now`) are looked for
too.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.meta.source import files_of_product, is_type_checking, module_name, shown, syntax

# The pure modules of generation: these, and all that they import.
ROOTS_IN_GENERATION: Final = ("budget", "decide", "decision", "errors", "policy", "prompt", "retry")

ALLOWED: Final = {
    "__future__", "abc", "base64", "binascii", "bisect", "collections", "contextlib", "copy", "dataclasses", "decimal",
    "enum", "fractions", "functools", "hashlib", "heapq", "html", "itertools", "json", "math", "numbers", "operator",
    "re", "string", "struct", "textwrap", "types", "typing", "unicodedata", "weakref", "zlib",
}  # fmt: skip
ALLOWED_BY_LAYER: Final = {
    # threading: each thread has encoders of its own, and a probe of its own for the shared machine.
    "events": {"msgspec", "threading", "events"},
    "chatstate": {"msgspec", "transitions", "threading", "events", "chatstate"},
    "generation": {"msgspec", "events", "chatstate", "generation"},
}

DENIED: Final = {
    "I/O": {"aiosqlite", "alembic", "anyio", "asyncio", "concurrent", "ftplib", "glob", "http", "io", "logging",
            "mmap", "multiprocessing", "pathlib", "psycopg", "select", "selectors", "shutil", "signal", "socket",
            "sqlalchemy", "sqlite3", "sqlmodel", "ssl", "store", "structlog", "subprocess", "tempfile", "urllib"},
    "clock": {"calendar", "datetime", "sched", "time", "zoneinfo"},
    "randomness": {"random", "secrets", "uuid"},
    "environment": {"getpass", "importlib", "locale", "os", "platform", "platformdirs", "pydantic_settings", "pwd",
                    "site", "sys", "sysconfig"},
    "SDKs": {"anthropic", "httpx", "httpx2", "openai", "requests"},
}  # fmt: skip

DENIED_CALLS: Final = {
    "open": "I/O", "input": "I/O", "print": "I/O", "breakpoint": "I/O", "eval": "code", "exec": "code",
    "__import__": "environment", "id": "an address, other in every process",
    "hash": "other in every process (PYTHONHASHSEED)",
}  # fmt: skip
DENIED_METHODS: Final = {"now", "utcnow", "today"}


def pure_files() -> list[Path]:
    """The files of events and chatstate, and those of generation that its pure modules need at run time."""
    modules = {module_name(file): file for file in files_of_product()}
    pure = {name for name in modules if name.partition(".")[0] in {"events", "chatstate"}}
    ahead = [f"generation.{root}" for root in ROOTS_IN_GENERATION]
    while ahead:
        name = ahead.pop()
        if name in pure or name not in modules:
            continue
        pure.add(name)
        file = modules[name]
        for _, target in imported(syntax(file), name, is_package=file.name == "__init__.py"):
            if target.startswith("generation."):
                ahead.append(target if target in modules else target.rpartition(".")[0])
    return sorted(modules[name] for name in pure)


def for_checkers(tree: ast.Module) -> set[ast.AST]:
    """What stands under `if TYPE_CHECKING:`: a module that is named there is not needed at run time."""
    return {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and is_type_checking(node)
        for statement in node.body
        for inner in ast.walk(statement)
    }


def imported(tree: ast.Module, module: str, *, is_package: bool) -> Iterator[tuple[int, str]]:
    """Absolute names that import statements name, those in functions included, those for type checkers not."""
    apart = for_checkers(tree)
    for node in ast.walk(tree):
        if node in apart:
            continue
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = module.split(".")
                kept = parts[: len(parts) - node.level + is_package]
                base = ".".join([*kept, base]).strip(".")
            for alias in node.names:
                yield node.lineno, f"{base}.{alias.name}"


def impurities(tree: ast.Module, module: str, *, is_package: bool = False) -> Iterator[str]:
    layer = module.partition(".")[0]
    for line, name in imported(tree, module, is_package=is_package):
        top, _, rest = name.partition(".")
        kind = next((kind for kind, names in DENIED.items() if top in names), None)
        if kind:
            yield f"{line} imports {name}: {kind}"
        elif top == "generation" and "registry" in rest.split("."):
            yield f"{line} imports {name}: registry"
        elif top not in ALLOWED | ALLOWED_BY_LAYER[layer]:
            yield f"{line} imports {name}: not on the list of what a pure module may import"
    in_hash = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name == "__hash__"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or node in in_hash:
            continue
        if isinstance(node.func, ast.Name) and node.func.id in DENIED_CALLS:
            yield f"{node.lineno} calls {node.func.id}: {DENIED_CALLS[node.func.id]}"
        elif isinstance(node.func, ast.Attribute) and node.func.attr in DENIED_METHODS and not node.args:
            yield f"{node.lineno} calls .{node.func.attr}(): clock"


@pytest.mark.parametrize("file", pure_files(), ids=shown)
def test_the_core_is_pure(file: Path) -> None:
    found = list(impurities(syntax(file), module_name(file), is_package=file.name == "__init__.py"))
    assert not found, f"{shown(file)}:\n" + "\n".join(found)


def test_nothing_is_both_allowed_and_denied() -> None:
    allowed = ALLOWED.union(*ALLOWED_BY_LAYER.values())
    assert not allowed & set[str]().union(*DENIED.values())


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import time", "imports time: clock"),
        ("from datetime import timezone", "clock"),
        ("def f():\n    import os.path", "2 imports os.path: environment"),
        ("from uuid import uuid4", "randomness"),
        ("if TYPE_CHECKING:\n    import openai\nelse:\n    import anthropic", "4 imports anthropic: SDKs"),
        ("import ctypes", "not on the list"),
        ("from generation.tools.registry import Registry", "registry"),
        ("from .tools import registry", "registry"),
        ("from chatfold import Engine", "not on the list"),
        ("from store import contract", "I/O"),
        ("x = hash('a')", "PYTHONHASHSEED"),
        ("x = moment.now()", "clock"),
        ("open('x')", "I/O"),
    ],
)
def test_an_impure_module_is_found(source: str, said: str) -> None:
    found = list(impurities(ast.parse(source), "generation.decide"))
    assert len(found) == 1
    assert said in found[0]


def test_a_pure_module_is_left_alone() -> None:
    source = (
        "import hashlib\nfrom collections.abc import Mapping\nfrom generation.policy import Policy\n"
        "from .budget import x\nfrom events import state\nclass A:\n    def __hash__(self): return hash(self.x)\n"
    )
    assert not list(impurities(ast.parse(source), "generation.decide"))


def test_the_decision_and_the_prompt_are_among_the_pure() -> None:
    names = {module_name(file) for file in pure_files()}
    assert {f"generation.{root}" for root in ("decide", "prompt", "retry")} <= names
    assert "events.reducer" in names
    assert "chatstate.decide" in names
