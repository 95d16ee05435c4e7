"""Tests of the source itself: what may import what, sizes, docstrings, words, docs."""
