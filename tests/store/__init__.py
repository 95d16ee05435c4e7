"""Tests of the layer ``store``."""
