"""The public names are the ones that `__all__` lists: none is missing, none is listed in vain.

Every module of the product that can be imported is imported; what a package's `__init__` makes public has to be in its
`__all__`. The names of `chatfold` resolve lazily, so its table, its imports for type checkers and its `__all__` are
compared.
"""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import chatfold
import chatfold.debugging
from tests.meta.source import LAYERS, ROOT, files_of_product, is_type_checking, module_name, shown, syntax

MACHINERY = {"chatfold._lazy", "chatfold._layers"}  # used in an __init__, not published by it


def importable() -> Iterator[Path]:
    """Modules that an import does not run as a program: no `__main__`, no scripts that Alembic runs."""
    for file in files_of_product():
        if file.stem != "__main__" and "migrations" not in file.relative_to(ROOT).parts:
            yield file


def bound(tree: ast.Module) -> Iterator[str]:
    """Public names that the top level of a module binds: classes, functions, and what it imports from our packages."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names = [node.name]
        elif isinstance(node, ast.ImportFrom) and node.module in MACHINERY:
            continue
        elif isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").partition(".")[0] in LAYERS):
            names = [alias.asname or alias.name for alias in node.names]
        else:
            continue
        yield from (name for name in names if not name.startswith("_"))


@pytest.mark.parametrize("file", list(importable()), ids=shown)
def test_what_a_module_lists_exists(file: Path) -> None:
    module = importlib.import_module(module_name(file))
    listed: list[str] = list(getattr(module, "__all__", []))
    assert len(listed) == len(set(listed)), "listed twice"
    missing = [name for name in listed if not hasattr(module, name)]
    assert not missing, f"{module.__name__}.__all__ lists {missing}, which do not exist"


@pytest.mark.parametrize("file", [file for file in importable() if file.name == "__init__.py"], ids=shown)
def test_what_a_package_makes_public_is_listed(file: Path) -> None:
    module = importlib.import_module(module_name(file))
    unlisted = sorted(name for name in bound(syntax(file)) if name not in getattr(module, "__all__", []))
    assert not unlisted, f"{module.__name__} makes {unlisted} public and does not list them in __all__"


@pytest.mark.parametrize("module", [chatfold, chatfold.debugging], ids=["chatfold", "chatfold.debugging"])
def test_the_three_lists_of_a_lazy_module_say_the_same(module: ModuleType) -> None:
    for_checkers = {
        alias.asname or alias.name: node.module
        for block in syntax(Path(module.__file__ or "")).body
        if is_type_checking(block) and isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert for_checkers == module._HOMES
    assert set(module.__all__) - {"__version__"} == set(module._HOMES)
    assert set(module.__all__) <= set(dir(module))


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'chatfold' has no attribute 'Enigne'"):
        getattr(chatfold, "Enigne")  # noqa: B009 - type checkers know that it does not exist
