"""The execution state: computed from a few fields of control, never stored.

``classify`` is total: what is not one of the legal combinations is ``INVALID``, which only reconcile leads out of.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from events.control import Control
from events.envelope import SourceStatus


class X(StrEnum):
    """Execution states (section 1 of the specification)."""

    __hash__ = str.__hash__  # an enumeration's own is a Python function, and tables are looked up for every command

    N = "N"
    P0 = "P0"
    P1 = "P1"
    R0 = "R0"
    R1 = "R1"
    I0 = "I0"
    I1 = "I1"
    A0 = "A0"
    A1 = "A1"
    W = "W"
    E0 = "E0"
    E1 = "E1"
    XW = "XW"
    XE0 = "XE0"
    XE1 = "XE1"
    INVALID = "Invalid"


EXISTING: Final = tuple(x for x in X if x not in (X.N, X.INVALID))
"""All states of a chat that exists and is sound."""

ARCHIVED: Final = (X.XW, X.XE0, X.XE1)

STATUS_OF: Final[dict[X, SourceStatus]] = {
    X.N: "none",
    X.P0: "pending",
    X.P1: "pending",
    X.R0: "running",
    X.R1: "running",
    X.I0: "running",
    X.I1: "running",
    X.A0: "requires_action",
    X.A1: "requires_action",
    X.W: "waiting",
    X.E0: "error",
    X.E1: "error",
    X.XW: "waiting",
    X.XE0: "error",
    X.XE1: "error",
}
"""The status of each sound execution state."""

_BY_FIELDS: Final[dict[tuple[str, bool, bool, bool], X]] = {
    # (status, queue filled, interrupting, archived)
    ("pending", False, False, False): X.P0,
    ("pending", True, False, False): X.P1,
    ("running", False, False, False): X.R0,
    ("running", True, False, False): X.R1,
    ("running", False, True, False): X.I0,
    ("running", True, True, False): X.I1,
    ("requires_action", False, False, False): X.A0,
    ("requires_action", True, False, False): X.A1,
    ("waiting", False, False, False): X.W,
    ("waiting", False, False, True): X.XW,
    ("error", False, False, False): X.E0,
    ("error", True, False, False): X.E1,
    ("error", False, False, True): X.XE0,
    ("error", True, False, True): X.XE1,
}


_NONE: Final = X.N
_INVALID: Final = X.INVALID
"""Two of the states by names of the module: the members of an enumeration are slower to look up."""


def classify(control: Control) -> X:
    """Return the execution state of ``control``."""
    if not control.version:
        return _NONE
    status = control.status
    if (control.holder is not None) != (status == "running"):
        return _INVALID
    if (control.action is not None) != (status == "requires_action"):
        return _INVALID
    fields = (status, bool(control.queue), control.interrupting, control.archived)
    return _BY_FIELDS.get(fields, _INVALID)
