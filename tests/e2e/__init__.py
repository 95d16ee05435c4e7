"""Whole conversations: the engine on real stores, the real SDKs, and model services on loopback."""

import pytest

pytest.register_assert_rewrite("tests.e2e.checks", "tests.e2e.kit")
