"""Disks and servers for faults."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.disks import MakeDisk, disks
from tests.faults.servers import OwnServer


@pytest.fixture
def disk() -> Iterator[MakeDisk]:
    """Mounts small disks."""
    with disks() as make:
        yield make


@pytest.fixture
def server_folder() -> Path:
    """A path that does not exist yet, in a folder that the user of a server may enter."""
    return Path(os.environ["TESTS_OF_CHATFOLD"], f"own-{os.getpid()}-{os.urandom(4).hex()}")


@pytest.fixture
def own_server(server_folder: Path, disk: MakeDisk) -> Iterator[OwnServer]:
    """A server of this test alone; it ends before the disks that it may use are gone."""
    with OwnServer.running(server_folder) as server:
        yield server
