"""The command ``python -m chatfold.testing.conversations``: one seed, or many in processes of their own."""

from __future__ import annotations

import sys
from typing import Final

from chatfold.testing.conversations.run import converse
from chatfold.testing.simulation.__main__ import Program, main

_DESCRIPTION: Final = """\
Hold random conversations with services that check what they are sent: users interrupt, edit, compact, fork and switch
between providers, streams are cut, processes die. A seed decides everything and does so again. Exits with 1 where a
service would refuse a request, and prints the command that runs the failing seed again."""

CONVERSATIONS: Final = Program("python -m chatfold.testing.conversations", _DESCRIPTION, converse)

if __name__ == "__main__":
    sys.exit(main(program=CONVERSATIONS))
