"""Tests of the command line: in this process where that shows it, as real processes where signals and pipes matter."""
