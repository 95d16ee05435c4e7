"""Tests of the ``events`` layer."""
