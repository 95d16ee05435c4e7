"""The gate over the corpus as a program that stops at its first finding; run on a copy of the product.

The quick checks are made of all logs first, as a mutant that changes a state or a decision need not be run again.
"""

from __future__ import annotations

import sys
from pathlib import Path

from chatfold.corpus.gate import Check, check_log, logs_of

ROUNDS: tuple[tuple[Check, ...], ...] = (("read", "fold", "audit", "decide"), ("prompts", "rerun"))


def main(folder: str) -> None:
    """Print the first finding: log, check, version and rule, separated by tabs; nothing where there is none."""
    for checks in ROUNDS:
        for source in logs_of(Path(folder)):
            finding = check_log(source, checks).finding
            if finding is not None:
                name = Path(finding.log).stem
                sys.stdout.write(f"{name}\t{finding.check}\t{finding.version}\t{finding.rule}\t{finding.problem}\n")
                return


if __name__ == "__main__":
    main(*sys.argv[1:])
