"""Tests that kill and restart processes. The long ones are marked `soak`; `make soak` runs them."""
