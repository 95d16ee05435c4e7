"""Tests of declaring and running tools."""
