"""The entry point of the command line: the layers are checked, then the application is loaded and run.

Owns nothing else: what is imported here is imported before the check, so nothing of the layers may be.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from chatfold._layers import LayerImportError, ensure_layers

if TYPE_CHECKING:
    from typer import Typer


def application() -> Typer:
    """Check the layers, then load the application.

    Raises:
        LayerImportError: One of the four layer packages is not chatfold's own.
    """
    ensure_layers()
    from chatfold.cli.app import app

    return app


def main() -> None:
    """Run the command line and exit: 0 fine, 1 a check or what was asked failed, 2 the command line is wrong."""
    try:
        app = application()
    except LayerImportError as error:
        sys.stderr.write(f"chatfold: {error}\n")
        sys.exit(1)
    from chatfold.cli.ending import end, leave_at_the_second_ctrl_c
    from chatfold.cli.guard import run

    leave_at_the_second_ctrl_c()
    end(run(app, sys.argv[1:]))
