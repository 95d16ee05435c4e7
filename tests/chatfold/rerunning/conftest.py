"""The log that most tests run again."""

import pytest

from chatfold.replaying.logs import Log
from tests.chatfold.rerunning.kit import made


@pytest.fixture(scope="package")
def log() -> Log:
    """A chat with a tool and a second turn."""
    return made()
