"""The debugger of recorded chats, ``chatfold step``.

Its logic (``longlog``, ``jumps``, ``model``, ``views``, ``as_test``) knows no terminal; ``app`` and ``panes`` are the
thin edge to Textual, which alone needs the extra ``step``.
"""
