"""Each mutant is caught by the corpus gate, which names the version and the rule."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.corpus.make import FOLDER
from tests.meta.source import LAYERS, ROOT
from tests.mutations.mutant import Mutant
from tests.mutations.mutants import MUTANTS


def first_finding(product: Path) -> list[str]:
    """Return what the gate says first of a copy of the product."""
    program = [sys.executable, str(ROOT / "tests" / "mutations" / "gate.py"), str(FOLDER)]
    environment = {**os.environ, "PYTHONPATH": str(product)}
    done = subprocess.run(
        program, cwd=product, env=environment, capture_output=True, text=True, timeout=200, check=True
    )
    found = [line for line in done.stdout.splitlines() if line.count("\t") >= 4]
    return found[-1].split("\t") if found else []


@pytest.fixture
def product(tmp_path: Path) -> Path:
    """A copy of the product, with what was compiled of it: what is not changed need not be compiled again."""
    for layer in LAYERS:
        shutil.copytree(ROOT / layer, tmp_path / layer)
    return tmp_path


@pytest.mark.timeout(240)
@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
def test_a_wrong_change_is_caught_and_named(product: Path, mutant: Mutant) -> None:
    file = product / mutant.file
    text = file.read_text(encoding="utf-8")
    assert text.count(mutant.old) == 1, f"{mutant.file} has changed: say the mutant anew"
    file.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
    log, check, version, rule, *_ = first_finding(product)
    assert (log, check, int(version), rule) == (mutant.log, mutant.check, mutant.version, mutant.rule)


def test_there_are_enough_of_them_over_decision_reducer_handlers_and_runner() -> None:
    assert len(MUTANTS) >= 50
    files = [mutant.file for mutant in MUTANTS]
    kinds = ("generation/decide.py", "events/reducer", "chatstate/handlers/", "generation/runner.py")
    few = [kind for kind in kinds if sum(file.startswith(kind) for file in files) < 4]
    assert few == []
