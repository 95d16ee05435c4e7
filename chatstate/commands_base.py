"""What commands have in common: the base, and the fence of a worker's."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct


class Command(Struct, frozen=True, kw_only=True, gc=False):
    """Base of all commands; ``trigger`` names the machine's trigger."""

    trigger: ClassVar[str]


class Fence(Struct, frozen=True, kw_only=True, gc=False):
    """What a worker believes.

    A command whose fence does not hold is refused (StaleFence). All but release and record policy must name the
    history; the outcomes of an attempt must name it too.
    """

    epoch: int
    history_version: int | None = None
    attempt: int | None = None
