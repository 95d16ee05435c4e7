"""Tests of the vocabulary, the fold and the stored form."""
