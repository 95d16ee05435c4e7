"""Measurements. Each prints what it measured, and fails only where a bar is broken; `make bench` runs them."""
