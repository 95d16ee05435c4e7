"""The corpus gate: stored logs as the tests of a release, with what they cover and what they do not.

A corpus is a folder of logs, each with the states that it folded to when it was added. ``chatfold corpus`` is its
command.
"""
