"""The table of generation rules names tests that exist, and decisions where a rule is not held."""

from __future__ import annotations

import ast
import importlib.util
from functools import cache
from typing import Any

import pytest

from tests.meta.source import ROOT

KEYS = {"section", "id", "rule", "tests", "decision"}


def rules() -> list[dict[str, Any]]:
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs/generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: list[dict[str, Any]] = module.known_rules()
    return found


RULES = rules()


@cache
def named_in(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(node.name for node in functions if node.name.startswith("test_"))


def test_ids_are_given_once() -> None:
    ids = [rule["id"] for rule in RULES]
    assert [each for each in set(ids) if ids.count(each) > 1] == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["id"])
def test_a_rule_names_tests_that_exist(rule: dict[str, Any]) -> None:
    assert set(rule) <= KEYS
    assert "|" not in rule["rule"], "it would end the cell of the table"
    for test in rule["tests"]:
        path, _, name = test.partition("::")
        assert (ROOT / path).is_file(), f"{path} does not exist"
        assert name in named_in(path), f"{path} has no {name}"
    decision = rule.get("decision")
    assert rule["tests"] or decision, "a rule without a test needs a decision that says why"
    if decision is not None:
        assert [*ROOT.glob(f"docs/decisions/{decision}-*.md")], f"there is no decision {decision}"
