"""Tests of the debugger."""
