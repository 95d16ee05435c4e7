"""Virtual time: the engine's own code on an event loop without clock, sockets and threads.

What a simulation and a rerun have in common. A loop runs in a thread that has no other one running.
"""
