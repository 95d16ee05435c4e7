"""Logs without what people said: the facts of a chat as they were, its content replaced, its names mapped.

``rules`` says what stays, ``words`` and ``numbers`` replace content, ``facts`` knows what each text of a fact is and
``names`` what becomes of it, ``rewrite`` makes the new log, ``check`` proves what it is, ``picking`` chooses chats, and
``record`` reads and writes.
"""
