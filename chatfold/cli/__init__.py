"""The command line.

``main`` is the entry point: it checks the layers before anything else is loaded. ``app`` declares the commands and
what their help says; each command's work is done by a module of its own, loaded when the command runs.
"""
