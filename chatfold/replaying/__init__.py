"""Replaying: recorded logs against today's code, and what can be told from a log alone.

Nothing here calls a model, runs a tool or opens a connection. A log file is read without an event loop; only a chat in
a store needs one, to be read.
"""
