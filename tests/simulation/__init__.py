"""Tests of the simulation: its seeds, its determinism, and the bugs that it must find."""
