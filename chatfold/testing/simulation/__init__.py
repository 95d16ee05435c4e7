"""Simulation: the real engine in virtual time, in a world that a seed decides, with faults at every call.

    python -m chatfold.testing.simulation --seeds 0:1000

runs seeds; a failing one prints what was violated, its last steps, and the command that runs it again. ``simulate``
does the same in a program. Owns the public names only.
"""

from chatfold.testing.simulation.profile import Profile, Size
from chatfold.testing.simulation.run import Outcome, simulate

__all__ = ["Outcome", "Profile", "Size", "simulate"]
