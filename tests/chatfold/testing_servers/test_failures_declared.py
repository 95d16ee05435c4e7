"""Scripted failures that no service could send are refused where they are declared."""

from __future__ import annotations

import pytest

from chatfold.testing.servers import Fail


@pytest.mark.parametrize("status", [100, 103, 199, 204, 205, 304, 600, 0, -1, True, "500"])
def test_a_failure_has_a_status_that_can_say_it(status: int) -> None:
    with pytest.raises(ValueError, match="has an HTTP status from 200 to 599"):
        Fail(status)
