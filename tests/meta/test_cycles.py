"""No module needs, to be imported, a module that needs it.

Counted are imports at module level; imports for type checkers and in functions are not. import-linter checks that
layers import one way; this test looks within a layer and at the tests.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping

from tests.meta.source import files_of_product, files_of_tests, is_type_checking, module_name, syntax


def statements(body: Iterable[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    """Import statements that run as the module is imported."""
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif is_type_checking(node) and isinstance(node, ast.If):
            yield from statements(node.orelse)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for field in ("body", "orelse", "finalbody", "handlers"):
                for inner in getattr(node, field, []):
                    yield from statements(inner.body if isinstance(inner, ast.ExceptHandler) else [inner])


def needs(tree: ast.Module, module: str, known: set[str], *, is_package: bool) -> set[str]:
    """The modules out of `known` that the module imports."""
    found: set[str] = set()
    for node in statements(tree.body):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
            continue
        base = node.module or ""
        if node.level:
            parts = module.split(".")
            base = ".".join([*parts[: len(parts) - node.level + is_package], base]).strip(".")
        # `from package import module` needs the module; `from package import name` needs the package.
        found |= {full if (full := f"{base}.{alias.name}") in known else base for alias in node.names}
    return (found & known) - {module}


def cycle(graph: Mapping[str, set[str]]) -> list[str] | None:
    """Find one cycle, as the list of modules along it."""
    done: set[str] = set()
    for start in graph:
        path: list[str] = []
        ahead = [iter([start])]
        while ahead:
            module = next(ahead[-1], None)
            if module is None:
                ahead.pop()
                if path:
                    done.add(path.pop())
            elif module in path:
                return [*path[path.index(module) :], module]
            elif module not in done:
                path.append(module)
                ahead.append(iter(sorted(graph[module])))
    return None


def test_there_are_no_import_cycles() -> None:
    files = {module_name(file): file for file in [*files_of_product(), *files_of_tests()]}
    graph = {
        name: needs(syntax(file), name, set(files), is_package=file.name == "__init__.py")
        for name, file in files.items()
    }
    assert any(graph.values())
    found = cycle(graph)
    assert found is None, " -> ".join(found or [])


def test_a_cycle_is_found() -> None:
    assert cycle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) is None
    assert cycle({"a": {"c"}, "b": {"a"}, "c": {"b"}}) == ["a", "c", "b", "a"]
    assert cycle({"x": {"y"}, "y": {"z"}, "z": {"y"}}) == ["y", "z", "y"]


def test_which_imports_count() -> None:
    source = (
        "import p.a\nfrom p import b, thing\nfrom . import c\nfrom .d import other\n"
        "if TYPE_CHECKING:\n    import p.e\ntry:\n    import p.f\nexcept ImportError:\n    import p.g\n"
        "def late():\n    import p.h\n"
    )
    known = {"p", *(f"p.{letter}" for letter in "abcdefgh")}
    assert needs(ast.parse(source), "p.me", known, is_package=False) == {
        "p", "p.a", "p.b", "p.c", "p.d", "p.f", "p.g",
    }  # fmt: skip
