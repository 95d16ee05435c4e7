"""Tests of the `generation` layer."""
