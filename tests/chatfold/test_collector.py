"""The garbage collector of a process that runs chats."""

from __future__ import annotations

import gc
import subprocess
import sys

from chatfold.collector import OLDER, YOUNG

_SCRIPT = """
import gc
import chatfold
before = gc.get_threshold()
class Ring: pass
ring = Ring(); ring.self = ring
chatfold.tune_collector()
frozen = gc.get_freeze_count()
later = Ring(); later.self = later
import weakref
gone = weakref.ref(later)
del later
gc.collect()
print(before != gc.get_threshold(), gc.get_threshold(), frozen > 1000, gone() is None)
"""


def test_what_is_there_is_set_apart_and_what_comes_is_collected() -> None:
    told = subprocess.run([sys.executable, "-c", _SCRIPT], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == f"True {(YOUNG, OLDER, OLDER)} True True"


def test_importing_the_package_leaves_the_collector_alone() -> None:
    script = (
        "import gc; before = gc.get_threshold(); import chatfold; chatfold.Engine; print(before == gc.get_threshold())"
    )
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "True"
    assert gc.isenabled()
