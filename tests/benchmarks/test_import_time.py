"""How long `import chatfold` takes, and the first use of its layers' guard."""

import statistics
import subprocess
import sys
from typing import Final

import pytest

from tests.meta.source import ROOT

PROGRAM: Final = f"""
import sys, time
sys.path.insert(0, {str(ROOT)!r})
start = time.perf_counter()
import chatfold
imported = time.perf_counter()
chatfold.LayerImportError
from chatfold._layers import ensure_layers
ready = time.perf_counter()
ensure_layers()
print(imported - start, time.perf_counter() - ready)
"""


@pytest.mark.bench
def test_import_time() -> None:
    runs = [
        [float(word) for word in subprocess.check_output([sys.executable, "-I", "-c", PROGRAM], text=True).split()]
        for _ in range(20)
    ]
    for what, seconds in zip(("import chatfold", "guard of the layers"), zip(*runs, strict=True), strict=True):
        print(f"\n{what}: best {min(seconds) * 1000:.2f} ms, median {statistics.median(seconds) * 1000:.2f} ms")
    assert min(run[0] for run in runs) < 0.2
