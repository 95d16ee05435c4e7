"""Tests of the outer layer: what users import."""
