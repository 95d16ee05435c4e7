"""`import chatfold` is cheap and loads nothing that a user did not ask for."""

import subprocess
import sys
from typing import Final

from tests.meta.source import LAYERS, ROOT

MEASURE: Final = f"""
import sys, time
sys.path.insert(0, {str(ROOT)!r})
before = set(sys.modules)
start = time.perf_counter()
import chatfold
print(time.perf_counter() - start)
print(*sorted({{name.partition(".")[0] for name in set(sys.modules) - before}}))
"""


def measure() -> tuple[float, set[str]]:
    """Import chatfold in a new process: seconds, and the top-level modules that came with it."""
    done = subprocess.run([sys.executable, "-I", "-c", MEASURE], capture_output=True, text=True, check=True)
    seconds, modules = done.stdout.splitlines()
    return float(seconds), set(modules.split())


def test_import_takes_less_than_a_fifth_of_a_second() -> None:
    # The best of five: a busy machine makes an import slow, nothing makes it fast.
    assert min(measure()[0] for _ in range(5)) < 0.2


def test_import_loads_no_layer_and_no_library() -> None:
    _, modules = measure()
    assert "chatfold" in modules
    assert not modules & set(LAYERS[:-1])
    assert modules - {"chatfold"} <= sys.stdlib_module_names
