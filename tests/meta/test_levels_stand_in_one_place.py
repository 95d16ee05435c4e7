"""Which release level knows what is ``events.levels``' matter: nobody else compares with a level by its name."""

from __future__ import annotations

import re

from tests.meta.source import files_of_product, shown

NAMES = re.compile(r"\b(?:RECONCILE|GENERATION)\b")


def test_levels_are_named_where_they_are_defined_and_where_the_release_says_its_own() -> None:
    found = {shown(path) for path in files_of_product() if NAMES.search(path.read_text())}
    assert found == {"events/levels.py", "store/schema.py"}
