"""When a decision is due in a chat: the one rule for the worker, and for whoever takes its decisions again. Pure."""

from __future__ import annotations

from events.control import Control


def decision_due(control: Control, *, ended: bool = False) -> bool:
    """Whether its holder decides next what happens: the chat runs, nothing of it is under way, nobody ends its turn.

    Args:
        control: The chat's.
        ended: The effect of the attempt under way has ended, and nothing of it was recorded.
    """
    return control.status == "running" and not control.interrupting and (control.running is None or ended)
