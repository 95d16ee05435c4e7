"""Pictures of chats: the machine with a chat's way on it, where its time went, and a report of both in one file.

Everything is made from the log alone, as SVG and HTML without a script and without anything from elsewhere. What a
chat holds is escaped wherever it goes.
"""
