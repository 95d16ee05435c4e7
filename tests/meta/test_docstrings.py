"""Every module, and all that is public in the product, says what it is.

Ruff checks the form; this test counts without exceptions per file, and sees modules that ruff takes for private.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.meta.source import ROOT, FunctionNode, decorators, files_of_product, files_of_tests, shown, syntax

SCRIPTS = (ROOT / "docs" / "generate.py",)


def undocumented(body: list[ast.stmt], prefix: str = "") -> Iterator[str]:
    """Public classes, functions and methods without a docstring; nested functions and overrides are not asked."""
    for node in body:
        if not isinstance(node, ast.ClassDef | FunctionNode) or node.name.startswith("_"):
            continue
        exempt = decorators(node) & {"overload", "override", "setter", "deleter"}
        if not exempt and not ast.get_docstring(node):
            yield f"{node.lineno} {prefix}{node.name}"
        if isinstance(node, ast.ClassDef):
            yield from undocumented(node.body, f"{prefix}{node.name}.")


@pytest.mark.parametrize("file", [*files_of_product(), *files_of_tests(), *SCRIPTS], ids=shown)
def test_modules_say_what_they_own(file: Path) -> None:
    assert ast.get_docstring(syntax(file)), f"{shown(file)} has no module docstring"


def test_public_things_of_the_product_are_documented() -> None:
    missing = [f"{shown(file)}:{name}" for file in files_of_product() for name in undocumented(syntax(file).body)]
    assert not missing, "without a docstring:\n" + "\n".join(missing)


def test_the_search_finds_what_is_missing() -> None:
    source = (
        "def a(): pass\n"
        "def _b(): pass\n"
        "class C:\n"
        "    '''Said.'''\n"
        "    def d(self): pass\n"
        "    @override\n"
        "    def e(self): pass\n"
        "    def __f__(self): pass\n"
        "async def g():\n"
        "    '''Said.'''\n"
        "    def h(): pass\n"
    )
    assert list(undocumented(ast.parse(source).body)) == ["1 a", "5 C.d"]
