"""Tests of redacted logs: what stands in for content and names, and the proof of what they are."""
