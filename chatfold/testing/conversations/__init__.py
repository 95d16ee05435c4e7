"""Random conversations with the three services: who says what, who breaks off, and what a service takes back.

A seed decides everything: what users do (interrupt, edit, compact, fork, switch between providers, send files and
efforts), what services answer (signed thinking, encrypted reasoning, searches, calls, cut streams), what they forget of
the responses that they keep, what hooks say, and when a process dies. Every request is put before the checks of the
loopback server of its service, and one that goes on from a kept response beside the whole conversation. When all is
over every log is checked, and every prefix of it.
"""

from chatfold.testing.conversations.run import converse

__all__ = ["converse"]
