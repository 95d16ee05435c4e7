"""Tests of hooks: their answers, and how they are asked."""
