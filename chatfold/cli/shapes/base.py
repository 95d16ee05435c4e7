"""What ``--json`` prints: one object a line. The shapes are promised, and the documentation is made from them.

Times are microseconds UTC. ``kind`` tells the objects of one command apart. Fields may be added; none is taken away.
"""

from __future__ import annotations

from msgspec import Struct


class Shape(Struct, frozen=True, kw_only=True, tag_field="kind"):
    """Base of all shapes."""
