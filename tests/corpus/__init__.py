"""The golden corpus: chats that this release wrote over all its features, which each later release must still run.

``python -m tests.corpus.make`` adds what is missing and never changes what is there.
"""
