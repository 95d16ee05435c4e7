"""One digest of all samples as the code gives them now, for processes under other surroundings; needs msgspec alone."""

from __future__ import annotations

import hashlib

from events.codec import decode
from events.control import encode_control
from events.reducer import fold
from tests.golden.add import samples
from tests.golden.logs_v0_1 import LOGS
from tests.state_bytes import state_bytes


def fingerprint() -> str:
    """Return a digest of all samples, and of what the logs among them fold to."""
    digest = hashlib.sha256()
    for path, text in sorted(samples().items()):
        digest.update(path.name.encode() + text)
    for story in LOGS.values():
        state = fold(decode(stored) for stored in story.stored)
        digest.update(encode_control(state.control) + state_bytes(state))
    return digest.hexdigest()
