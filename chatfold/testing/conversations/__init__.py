"""Random conversations with the three services: who says what, who breaks off, and what a service takes back.

A seed decides everything: what users do (interrupt, edit, compact, fork, switch between providers), what services
answer (signed thinking, encrypted reasoning, searches, calls, cut streams), and when a process dies. Every request is
put before the checks of the loopback server of its service, and when all is over every prefix of every log.
"""

from chatfold.testing.conversations.run import converse

__all__ = ["converse"]
