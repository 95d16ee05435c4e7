"""Objects of an application that are named on a command line or in a setting, as ``MODULE:NAME``."""

from __future__ import annotations

import importlib
import os
import sys


class ReferenceProblem(Exception):
    """A reference names nothing that can be used; the text says why, beginning with the reference."""


def find_object(reference: str) -> object:
    """Return what a reference names. Modules of the current folder are found too, after all others.

    Args:
        reference: ``MODULE:NAME``; the name may have dots.

    Raises:
        ReferenceProblem: It is no reference, or the module has no such name.
        Exception: What the module raises while it is imported.
    """
    module, colon, attribute = reference.partition(":")
    if not colon or not module or not attribute:
        raise ReferenceProblem(f"{reference}: give MODULE:NAME")
    here = os.getcwd()  # noqa: PTH109 -- sys.path holds texts
    if here not in sys.path:
        sys.path.append(here)
    value: object = importlib.import_module(module)
    for name in attribute.split("."):
        value = getattr(value, name)
    return value
