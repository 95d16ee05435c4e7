"""Tests of what observes an engine: metrics, spans, debug records."""
